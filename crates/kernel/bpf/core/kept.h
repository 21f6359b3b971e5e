// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What a sender does with the reports: an episode of losses keeps its window if the receiver reported each of them damaged.
//
// It does so from the beginning if all losses seen by then, or their head, were reported. A report can be late, because SACK blocks leave no room for it: for a while a loss without one
// is waited for, beyond the end of recovery if need be. Then it counts as congestion. If the reports come after the window was reduced, it comes back.
//
// In the end only reports count whose segments were sent again: a receiver that calls damaged what it has gains no more than a late reduction.
#ifndef WHYLOSS_CORE_KEPT_H
#define WHYLOSS_CORE_KEPT_H

#include "core/newreno.h"
#include "core/prr.h"

struct wl_kept {
	struct wl_window before; // when the episode began
	u32 lost; // losses on the connection until then
	u32 heard; // and reports believed until then
	u32 repaired; // of these, whose segments had been sent again
	u32 since; // when the first loss without a report was seen
	u32 delivered; // segments, since the window began to fall
	u32 out; // segments sent in recovery until then
	u8 episode; // one is going on
	u8 waiting; // for the report of a loss
	u8 reduced;
	u8 marked; // congestion was signalled otherwise: nothing brings the window back
};

// Counts of the connection.
struct wl_balance {
	u32 now;
	u32 lost; // transmissions taken for lost so far
	u32 heard; // reports believed so far
	u32 repaired; // of these, whose segments were sent again
	u32 patience; // for how long the report of a loss may be missing
};

enum wl_change { WL_SAME, WL_REDUCED, WL_RESTORED };

WL_CORE u32 wl_kept_threshold(const struct wl_kept *kept)
{
	return kept->reduced ? wl_threshold(kept->before.cwnd / 2) : wl_max(kept->before.ssthresh, kept->before.cwnd);
}

WL_CORE s32 wl_kept_unexplained(const struct wl_kept *kept, const struct wl_balance *at)
{
	return (s32)((at->lost - kept->lost) - (at->heard - kept->heard));
}

// An episode begins. `reported` tells that its head was, `marked` that there is a mark and no loss. `before` are the counts from before the losses
// that begin it. Returns the threshold.
//
// Losses can follow so closely that one episode ends and the next begins with the same acknowledgement. What is open of the one then stays open.
WL_CORE u32 wl_kept_begin(struct wl_kept *kept, struct wl_window window, const struct wl_balance *before, const struct wl_balance *at, int reported,
			  int marked)
{
	if (!kept->episode || kept->reduced) {
		*kept = (struct wl_kept){ 0 };
		kept->lost = before->lost;
		kept->heard = before->heard;
		kept->repaired = before->repaired;
		kept->episode = 1;
	}
	kept->before = window;
	kept->marked = !!marked;
	kept->reduced = marked || (!reported && wl_kept_unexplained(kept, at) > 0);
	return wl_kept_threshold(kept);
}

WL_CORE enum wl_change wl_kept_reduce(struct wl_kept *kept)
{
	if (kept->reduced)
		return WL_SAME;
	kept->reduced = 1;
	kept->delivered = 0;
	return WL_REDUCED;
}

// An acknowledgement arrived in the episode.
WL_CORE enum wl_change wl_kept_ack(struct wl_kept *kept, const struct wl_balance *at)
{
	if (kept->marked)
		return WL_SAME;
	if (wl_kept_unexplained(kept, at) <= 0) {
		kept->waiting = 0;
		if (!kept->reduced)
			return WL_SAME;
		kept->reduced = 0;
		return WL_RESTORED;
	}
	if (!kept->waiting) {
		kept->waiting = 1;
		kept->since = at->now;
		return WL_SAME;
	}
	return at->now - kept->since > at->patience ? wl_kept_reduce(kept) : WL_SAME;
}

// The connection has recovered. The episode is over when all is explained, or when it is too late for that.
WL_CORE enum wl_change wl_kept_settle(struct wl_kept *kept, const struct wl_balance *at)
{
	s32 unexplained = (s32)((at->lost - kept->lost) - (at->repaired - kept->repaired));

	if (kept->marked || kept->reduced || unexplained <= 0) {
		kept->episode = 0;
		return WL_SAME;
	}
	if (!kept->waiting) {
		kept->waiting = 1;
		kept->since = at->now;
	}
	if (at->now - kept->since <= at->patience)
		return WL_SAME;
	kept->episode = 0;
	return wl_kept_reduce(kept);
}

#endif
