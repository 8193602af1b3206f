// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_adalr: TCP-ADaLR, growth scaled with the RTT in slow start and in congestion avoidance.
 *
 * Source: "TCP-ADaLR", M.A.Sc. thesis, Simon Fraser University, chapter 5.
 * Equation 5.1: rho = 60 sampleRTT / 1 s, within 1 and 60.
 * Algorithms 5.1 and 5.2, per ACK, nothing below one segment:
 *   slow start, no loss so far, rho >= 15, one of the sub-phases 1 to 4:  sqrt(rho)/4 segments
 *   slow start otherwise:                                                1 segment
 *   congestion avoidance, flight < rwnd/2, not recovering:               sqrt(rho)/2 / cwnd
 *   congestion avoidance otherwise:                                      1 / cwnd
 * Parameters: initial_window (2), ssthresh (64 KB, section 5.2.1), rate.
 * Deviations: those of common.h, and
 * - Algorithm 5.3, the sender enlarging the receiver's window, is the receiving end's business
 *   here: a sender that sends beyond the window it was offered is cut off by every receiver.
 * - Algorithm 5.4, the window while recovering, is replaced by the kernel's proportional rate
 *   reduction, which also keeps two segments as the least.
 * - The 200 ms added after a time-out and the three segments per retransmission are not reachable
 *   from a congestion-control program.
 */
#include "standard.h"

#define DEFAULT_INITIAL_WINDOW 2
#define INITIAL_SSTHRESH_BYTES 65536

#define RHO 65536ULL /* rho = 1 in the fixed-point arithmetic below */
#define RHO_PER_SECOND 60
#define LARGEST_RHO (60 * RHO)
#define LONG_RTT_RHO (15 * RHO)

struct adalr {
	struct xftp_window window;
	__u32 rho;	/* in 1/RHO */
	__u32 root_rho; /* its square root, in 1/256 */
	__u32 lost;	/* snd_recover is not zero */
	__u32 recover;	/* snd_recover */
};

static inline __u32 square_root(__u32 value)
{
	__u32 root = 0;

	for (__u32 bit = 1U << 15; bit; bit >>= 1)
		if ((__u64)(root | bit) * (root | bit) <= value)
			root |= bit;
	return root;
}

static inline void measured(struct adalr *own, __u64 rtt_us)
{
	__u64 rho = rtt_us * RHO_PER_SECOND * RHO / 1000000;

	own->rho = larger(smaller(rho, LARGEST_RHO), RHO);
	own->root_rho = square_root(own->rho);
}

/* sqrt(rho) / divisor segments, one at least, in 1/SEGMENT. */
static inline __u64 scaled(const struct adalr *own, __u32 divisor)
{
	return larger((__u64)own->root_rho * (SEGMENT / 256) / divisor, SEGMENT);
}

/* Algorithm 5.1. The fourth sub-phase is part of the third as the text states them. */
static inline bool in_sub_phase(const struct tcp_sock *tp, __u32 flight)
{
	__u32 cwnd = tp->snd_cwnd, ssthresh = tp->snd_ssthresh, rwnd = tp->snd_wnd;
	bool small = flight < rwnd / 4, middle = flight >= rwnd / 4 && flight < rwnd / 2;

	return (cwnd <= ssthresh / 4 && small) ||
	       (cwnd > ssthresh / 4 && cwnd <= ssthresh / 2 && small) ||
	       (cwnd > ssthresh / 4 && middle) || (cwnd > ssthresh / 2 && middle);
}

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct adalr *own = PRIVATE(struct adalr, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	own->lost = 0;
	own->recover = 0;
	measured(own, smoothed_rtt_us(tp));
	if (!tp->data_segs_out)
		tp->snd_ssthresh = larger(INITIAL_SSTHRESH_BYTES / larger(tp->mss_cache, 1), 2);
	start(sk, parameters_of(sk), DEFAULT_INITIAL_WINDOW);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(rtt_sampled, struct sock *sk, const struct ack_sample *sample)
{
	if (sample->rtt_us > 0)
		measured(PRIVATE(struct adalr, sk), sample->rtt_us);
}

SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 state)
{
	struct adalr *own = PRIVATE(struct adalr, sk);

	if (state == TCP_CA_Recovery || state == TCP_CA_Loss) {
		own->lost = 1;
		own->recover = tcp_sk(sk)->snd_nxt;
	}
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct adalr *own = PRIVATE(struct adalr, sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 flight = tp->snd_nxt - tp->snd_una;
	bool recovering = own->lost && (__s32)(tp->snd_una - own->recover) < 0;

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp)) {
		bool faster = !own->lost && own->rho >= LONG_RTT_RHO && in_sub_phase(tp, flight);

		grow(tp, &own->window, faster ? scaled(own, 4) : SEGMENT);
	} else {
		bool faster = !recovering && flight < tp->snd_wnd / 2;

		grow(tp, &own->window,
		     (faster ? scaled(own, 2) : SEGMENT) / larger(tp->snd_cwnd, 1));
	}
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_adalr = {
	.name = "xftp_adalr",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	.pkts_acked = (void *)rtt_sampled,
	.set_state = (void *)state_changes,
	STANDARD_REACTIONS,
};
