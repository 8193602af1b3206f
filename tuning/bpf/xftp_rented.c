// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_rented: for a link whose rate the user knows because he pays for it.
 *
 * Source: this project. It joins what the texts ask for one by one: a window of rate x RTT from
 * the start (Allman 1997, equation 2.3 and section 3.1), pacing instead of bursts (Henderson 1999,
 * section 4.1.4, left untried there), and telling loss by errors from loss by congestion
 * (Marchese 2001, section 1, and the thesis on TCP-ADaLR, chapter 4, name the want).
 *
 * The law. full = rate x base RTT, base RTT the least seen; the connection sends at share x rate,
 * paced, with at most share x rate x (base RTT + slack) and three segments in flight: ACKs are
 * delayed, and machines make them wait. It begins with share 1 and the handshake's RTT, and then,
 * once per RTT, by the least RTT of the round:
 *   RTT near base, few losses       losses were errors: share grows by 1/8, to 1
 *   RTT grown, no loss              share shrinks by 1/8, to 1/4; below 1/4 one segment more
 *   RTT grown and loss, or more     congestion: share is halved, to 1/64 and four segments
 *   than one segment in eight lost
 *   time-out                        share is halved
 * Near means within slack: base/8, but 5 ms at least and 50 ms at most. For 30 s no RTT near base
 * means that the path has changed, and base is the least of the last round.
 * The window never exceeds rate x (base RTT + slack) + 3 segments, whatever happens.
 *
 * Rate: the parameter, or SO_MAX_PACING_RATE, which needs no map; headers included. Both may not
 * be set later than the connection. Without a rate it is Reno that counts acknowledged segments,
 * from ten segments on.
 * Parameters: rate, initial_window (first flight only), ssthresh (without a rate only).
 * Needs Linux 6.0, where a program may set the pacing rate.
 */
#include "common.h"

#define DEFAULT_INITIAL_WINDOW 10
#define SMALLEST_WINDOW 4

#define SHARE (1U << 16) /* share = 1 */
#define SMALLEST_SHARE (SHARE / 64)
#define POLITE_SHARE (SHARE / 4)

#define LEAST_SLACK_US 5000
#define MOST_SLACK_US 50000
#define PATH_CHANGED_US 30000000ULL
#define FEW_LOSSES 4 /* never too many, however small the window */

#define NO_SAMPLE 0xffffffff
#define NO_RATE (~0UL)
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

struct rented {
	struct xftp_window window;
	__u64 rate;		/* bytes per second on the link; 0 unknown */
	__u64 round_began_us;
	__u64 near_base_us;	/* when the RTT was last near base */
	__u32 base_rtt_us;
	__u32 round_rtt_us;	/* least of this round */
	__u32 last_rtt_us;	/* least of the round before */
	__u32 lost_before;	/* tp->lost as the round began */
	__u32 delivered_before; /* tp->delivered likewise */
	__u32 delivered_seen;	/* at the last ACK */
	__u32 share;		/* in 1/SHARE */
	bool halved;		/* in this round already */
};

/* How much more than base the RTT may be before that counts as a queue. */
static inline __u32 slack_us(const struct rented *own)
{
	return larger(smaller(own->base_rtt_us / 8, MOST_SLACK_US), LEAST_SLACK_US);
}

static inline bool near_base(const struct rented *own, __u32 rtt_us)
{
	return rtt_us <= own->base_rtt_us + slack_us(own);
}

/* The least RTT of this round so far: a queue lengthens all of them, a hiccup of a machine a few. */
static inline __u32 present_rtt_us(const struct rented *own)
{
	return own->round_rtt_us != NO_SAMPLE ? own->round_rtt_us : own->last_rtt_us;
}

static inline void halve(struct rented *own)
{
	if (own->halved)
		return;
	own->halved = true;
	own->share = larger(own->share / 2, SMALLEST_SHARE);
}

static inline void begin_round(struct rented *own, const struct tcp_sock *tp)
{
	own->round_began_us = tp->tcp_mstamp;
	if (own->round_rtt_us != NO_SAMPLE)
		own->last_rtt_us = own->round_rtt_us;
	own->round_rtt_us = NO_SAMPLE;
	own->lost_before = tp->lost;
	own->delivered_before = tp->delivered;
	own->halved = false;
}

static inline void end_round(struct rented *own, const struct tcp_sock *tp, __u32 full)
{
	__u32 lost = tp->lost - own->lost_before;
	__u32 delivered = tp->delivered - own->delivered_before;
	bool measured = own->round_rtt_us != NO_SAMPLE;
	bool grown = measured && !near_base(own, own->round_rtt_us);
	__u64 now_us = tp->tcp_mstamp;

	if (measured && !grown) {
		own->near_base_us = now_us;
	} else if (grown && now_us - own->near_base_us > PATH_CHANGED_US) {
		own->base_rtt_us = own->round_rtt_us;
		own->near_base_us = now_us;
		grown = false;
	}
	if ((grown && lost) || (lost > FEW_LOSSES && lost > (lost + delivered) / 8))
		halve(own);
	else if (own->halved)
		; /* by a loss as it was noticed, or by a time-out */
	else if (!grown)
		own->share = smaller(own->share + SHARE / 8, SHARE);
	else if (own->share > POLITE_SHARE)
		own->share = larger(own->share - own->share / 8, POLITE_SHARE);
	else
		own->share = smaller(own->share + SHARE / larger(full, 1), POLITE_SHARE);
}

