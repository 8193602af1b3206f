// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_linthr: "Linear thr", slow start in which the n-th ACK adds n segments, up to a window of
 * thr; one segment per ACK above it.
 *
 * Source: M. Marchese, "Performance analysis of the TCP behavior in a GEO satellite environment",
 * Computer Communications 24 (2001), equations 3 and 4, measured in tables 6 and 7 with an initial
 * window of 6. Linear 20 keeps its gain with many connections, Linear 50 is too aggressive there.
 * Congestion avoidance is the standard one, a segment for a window's worth of ACKs.
 * Parameters: thr (20), initial_window (6), ssthresh, rate.
 * Deviations: those of common.h; N_ack counts again from one after a time-out, since slow start
 * begins anew, where the text is silent.
 */
#include "standard.h"

#define DEFAULT_THR 20
#define DEFAULT_INITIAL_WINDOW 6

struct linear {
	struct xftp_window window;
	__u32 thr;
	__u32 acks;
};

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct linear *own = PRIVATE(struct linear, sk);
	struct xftp_parameters *told = parameters_of(sk);

	own->thr = told && told->thr ? told->thr : DEFAULT_THR;
	own->acks = 0;
	start(sk, told, DEFAULT_INITIAL_WINDOW);
}

SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 state)
{
	if (state == TCP_CA_Loss)
		PRIVATE(struct linear, sk)->acks = 0;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct linear *own = PRIVATE(struct linear, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!acked || !window_is_full(tp))
		return;
	own->acks++;
	if (!in_slow_start(tp))
		grow_one_per_window(tp, &own->window);
	else if (tp->snd_cwnd <= own->thr)
		grow(tp, &own->window, (__u64)own->acks * SEGMENT);
	else
		grow(tp, &own->window, SEGMENT);
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_linthr = {
	.name = "xftp_linthr",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	.set_state = (void *)state_changes,
	STANDARD_REACTIONS,
};
