// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What a sender does with the reports: an episode of losses keeps its window if the receiver reported each of them damaged.
//
// It does so from the beginning if the first loss was reported, or if the path has damaged segments lately. A report can be late,
// because SACK blocks leave no room for it: the report of each loss is waited for, beyond the end of recovery if need be. Then the loss
// counts as congestion. If all reports come after the window was reduced, it comes back, also when recovery is over; until it is too late for that.
//
// Only reports count whose segments were sent again: a receiver that calls damaged what it has explains nothing.
#ifndef WHYLOSS_CORE_KEPT_H
#define WHYLOSS_CORE_KEPT_H

#include "core/newreno.h"
#include "core/prr.h"
#include "core/repair.h"

// For how many times the patience a reduction can be taken back.
#define WL_KEPT_LATE 4
// Tenths of the window that a reduction leaves at most: what CUBIC leaves (RFC 9438, 4.6).
#define WL_KEPT_MOST 7

struct wl_kept {
	struct wl_window before; // when the episode began
	u32 path; // segments that fill the path; 0 where a reduction is by half whatever it holds
	u32 owed; // window to come back to once all is explained; 0 if it was not reduced
	u32 after; // losses repaired up to this retransmission count no more
	u32 answered; // for those up to this one the window was reduced
	u32 delivered; // segments, since the window began to fall
	u32 out; // segments sent in recovery until then
	u8 reduced; // in this episode
};

enum wl_change { WL_SAME, WL_REDUCED, WL_RESTORED };

WL_CORE u32 wl_kept_threshold(const struct wl_kept *kept)
{
	u32 half = kept->before.cwnd / 2, most = (u64)kept->before.cwnd * WL_KEPT_MOST / 10;

	return kept->reduced ? wl_threshold(wl_max(half, wl_min(kept->path, most))) : wl_max(kept->before.ssthresh, kept->before.cwnd);
}

WL_CORE void wl_kept_reduce(struct wl_kept *kept, u32 number)
{
	kept->reduced = 1;
	kept->answered = number;
	kept->delivered = 0;
	kept->owed = wl_max(kept->owed, kept->before.cwnd);
}

// Everything up to now is history: nothing of it shrinks the window any more or brings it back.
WL_CORE void wl_kept_forget(struct wl_kept *kept, u32 number)
{
	kept->after = number;
	kept->answered = number;
	kept->owed = 0;
}

// Congestion was signalled by a mark, which nothing takes back. An episode reduces the window once.
WL_CORE enum wl_change wl_kept_mark(struct wl_kept *kept, u32 number)
{
	enum wl_change change = kept->reduced ? WL_SAME : WL_REDUCED;

	if (change != WL_SAME)
		wl_kept_reduce(kept, number);
	wl_kept_forget(kept, number);
	return change;
}

// An episode begins, after retransmission `number`. `reported` tells that its losses are taken for damage for the time being; `marked` that
// a mark begins it. Returns the threshold.
WL_CORE u32 wl_kept_begin(struct wl_kept *kept, struct wl_window window, u32 path, u32 number, int reported, int marked)
{
	kept->before = window;
	kept->path = path;
	kept->reduced = 0;
	if (marked)
		wl_kept_mark(kept, number);
	else if (!reported)
		wl_kept_reduce(kept, number);
	return wl_kept_threshold(kept);
}

// An acknowledgement arrived. `repaired` tells that everything lost was sent again; the report of a loss may be missing for `patience`.
WL_CORE enum wl_change wl_kept_ack(struct wl_kept *kept, const struct wl_sent *sent, u32 patience, int repaired)
{
	u32 owed = kept->owed;
	struct wl_open open;

	// An episode reduces the window once.
	if (kept->reduced)
		kept->answered = sent->number;
	wl_repair_open(&open, sent, kept->after, kept->answered);
	if (!open.count && repaired) {
		wl_kept_forget(kept, sent->number);
		if (!owed)
			return WL_SAME;
		kept->before.cwnd = owed;
		kept->reduced = 0;
		return WL_RESTORED;
	}
	if (open.longest_new > patience) {
		wl_kept_reduce(kept, sent->number);
		return WL_REDUCED;
	}
	if (open.longest / WL_KEPT_LATE > patience)
		wl_kept_forget(kept, kept->answered);
	return WL_SAME;
}

// Recovery is over.
WL_CORE void wl_kept_end(struct wl_kept *kept)
{
	kept->reduced = 0;
}

#endif