/* Pace at share x rate. The kernel counts payload only, the link headers too. */
static inline void pace(struct sock *sk, const struct rented *own)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 payload = own->rate * tp->mss_cache / segment_on_link(tp) * own->share / SHARE;

	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = larger(smaller(payload, sk->sk_max_pacing_rate), 1);
}

/* Reno with counted segments, for a connection whose rate nobody knows. */
static inline void without_rate(struct tcp_sock *tp, struct rented *own, __u32 acked)
{
	__u8 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);

	check_threshold(tp);
	if (state == TCP_CA_CWR || state == TCP_CA_Recovery)
		set_window(tp, smaller(tp->snd_cwnd, tp->snd_ssthresh));
	else if (!window_is_full(tp))
		return;
	else if (in_slow_start(tp))
		set_window(tp, smaller((__u64)tp->snd_cwnd + acked, tp->snd_ssthresh));
	else
		grow(tp, &own->window, (__u64)acked * SEGMENT / larger(tp->snd_cwnd, 1));
}

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct rented *own = PRIVATE(struct rented, sk);
	struct xftp_parameters *told = parameters_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 first = DEFAULT_INITIAL_WINDOW;

	own->rate = 0;
	if (told && told->rate)
		own->rate = told->rate;
	else if (sk->sk_max_pacing_rate != NO_RATE)
		own->rate = sk->sk_max_pacing_rate;
	own->base_rtt_us = smoothed_rtt_us(tp);
	if (!own->base_rtt_us)
		own->base_rtt_us = NO_SAMPLE;
	own->near_base_us = tp->tcp_mstamp;
	own->delivered_seen = tp->delivered;
	own->share = SHARE;
	own->round_rtt_us = own->last_rtt_us = own->base_rtt_us;
	begin_round(own, tp);

	if (own->rate && own->base_rtt_us != NO_SAMPLE)
		first = larger(segments_in_flight(tp, own->rate, own->base_rtt_us),
			       SMALLEST_WINDOW);
	start(sk, told, first);
	if (own->rate)
		pace(sk, own);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(rtt_sampled, struct sock *sk, const struct ack_sample *sample)
{
	struct rented *own = PRIVATE(struct rented, sk);

	if (sample->rtt_us <= 0)
		return;
	own->base_rtt_us = smaller(own->base_rtt_us, sample->rtt_us);
	own->round_rtt_us = smaller(own->round_rtt_us, sample->rtt_us);
}

/* Called for every ACK, in every state, instead of the kernel's own window reduction. */
SEC("struct_ops/cong_control")
void BPF_PROG(acknowledged, struct sock *sk)
{
	struct rented *own = PRIVATE(struct rented, sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 acked = tp->delivered - own->delivered_seen;
	__u64 full, room;

	own->delivered_seen = tp->delivered;
	if (!own->rate) {
		without_rate(tp, own, acked);
		return;
	}
	if (own->base_rtt_us == NO_SAMPLE)
		return;
	full = segments_in_flight(tp, own->rate, own->base_rtt_us);
	if (tp->tcp_mstamp - own->round_began_us >= smoothed_rtt_us(tp)) {
		end_round(own, tp, full);
		begin_round(own, tp);
	}
	room = segments_in_flight(tp, own->rate, slack_us(own));
	set_window(tp, larger((full + room) * own->share / SHARE + 3, SMALLEST_WINDOW));
	pace(sk, own);
}

/* The kernel has found a loss. ssthresh itself matters only where the rate is not known. */
SEC("struct_ops/ssthresh")
__u32 BPF_PROG(loss_found, struct sock *sk)
{
	struct rented *own = PRIVATE(struct rented, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!own->rate)
		return larger(tp->snd_cwnd / 2, 2);
	if (!near_base(own, present_rtt_us(own)))
		halve(own);
	return tp->snd_ssthresh;
}

SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 state)
{
	if (state == TCP_CA_Loss)
		halve(PRIVATE(struct rented, sk));
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(window_before, struct sock *sk)
{
	return larger(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_rented = {
	.name = "xftp_rented",
	.flags = TCP_CONG_NON_RESTRICTED,
	.init = (void *)begin,
	.pkts_acked = (void *)rtt_sampled,
	.cong_control = (void *)acknowledged,
	.ssthresh = (void *)loss_found,
	.set_state = (void *)state_changes,
	.undo_cwnd = (void *)window_before,
};
