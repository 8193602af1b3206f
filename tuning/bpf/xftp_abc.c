// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_abc: in slow start the window grows by what is acknowledged, not by the ACKs that say so.
 *
 * Source: M. Allman, "Improving TCP Performance over Satellite Channels", Ohio University 1997,
 * section 3.1, second modification, which tables 3.1 and 3.2 measure: as many segments more as an
 * ACK covers, at the beginning and after a time-out alike. Delayed ACKs then cost no growth.
 * Congestion avoidance stays as it was, 1/cwnd per ACK: section 3.1 changes slow start only.
 * Parameters: initial_window (1; section 3.4 combines both modifications), ssthresh, rate.
 * Deviations: those of common.h; the ACK that reaches ssthresh grows the window up to it and no
 * further, where the text is silent.
 */
#include "standard.h"

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	start(sk, parameters_of(sk), 1);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct xftp_window *window = PRIVATE(struct xftp_window, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp))
		set_window(tp, smaller((__u64)tp->snd_cwnd + acked, tp->snd_ssthresh));
	else
		grow_one_per_window(tp, window);
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_abc = {
	.name = "xftp_abc",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	STANDARD_REACTIONS,
};
