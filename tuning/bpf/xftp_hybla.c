// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * xftp_hybla: a long connection that sends as one with an RTT of RTT0 = 25 ms would.
 *
 * Source: C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
 * International Journal of Satellite Communications and Networking 22 (2004), section 3:
 * rho = max(RTT / RTT0, 1); per ACK 2^rho - 1 segments in slow start, rho^2 / cwnd after it; the
 * initial window and the initial slow-start threshold are rho times those of the reference
 * connection. RTT is the smallest seen.
 * Parameters: reference_rtt (25 ms), initial_window, ssthresh (both replace rho times the
 * reference connection's: 1 segment and 64 KB), rate.
 * Deviations: those of common.h, and
 * - 2^rho is 16 million for 600 ms: ssthresh ends that, the ACK that reaches it goes no further,
 *   and rho counts as 16 at most in 2^rho. Pacing, which the authors advise, is the caller's
 *   (SO_MAX_PACING_RATE); their bandwidth estimate for ssthresh is the rate that is told.
 * - 2^x between whole x is linear: at most 6% more than it should be.
 */
#include "standard.h"

#define DEFAULT_REFERENCE_RTT_US 25000
#define REFERENCE_INITIAL_WINDOW 1
#define REFERENCE_SSTHRESH_BYTES 65536

#define RHO 1024ULL /* rho = 1 in the fixed-point arithmetic below */
#define LARGEST_RHO (1000 * RHO)
#define LARGEST_EXPONENT 16

struct hybla {
	struct xftp_window window;
	__u32 reference_rtt_us;
	__u32 least_rtt_us;
	__u32 rho; /* in 1/RHO */
};

static inline void measured(struct hybla *own, __u32 rtt_us)
{
	own->least_rtt_us = rtt_us;
	own->rho = larger(smaller(rtt_us * RHO / larger(own->reference_rtt_us, 1), LARGEST_RHO),
			  RHO);
}

/* 2^rho - 1 segments, in 1/SEGMENT. */
static inline __u64 slow_start_growth(__u32 rho)
{
	__u64 whole = smaller(rho / RHO, LARGEST_EXPONENT), part = rho % RHO;

	return (SEGMENT << whole) + ((part * (SEGMENT / RHO)) << whole) - SEGMENT;
}

SEC("struct_ops/init")
void BPF_PROG(begin, struct sock *sk)
{
	struct hybla *own = PRIVATE(struct hybla, sk);
	struct xftp_parameters *told = parameters_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	own->reference_rtt_us =
		told && told->reference_rtt_us ? told->reference_rtt_us : DEFAULT_REFERENCE_RTT_US;
	measured(own, smoothed_rtt_us(tp));
	if (!tp->srtt_us)
		own->least_rtt_us = 0xffffffff;
	if (!tp->data_segs_out)
		tp->snd_ssthresh = larger(
			REFERENCE_SSTHRESH_BYTES / larger(tp->mss_cache, 1) * own->rho / RHO, 2);
	start(sk, told, larger(own->rho * REFERENCE_INITIAL_WINDOW / RHO, 1));
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(rtt_sampled, struct sock *sk, const struct ack_sample *sample)
{
	struct hybla *own = PRIVATE(struct hybla, sk);

	if (sample->rtt_us > 0 && (__u32)sample->rtt_us < own->least_rtt_us)
		measured(own, sample->rtt_us);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(acknowledged, struct sock *sk, __u32 ack, __u32 acked)
{
	struct hybla *own = PRIVATE(struct hybla, sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 rho = own->rho;

	if (!acked || !window_is_full(tp))
		return;
	if (in_slow_start(tp)) {
		__u64 left = (__u64)(tp->snd_ssthresh - tp->snd_cwnd) * SEGMENT;

		grow(tp, &own->window, smaller(slow_start_growth(rho), left));
	} else {
		grow(tp, &own->window,
		     rho * rho * (SEGMENT / (RHO * RHO)) / larger(tp->snd_cwnd, 1));
	}
}

SEC(".struct_ops")
struct tcp_congestion_ops xftp_hybla = {
	.name = "xftp_hybla",
	.init = (void *)begin,
	.cong_avoid = (void *)acknowledged,
	.pkts_acked = (void *)rtt_sampled,
	STANDARD_REACTIONS,
};
