/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What every algorithm of this folder shares: the few kernel fields they use, the per-socket
 * parameters, the start of a connection and the growth of a window by parts of a segment.
 *
 * Only the fields used are declared. preserve_access_index lets the loader find them in the
 * running kernel's own type information, so an object has a few kilobytes and needs no headers
 * of the kernel it will run on.
 *
 * Deviations from the texts that all algorithms have in common:
 * - Linux counts the window in whole segments of the current MSS, the texts in bytes.
 * - A window that the sender did not fill does not grow (RFC 2861). The stacks of the texts let it
 *   grow up to the receiver's window.
 * - Unless a file says otherwise the kernel recovers: SACK, RACK, proportional rate reduction down
 *   to ssthresh, one segment after a time-out. The texts' Reno and NewReno are switched on as far
 *   as possible with tcp_sack, tcp_recovery and tcp_early_retrans.
 */
#ifndef XFTP_COMMON_H
#define XFTP_COMMON_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define inline inline __attribute__((always_inline))

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* The kernel's numbers, from its user-space ABI (linux/bpf.h, linux/in.h, linux/tcp.h). */
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_F_CLONE (1U << 9)
#define AF_INET6 10
#define TCP_CONG_NON_RESTRICTED 1 /* an unprivileged process may choose it */
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len;
	__u32 data_segs_out;
	__u32 delivered;
	__u32 lost;
	__u32 max_packets_out;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 prior_cwnd;
	__u32 sacked_out;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_nxt;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 snd_wnd;
	__u32 srtt_us; /* eight times the smoothed RTT */
	__u64 tcp_mstamp;
	__u8 is_cwnd_limited : 1;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us; /* below zero: this ACK measures nothing */
};

struct tcp_congestion_ops {
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*cong_control)(struct sock *sk);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*set_state)(struct sock *sk, __u8 state);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
};

#pragma clang attribute pop

/*
 * What a process may tell an algorithm about one socket. Zero always means "not told".
 * The layout is an interface: tuning/congestion.py packs it, and refuses a map of another size.
 */
struct xftp_parameters {
	__u32 initial_window;	/* segments */
	__u32 ssthresh;		/* initial slow-start threshold, segments */
	__u32 k;		/* Increase-by-K: segments per RTT; K per ACK: segments per ACK */
	__u32 thr;		/* Linear thr: segments */
	__u32 c;		/* Constant-Rate: segments per second squared */
	__u32 reference_rtt_us; /* Hybla: RTT0 */
	__u32 flags;		/* XFTP_SSTHRESH_FROM_RATE */
	__u32 reserved;
	__u64 rate;		/* of the link or of this connection's part, bytes per second, headers included */
};

#define XFTP_SSTHRESH_FROM_RATE 1U

/* Keyed by a socket's file descriptor. Sockets accepted from a listener inherit its value (CLONE). */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct xftp_parameters);
} xftp_parameters SEC(".maps");

/* The head of every algorithm's private area in the socket (icsk_ca_priv, 104 bytes). */
struct xftp_window {
	__u32 initial; /* segments to start with; 0 once data were sent */
	__u32 credit;  /* growth not yet worth a segment, in 1/SEGMENT */
};

#define SEGMENT (1U << 20) /* one segment in the fixed-point arithmetic of the windows */

#define PRIVATE(type, sk) ((type *)((struct inet_connection_sock *)(sk))->icsk_ca_priv)

static inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline __u64 smaller(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static inline __u64 larger(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

static inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static inline __u32 smoothed_rtt_us(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

static inline void set_window(struct tcp_sock *tp, __u64 segments)
{
	tp->snd_cwnd = larger(smaller(segments, tp->snd_cwnd_clamp), 1);
}

/* Bytes of a full segment on the link: payload, TCP and IP headers. */
static inline __u32 segment_on_link(const struct tcp_sock *tp)
{
	__u32 ip = tp->inet_conn.icsk_inet.sk.__sk_common.skc_family == AF_INET6 ? 40 : 20;

	return larger(tp->mss_cache, 1) + tp->tcp_header_len + ip;
}

/* Segments in flight that fill a link: rate x RTT (Allman 1997, equation 2.3), rounded up. */
static inline __u64 segments_in_flight(const struct tcp_sock *tp, __u64 rate, __u32 rtt_us)
{
	/* 2^32 bytes/s and 2^32 us stay below 2^64 only together: 34 Gbit/s is enough here. */
	__u64 bytes = smaller(rate, 0xffffffff) * rtt_us / 1000000;
	__u32 segment = segment_on_link(tp);

	return (bytes + segment - 1) / segment;
}

/* Is the window what holds the sender back? If not, it must not grow. */
static inline bool window_is_full(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Grow by part of a segment, or by several; the remainder is kept for the next time. */
static inline void grow(struct tcp_sock *tp, struct xftp_window *window, __u64 parts)
{
	__u64 sum = window->credit + parts;

	window->credit = sum % SEGMENT;
	set_window(tp, tp->snd_cwnd + sum / SEGMENT);
}

/* One segment for a window's worth of ACKs (RFC 2581, section 3.1). */
static inline void grow_one_per_window(struct tcp_sock *tp, struct xftp_window *window)
{
	grow(tp, window, SEGMENT / larger(tp->snd_cwnd, 1));
}

/*
 * After a loss the threshold is never above the window before it; the window is reduced towards it
 * from one ACK to the next, so what is wrong has to be mended before an ACK is looked at.
 *
 * Seen on Linux 6.18, by the tracepoint tcp_probe: now and then, when RACK's timer finds a loss, the
 * kernel calls no program of the algorithm, and takes a stale word of its stack (2165326096, part of
 * a return address) for the answer of ssthresh. It then opens the window to some 10^9 segments and
 * floods the path. This program, too, may not be called once: the next ACK mends the window then.
 */
#define ABSURD_WINDOW (1U << 24)

static inline void check_threshold(struct tcp_sock *tp)
{
	__u8 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	__u32 before = larger(tp->prior_cwnd, 2);

	if (state >= TCP_CA_CWR && tp->snd_ssthresh > before)
		tp->snd_ssthresh = larger(before / 2, 2);
	if (tp->snd_cwnd > ABSURD_WINDOW)
		tp->snd_cwnd = before;
}

static inline struct xftp_parameters *parameters_of(struct sock *sk)
{
	return bpf_sk_storage_get(&xftp_parameters, sk, 0, 0);
}

/*
 * Start of a connection: the initial window, told or the algorithm's own, and the threshold
 * (Allman 1997, section 2.4.5) if it was told or is to be rate x RTT of the handshake.
 * A connection that changes its algorithm after data were sent keeps its window.
 */
static inline void start(struct sock *sk, const struct xftp_parameters *told, __u32 own_initial)
{
	struct xftp_window *window = PRIVATE(struct xftp_window, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	window->credit = 0;
	window->initial = 0;
	if (tp->data_segs_out)
		return;
	window->initial = told && told->initial_window ? told->initial_window : own_initial;
	set_window(tp, window->initial);
	if (!told)
		return;
	if (told->ssthresh)
		tp->snd_ssthresh = larger(told->ssthresh, 2);
	else if ((told->flags & XFTP_SSTHRESH_FROM_RATE) && told->rate && tp->srtt_us)
		tp->snd_ssthresh =
			larger(segments_in_flight(tp, told->rate, smoothed_rtt_us(tp)), 2);
}

/*
 * The kernel takes a window back to ten segments when nothing was sent for one retransmission
 * time-out (tcp_slow_start_after_idle). A data connection that waits for its first byte would lose
 * its initial window: it gets it again as the first byte leaves.
 */
static inline void start_sending(struct sock *sk)
{
	struct xftp_window *window = PRIVATE(struct xftp_window, sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (window->initial && !tp->data_segs_out)
		set_window(tp, window->initial);
	window->initial = 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
