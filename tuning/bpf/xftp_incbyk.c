// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_incbyk: Increase-by-K, congestion avoidance that adds K segments per RTT instead of one.
 *
 * Source: T. Henderson, Ph.D. thesis, UC Berkeley 1999, section 4.1.5:
 * cwnd += min(K / cwnd, 1 segment) for every ACK; meant for the one connection with the long RTT.
 * Slow start is the standard one, one segment per ACK.
 * Parameters: k (4, as in table 4.1), initial_window (1), ssthresh, rate.
 * Deviations: those of common.h.
 */
#include "standard.h"

#define DEFAULT_K 4

struct increase_by_k {
	struct xftp_window window;
	__u32 k;
};

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct increase_by_k *own = PRIVATE(struct increase_by_k, sk);
	struct xftp_parameters *told = parameters_of(sk);

	own->k = told && told->k ? told->k : DEFAULT_K;
	start(sk, told, 1);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct increase_by_k *own = PRIVATE(struct increase_by_k, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp))
		grow(tp, &own->window, SEGMENT);
	else
		grow(tp, &own->window,
		     smaller((__u64)own->k * SEGMENT / larger(tp->snd_cwnd, 1), SEGMENT));
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_incbyk = {
	.name = "xftp_incbyk",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	STANDARD_REACTIONS,
};
