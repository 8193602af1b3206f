// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_reno97: the TCP that the texts of 1997 to 2001 measure against.
 *
 * Source: M. Allman, "Improving TCP Performance over Satellite Channels", Ohio University 1997,
 * section 1.1.1: one segment to begin with, one segment more for every ACK in slow start however
 * many segments it acknowledges, 1/cwnd for every ACK in congestion avoidance. The same is table 1
 * of M. Marchese, Computer Communications 24 (2001).
 * Parameters: initial_window (1), ssthresh, rate.
 * Deviations: those of common.h. Linux's own "reno" counts acknowledged segments instead.
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
		grow(tp, window, SEGMENT);
	else
		grow_one_per_window(tp, window);
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_reno97 = {
	.name = "xftp_reno97",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	STANDARD_REACTIONS,
};
