// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_kack: slow start that adds K segments for every ACK.
 *
 * Source: M. Marchese, "Performance analysis of the TCP behavior in a GEO satellite environment",
 * Computer Communications 24 (2001), equation 2: F'(N_ack, cwnd) = K. Tables 5 and 7 measure it
 * with an initial window of 6; only K = 2 keeps its gain with many connections.
 * Congestion avoidance is the standard one, a segment for a window's worth of ACKs.
 * Parameters: k (2), initial_window (6), ssthresh, rate.
 * Deviations: those of common.h.
 */
#include "standard.h"

#define DEFAULT_K 2
#define DEFAULT_INITIAL_WINDOW 6

struct k_per_ack {
	struct xftp_window window;
	__u32 k;
};

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct k_per_ack *own = PRIVATE(struct k_per_ack, sk);
	struct xftp_parameters *told = parameters_of(sk);

	own->k = told && told->k ? told->k : DEFAULT_K;
	start(sk, told, DEFAULT_INITIAL_WINDOW);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct k_per_ack *own = PRIVATE(struct k_per_ack, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp))
		grow(tp, &own->window, (__u64)own->k * SEGMENT);
	else
		grow_one_per_window(tp, &own->window);
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_kack = {
	.name = "xftp_kack",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	STANDARD_REACTIONS,
};
