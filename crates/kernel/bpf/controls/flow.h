// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What every control that differentiates at the sender keeps of a connection beside its core.
#ifndef WHYLOSS_CONTROLS_FLOW_H
#define WHYLOSS_CONTROLS_FLOW_H

#include "socket.h"

#include "core/prr.h"

struct wl_flow {
	u32 since; // in recovery: segments delivered when it began; after a timeout: the window to come back to
	u32 delivered; // segments delivered at the latest acknowledgement
	u32 last_ack; // when that came, or the first data after a pause left
	struct wl_aware aware;
	u16 lost; // segments taken for lost at the latest acknowledgement, the lower half: there is no room for more
	u8 cause : 2; // of the latest episode
	u8 judged : 1; // the acknowledgement under way begins an episode: ssthresh() has judged one of its losses
	u8 reduced : 1; // the episode cost window
	u8 holding : 1; // the window is on its way down
	u8 asked : 1; // ssthresh() was called for the state that begins
	u8 climbing : 1; // the window was in slow start when the timer expired
	u8 acking : 1; // an acknowledgement is under way
	u8 advanced : 1; // it advances SND.UNA
	u8 marked : 1; // and carries the ECN echo
	u8 undone : 1; // the kernel took the reduction back
};

// The round trip of the newest segment delivered. Where retransmissions make it ambiguous, the kernel takes a sample from timestamps,
// which is off by up to a millisecond and known by its whole milliseconds: too coarse for the smallest of a connection.
static __always_inline s32 wl_delay_sample(u8 ca_state, s32 rtt_us)
{
	int repairing = ca_state == TCP_CA_Recovery || ca_state == TCP_CA_Loss;

	return rtt_us < 0 || (repairing && (u32)rtt_us % 1000 == 0) ? -1 : rtt_us;
}

// How many segments were taken for lost since the latest acknowledgement: by the timer of RACK, too.
static __always_inline u16 wl_newly_lost(struct wl_flow *flow, const struct tcp_sock *tp)
{
	u16 before = flow->lost;

	flow->lost = tp->lost;
	return flow->lost - before;
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
		wl_set_cwnd(tp, wl_prr_window(&prr));
	return prr.pipe <= prr.target;
}

#endif
