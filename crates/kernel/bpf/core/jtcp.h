// SPDX-License-Identifier: (MIT OR Apache-2.0)
// JTCP (Wu & Chen 2004): congestion if the segments of a round trip arrive farther apart than they left by more than one segment of the
// window, Jr = ((R_B - R_A) - (S_B - S_A)) / (R_B - R_A) > 1 / W. Episodes that begin within an SRTT of the one before are corruption.
#ifndef WHYLOSS_CORE_JTCP_H
#define WHYLOSS_CORE_JTCP_H

#include "core/clock.h"
#include "core/rounds.h"

#define WL_JTCP_FEWEST 3

struct wl_jtcp {
	// The first segment of the round under way; before there is one, the newest of the round before.
	u32 sent; // when it left
	u32 acked; // when its acknowledgement came
	u32 ticks; // of the receiver's clock
	// From it to the latest one.
	u32 left;
	u32 arrived;
	u32 ticked;
	u32 segments;
	// The complete round: how far apart its ends left and arrived; 0 if they say nothing.
	u32 complete_left;
	u32 complete_arrived;
	struct wl_clock clock;
	struct wl_rounds rounds;
	u32 episode; // when the latest began
	u16 ahead; // segments delivered since the latest one
	u8 acks; // of the round under way, up to WL_JTCP_FEWEST
	u8 began : 1;
	u8 stamped : 1; // the clock has begun
	u8 by_ticks : 1; // the first segment has ticks
	u8 ticking : 1; // and the latest one
	u8 in_episode : 1;
	u8 any : 1; // a segment was seen
};

// How far apart the ends of the round under way arrived, by the receiver's clock if its tick is no longer than half their spacing.
WL_CORE u32 wl_jtcp_arrived(const struct wl_jtcp *jtcp)
{
	u64 apart = (u64)jtcp->ticked * jtcp->clock.tick;

	if (jtcp->acks < WL_JTCP_FEWEST)
		return 0;
	if (jtcp->by_ticks && jtcp->ticking && jtcp->clock.tick && 2ULL * jtcp->clock.tick * jtcp->segments <= apart)
		return apart < ~0U ? (u32)apart : ~0U;
	return jtcp->arrived;
}

WL_CORE void wl_jtcp_ack(struct wl_jtcp *jtcp, const struct wl_ack *ack)
{
	u32 ticks = 0, sent = ack->now - (u32)ack->delay;

	if (wl_rounds_ack(&jtcp->rounds, ack, jtcp->began)) {
		jtcp->complete_arrived = wl_jtcp_arrived(jtcp);
		jtcp->complete_left = jtcp->left;
		jtcp->sent += jtcp->left;
		jtcp->left = 0;
		jtcp->acks = 0;
	}
	jtcp->began = 1;
	if (ack->stamped) {
		ticks = wl_clock_ack(&jtcp->clock, ack, jtcp->stamped);
		jtcp->stamped = 1;
	}
	jtcp->ahead = wl_min(jtcp->ahead + ack->delivered, 65535);
	// A segment that was overtaken says nothing of its neighbours.
	if (ack->delay < 0 || (jtcp->any && wl_after(jtcp->sent + jtcp->left, sent)))
		return;
	jtcp->any = 1;
	jtcp->ticking = ack->stamped;
	if (!jtcp->acks) {
		jtcp->sent = sent;
		jtcp->acked = ack->now;
		jtcp->ticks = ticks;
		jtcp->by_ticks = ack->stamped;
		jtcp->left = jtcp->arrived = jtcp->ticked = jtcp->segments = jtcp->ahead = 0;
		jtcp->acks = 1;
		return;
	}
	jtcp->segments += jtcp->ahead;
	jtcp->ahead = 0;
	jtcp->left = sent - jtcp->sent;
	jtcp->arrived = ack->now - jtcp->acked;
	jtcp->ticked = ticks - jtcp->ticks;
	if (jtcp->acks < WL_JTCP_FEWEST)
		jtcp->acks++;
}

// An episode begins, by anything but a timeout. To be told after it was judged.
WL_CORE void wl_jtcp_episode(struct wl_jtcp *jtcp, u32 now)
{
	jtcp->episode = now;
	jtcp->in_episode = 1;
}

WL_CORE struct wl_verdict wl_jtcp_judge(const struct wl_jtcp *jtcp, const struct wl_loss *loss)
{
	u32 left = jtcp->complete_left, arrived = jtcp->complete_arrived, window = wl_max(loss->cwnd, 2);
	u64 stayed;

	if (loss->first && !loss->timeout && jtcp->in_episode && loss->srtt && loss->now - jtcp->episode <= loss->srtt)
		return wl_decided(1, WL_ONE);
	// The round under way, once it has covered half a window.
	if (jtcp->acks >= WL_JTCP_FEWEST && 2ULL * jtcp->segments >= loss->cwnd) {
		left = jtcp->left;
		arrived = wl_jtcp_arrived(jtcp);
	}
	if (!arrived)
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	if (arrived <= left)
		return wl_decided(1, WL_ONE);
	stayed = (u64)(arrived - left) * window;
	return wl_decided(stayed <= arrived, wl_share(arrived, arrived + stayed));
}

#endif
