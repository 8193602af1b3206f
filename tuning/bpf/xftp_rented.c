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
 * paced, with at most share x rate x (base RTT + room) and three segments in flight: ACKs are
 * delayed, and machines make them wait. It begins with share 1 and the handshake's RTT, and then,
 * once per RTT, by the least RTT of the round:
 *   RTT within hold, few losses     losses were errors: share grows by 1/8, to 1
 *   RTT near base, few losses       it is kept
 *   RTT grown                       share shrinks by 1/8, to 1/4; below 1/4 one segment more
 *   RTT far from base and loss, or  congestion: share is halved, to 1/64 and four segments
 *   more than one segment in 8 lost
 *   time-out                        share is halved, and then grows by 1/4 to what it was before
 * What a time-out takes for lost is not counted as losses besides: most are outages. Where an ACK then
 * tells that what was sent last had arrived, the kernel calls the time-out off, the share is what it
 * was, and three rounds long as many losses as segments were on their way are no news.
 * A link that is paced at its own rate is idle for as long as its sender was kept from sending, and
 * never catches up. So with share 1 a queue of one hold is kept at the link, which then has something
 * to send: the pace of a round is above or below the rate by half of what the least RTT of the round
 * before was short of base + hold, or beyond it, in parts of base, and by 1/16 at most. Where that
 * meets no queue but a limit that drops what is above it, it costs more than it gives: if more than
 * 1/32 of 512 segments is lost in rounds above the rate, it is given up for good.
 * hold is base/8, but 2.5 ms at least and 50 ms at most. Within means that the RTT is no longer than
 * base + hold, near no longer than base + 2 hold, grown that it is, and far longer than base + 4 hold.
 * room is three holds with share 1, else one.
 * For 30 s no RTT near base means that the path has changed, and base is the least of the last round.
 * The window never exceeds rate x (base RTT + room) + 3 segments, whatever happens.
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

#define LEAST_HOLD_US 2500
#define MOST_HOLD_US 50000
#define NEAR_HOLDS 2
#define FAR_HOLDS 4
#define ROOM_HOLDS 3
#define MOST_TRIM (SHARE / 16)
#define JUDGED_SEGMENTS 512 /* so many tell whether there is a queue to fill */
#define HOLD_LOSSES 32	    /* one in so many lost is too many for that */
#define PATH_CHANGED_US 30000000ULL
#define FEW_LOSSES 4 /* never too many, however small the window */
#define EXCUSED_ROUNDS 3

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
	__u32 share_before;	/* the time-out; 0 once that is reached, or was too much */
	__s32 trim;		/* what fills the queue at the link, or empties it; in 1/SHARE */
	__u32 held_lost;	/* while the queue was filled, since it was last judged */
	__u32 held_delivered;	/* likewise */
	__u32 excused;		/* segments on their way as a time-out was called off */
	__u8 excused_rounds;	/* within which the lost ones of them are found */
	bool halved;		/* in this round already */
	bool no_queue;		/* there is none that could be */
};

/* The queue that is kept at the link, in time. */
static inline __u32 hold_us(const struct rented *own)
{
	return larger(smaller(own->base_rtt_us / 8, MOST_HOLD_US), LEAST_HOLD_US);
}

/* What may be in flight beyond full: little for those who meet others. */
static inline __u32 room_us(const struct rented *own)
{
	return own->share == SHARE ? ROOM_HOLDS * hold_us(own) : hold_us(own);
}

/* Is an RTT no longer than it is with a queue of so many holds? */
static inline bool within(const struct rented *own, __u32 rtt_us, __u32 holds)
{
	return rtt_us <= own->base_rtt_us + holds * hold_us(own);
}

/* The least RTT of this round and the last: a queue lengthens all, a hiccup of a machine a few. */
static inline __u32 present_rtt_us(const struct rented *own)
{
	return smaller(own->round_rtt_us, own->last_rtt_us);
}

/* How long a round is. An ACK that was kept back by an outage counts in the smoothed RTT for long. */
static inline __u32 round_us(const struct rented *own, const struct tcp_sock *tp)
{
	return smaller(smoothed_rtt_us(tp), 2 * (__u64)present_rtt_us(own));
}

static inline void halve(struct rented *own)
{
	own->share_before = 0;
	if (own->halved)
		return;
	own->halved = true;
	own->share = larger(own->share / 2, SMALLEST_SHARE);
}

