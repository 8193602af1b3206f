/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The reactions that every algorithm but xftp_rented leaves as the texts' TCP had them: half the
 * window after a loss and at least two segments (RFC 2581, equation 3, with cwnd for FlightSize,
 * as common.h keeps the two together), the old window back if the loss proves to be none.
 *
 * A file that includes this names them all in its tcp_congestion_ops: the kernel refuses a program
 * that belongs to no member. One with reactions of its own to a new state defines OWN_STATE_CHANGES
 * before, and calls check_reaction first.
 */
#ifndef XFTP_STANDARD_H
#define XFTP_STANDARD_H

#include "common.h"

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(half_the_window, struct sock *sk)
{
	return larger(tcp_sk(sk)->snd_cwnd / 2, 2);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(window_before, struct sock *sk)
{
	return larger(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

/*
 * Seen on Linux 6.18, in a few of a thousand losses: the kernel gets a stale word of its stack
 * (0x81104110, a return address) for what half_the_window returns, and reduces the window to some
 * 10^9 segments, which floods the path. Neither number can exceed the window before the loss by
 * right, so both are looked at once the kernel has taken them over, which it does before it tells
 * of the new state.
 */
#define ABSURD_WINDOW (1U << 24)

static inline void check_reaction(struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 before = larger(tp->prior_cwnd, 2);

	if (state >= TCP_CA_CWR && tp->snd_ssthresh > before)
		tp->snd_ssthresh = larger(before / 2, 2);
	if (tp->snd_cwnd > ABSURD_WINDOW)
		tp->snd_cwnd = before;
}

#ifndef OWN_STATE_CHANGES
SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 state)
{
	check_reaction(sk, state);
}
#endif

SEC("struct_ops/cwnd_event")
void BPF_PROG(first_byte, struct sock *sk, int event)
{
	if (event == CA_EVENT_TX_START)
		start_sending(sk);
}

#define STANDARD_REACTIONS                                                                         \
	.flags = TCP_CONG_NON_RESTRICTED, .ssthresh = (void *)half_the_window,                     \
	.undo_cwnd = (void *)window_before, .set_state = (void *)state_changes,                    \
	.cwnd_event = (void *)first_byte

#endif
