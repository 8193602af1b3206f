/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The reactions that every algorithm but xftp_rented leaves as the texts' TCP had them: half the
 * window after a loss and at least two segments (RFC 2581, equation 3, with cwnd for FlightSize,
 * as common.h keeps the two together), the old window back if the loss proves to be none.
 *
 * A file that includes this names them all in its tcp_congestion_ops: the kernel refuses a
 * program that belongs to no member.
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

SEC("struct_ops/cwnd_event")
void BPF_PROG(first_byte, struct sock *sk, int event)
{
	if (event == CA_EVENT_TX_START)
		start_sending(sk);
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(before_ack, struct sock *sk, __u32 flags)
{
	check_threshold(tcp_sk(sk));
}

#define STANDARD_REACTIONS                                                                         \
	.flags = TCP_CONG_NON_RESTRICTED, .ssthresh = (void *)half_the_window,                     \
	.undo_cwnd = (void *)window_before, .cwnd_event = (void *)first_byte,                      \
	.in_ack_event = (void *)before_ack

#endif