static inline void grow_share(struct rented *own)
{
	__u32 soon = smaller(own->share + SHARE / 4, own->share_before);

	own->share = smaller(larger(own->share + SHARE / 8, soon), SHARE);
	if (own->share >= own->share_before)
		own->share_before = 0;
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

/* Are losses the answer to filling the queue? Few segments do not tell. */
static inline void judge_hold(struct rented *own, __u32 lost, __u32 delivered)
{
	own->held_lost += lost;
	own->held_delivered += delivered;
	if (own->held_lost + own->held_delivered < JUDGED_SEGMENTS)
		return;
	if (own->held_lost > (own->held_lost + own->held_delivered) / HOLD_LOSSES)
		own->no_queue = true;
	own->held_lost = own->held_delivered = 0;
}

/* Half of what the queue lacks, or has too much, in the next round: the answer takes two. */
static inline __s32 trim_for(const struct rented *own, __u32 queue_us)
{
	__u32 hold = hold_us(own), twice = 2 * larger(own->base_rtt_us, 1);

	if (queue_us <= hold)
		return smaller((__u64)(hold - queue_us) * SHARE / twice, MOST_TRIM);
	return -(__s32)smaller((__u64)(queue_us - hold) * SHARE / twice, MOST_TRIM);
}

/* Leave out the losses of what was on its way as a time-out was called off. */
static inline __u32 without_excused(struct rented *own, __u32 lost)
{
	__u32 excused = smaller(lost, own->excused);

	if (!own->excused_rounds)
		return lost;
	own->excused_rounds--;
	own->excused -= excused;
	return lost - excused;
}

static inline void end_round(struct rented *own, const struct tcp_sock *tp, __u32 full)
{
	__u32 lost = without_excused(own, tp->lost - own->lost_before);
	__u32 delivered = tp->delivered - own->delivered_before;
	bool measured = own->round_rtt_us != NO_SAMPLE;
	bool queued = measured && !within(own, own->round_rtt_us, 1);
	bool grown = measured && !within(own, own->round_rtt_us, NEAR_HOLDS);
	bool far = measured && !within(own, own->round_rtt_us, FAR_HOLDS);
	__u64 now_us = tp->tcp_mstamp;

	if (measured && !grown) {
		own->near_base_us = now_us;
	} else if (grown && now_us - own->near_base_us > PATH_CHANGED_US) {
		own->base_rtt_us = own->round_rtt_us;
		own->near_base_us = now_us;
		queued = grown = far = false;
	}
	if ((far && lost) || (lost > FEW_LOSSES && lost > (lost + delivered) / 8))
		halve(own);
	else if (own->halved)
		; /* by a loss as it was noticed, or by a time-out */
	else if (!queued)
		grow_share(own);
	else if (!grown)
		; /* as it should be */
	else if (own->share > POLITE_SHARE)
		own->share = larger(own->share - own->share / 8, POLITE_SHARE);
	else
		own->share = smaller(own->share + SHARE / larger(full, 1), POLITE_SHARE);
	if (grown)
		own->share_before = 0;

	if (own->trim > 0)
		judge_hold(own, lost, delivered);
	own->trim = 0;
	if (measured && own->share == SHARE && !own->no_queue)
		own->trim = trim_for(own, own->round_rtt_us - own->base_rtt_us);
}

/* Pace at share x rate, and trim it. The kernel counts payload only, the link headers too. */
static inline void pace(struct sock *sk, const struct rented *own)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 payload = own->rate * tp->mss_cache / segment_on_link(tp) * own->share / SHARE;

	payload = payload * (SHARE + own->trim) / SHARE;
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (own->rate != sk->sk_max_pacing_rate) /* else that is the link's rate */
		payload = smaller(payload, sk->sk_max_pacing_rate);
	sk->sk_pacing_rate = larger(payload, 1);
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
	own->held_lost = own->held_delivered = 0;
	own->trim = 0;
	own->no_queue = false;
	own->share_before = 0;
	own->excused_rounds = 0;
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
	if (tp->tcp_mstamp - own->round_began_us >= round_us(own, tp)) {
		end_round(own, tp, full);
		begin_round(own, tp);
	}
	room = segments_in_flight(tp, own->rate, room_us(own));
	set_window(tp, larger((full + room) * own->share / SHARE + 3, SMALLEST_WINDOW));
	pace(sk, own);
}

/*
 * The kernel has found a loss. Where the rate is known, ssthresh matters no more to the window, but
 * a connection that has one may repeat what little it says without doubling its time-out
 * (TCP_THIN_LINEAR_TIMEOUTS).
 */
SEC("struct_ops/ssthresh")
__u32 BPF_PROG(loss_found, struct sock *sk)
{
	struct rented *own = PRIVATE(struct rented, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (own->rate && !within(own, present_rtt_us(own), FAR_HOLDS))
		halve(own);
	return larger(tp->snd_cwnd / 2, 2);
}

SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 state)
{
	struct rented *own = PRIVATE(struct rented, sk);
	__u32 before = larger(own->share_before, own->halved ? 0 : own->share);

	if (state != TCP_CA_Loss)
		return;
	halve(own);
	own->share_before = before;
	own->lost_before = tcp_sk(sk)->lost; /* it counts everything that was on its way */
}

/*
 * The time-out is called off: something sent before it had arrived. The kernel now takes all the rest
 * for on its way too; only a window that lets more out finds what is lost of it.
 */
SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(window_before, struct sock *sk)
{
	struct rented *own = PRIVATE(struct rented, sk);
	__u8 state = BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state);

	if (own->share_before && state == TCP_CA_Loss) {
		own->share = larger(own->share, own->share_before);
		own->share_before = 0;
		own->halved = false;
		own->excused = tcp_sk(sk)->packets_out - tcp_sk(sk)->sacked_out;
		own->excused_rounds = EXCUSED_ROUNDS;
	}
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
