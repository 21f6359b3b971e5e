// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What every control keeps of a connection beside its core, and what it does with the kernel's own fields.
#ifndef WHYLOSS_CONTROLS_FLOW_H
#define WHYLOSS_CONTROLS_FLOW_H

#include "core/aware.h"
#include "core/event.h"
#include "core/prr.h"

// As BPF_PROG, for a name that is a macro.
#define WL_BPF_PROG(name, args...) BPF_PROG(name, args)

struct wl_flow {
	u32 since; // in recovery: segments delivered when it began; after a timeout: the window to come back to
	u32 delivered; // segments delivered at the latest acknowledgement
	u32 heard; // when that came, or the first data after a pause left
	struct wl_aware aware;
	u8 state; // enum tcp_ca_state
	u8 cause; // of the latest episode
	u8 reduced : 1; // the episode cost window
	u8 holding : 1; // the window is on its way down
	u8 asked : 1; // ssthresh() was called for the state that begins
	u8 climbing : 1; // the window was in slow start when the timer expired
	u8 acking : 1; // an acknowledgement is under way
	u8 advanced : 1; // it advances SND.UNA
	u8 marked : 1; // and carries the ECN echo
	u8 undone : 1; // the kernel took the reduction back
};

static __always_inline u32 wl_now(const struct tcp_sock *tp)
{
	return (u32)tp->tcp_mstamp;
}

static __always_inline u32 wl_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

// The round trip of the newest segment delivered. Where retransmissions make it ambiguous, the kernel takes a sample from timestamps,
// which is off by up to a millisecond and known by its whole milliseconds: too coarse for the smallest of a connection.
static __always_inline s32 wl_delay(const struct wl_flow *flow, s32 rtt_us)
{
	int repairing = flow->state == TCP_CA_Recovery || flow->state == TCP_CA_Loss;

	return rtt_us < 0 || (repairing && (u32)rtt_us % 1000 == 0) ? -1 : rtt_us;
}

// The retransmission timeout without back-off, in microseconds.
static __always_inline u32 wl_rto(const struct tcp_sock *tp)
{
	return (tp->srtt_us >> 3) + tp->rttvar_us;
}

// Whether the window is what limits the sender (RFC 7661). In slow start it may grow to twice what was used of it.
static __always_inline int wl_is_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline struct wl_ack wl_ack_now(const struct tcp_sock *tp)
{
	return (struct wl_ack){
		.now = wl_now(tp),
		.una = tp->snd_una,
		.nxt = tp->snd_nxt,
		.cwnd = tp->snd_cwnd,
		.srtt = tp->srtt_us >> 3,
		.delay = -1,
	};
}

static __always_inline struct wl_loss wl_loss_now(const struct tcp_sock *tp, u32 cwnd)
{
	return (struct wl_loss){
		.now = wl_now(tp),
		.cwnd = cwnd,
		.flight = wl_min(cwnd, tp->packets_out),
		.srtt = tp->srtt_us >> 3,
	};
}

// The window that a recovery which reduces arrives at. A threshold above the window leaves the window alone.
static __always_inline u32 wl_target(const struct tcp_sock *tp)
{
	return wl_max(wl_min(tp->snd_ssthresh, tp->prior_cwnd), 2);
}

static __always_inline void wl_set_window(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = wl_max(wl_min(cwnd, tp->snd_cwnd_clamp), 1);
}

// After a pause of more than a timeout nothing is known of the path (RFC 5681, 4.1). The kernel leaves that, too, to controls that have
// cong_control.
static __always_inline void wl_restart(const struct sock *sk, struct tcp_sock *tp, const struct wl_flow *flow)
{
	if (wl_now(tp) - flow->heard <= wl_rto(tp) || tp->snd_cwnd <= WL_AWARE_INITIAL)
		return;
	if (BPF_CORE_READ(sk, __sk_common.skc_net.net, ipv4.sysctl_tcp_slow_start_after_idle))
		tp->snd_cwnd = WL_AWARE_INITIAL;
}

// Lets the window fall towards the threshold; returns whether it has arrived.
static __always_inline int wl_hold(struct tcp_sock *tp, const struct wl_flow *flow, u32 newly, int lost)
{
	struct wl_prr prr = {
		.before = tp->prior_cwnd,
		.target = wl_target(tp),
		.delivered = tp->delivered - flow->since,
		.out = tp->prr_out,
		.pipe = wl_in_flight(tp),
		.newly = newly,
		.safe = flow->advanced && !lost,
	};

	if (newly)
		wl_set_window(tp, wl_prr_window(&prr));
	return prr.pipe <= prr.target;
}

// The kernel leaves the rate to controls that have cong_control. Even without a pacing queue it decides how much leaves at once:
// twice the window a round trip in slow start, 1.2 times beyond, as for its own controls.
static __always_inline void wl_set_rate(struct sock *sk, const struct tcp_sock *tp)
{
	u64 window = (u64)wl_max(tp->snd_cwnd, tp->packets_out) * tp->mss_cache, rate, most = sk->sk_max_pacing_rate;
	u32 tenths = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 20 : 12;

	if (!tp->srtt_us)
		return;
	rate = window * tenths * 800000 / tp->srtt_us; // srtt_us counts eighths of a microsecond
	sk->sk_pacing_rate = rate < most ? rate : most;
}

#endif
