// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_crate: Constant-Rate, congestion avoidance that grows the sending rate by the same amount
 * per second whatever the RTT.
 *
 * Source: T. Henderson, Ph.D. thesis, UC Berkeley 1999, section 4.1.4, after S. Floyd:
 * cwnd += min(c rtt^2 / cwnd, 1 segment) for every ACK. c is in segments per second squared;
 * c = 100 grows as a standard connection of 100 ms does, 4 as one of 500 ms, 1600 as one of 25 ms.
 * Slow start is the standard one, one segment per ACK.
 * Parameters: c (100), initial_window (1), ssthresh, rate.
 * Deviations: those of common.h; rtt is the kernel's smoothed RTT, in microseconds where the
 * text's timers tick every 10 or 500 ms.
 */
#include "standard.h"

#define DEFAULT_C 100
#define LONGEST_RTT_US 16000000 /* keeps c rtt^2 within 64 bits */

struct constant_rate {
	struct xftp_window window;
	__u32 c;
};

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct constant_rate *own = PRIVATE(struct constant_rate, sk);
	struct xftp_parameters *told = parameters_of(sk);

	own->c = told && told->c ? told->c : DEFAULT_C;
	start(sk, told, 1);
}

/* c rtt^2: segments per RTT, in 1/SEGMENT. */
static inline __u64 growth_per_rtt(const struct tcp_sock *tp, __u32 c)
{
	__u64 rtt_us = smaller(smoothed_rtt_us(tp), LONGEST_RTT_US);

	/* rtt^2 in s^2 / SEGMENT is rtt_us^2 * 2^20 / 10^12. */
	return rtt_us * rtt_us * 16 / 15258789 * c;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct constant_rate *own = PRIVATE(struct constant_rate, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp))
		grow(tp, &own->window, SEGMENT);
	else
		grow(tp, &own->window,
		     smaller(growth_per_rtt(tp, own->c) / larger(tp->snd_cwnd, 1), SEGMENT));
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_crate = {
	.name = "xftp_crate",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	STANDARD_REACTIONS,
};
