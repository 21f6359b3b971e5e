// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Which reports of damaged segments a sender believes. Each that it believes stands for one lost transmission, and excuses no other.
#ifndef WHYLOSS_CORE_ACCEPTED_H
#define WHYLOSS_CORE_ACCEPTED_H

#include "core/budget.h"
#include "core/loop.h"
#include "core/option.h"
#include "core/repair.h"

#define WL_ACCEPTED 256
// Wrong echoes that are forgiven: these, and one for so many right ones, because damage can hit the nonce itself.
#define WL_ACCEPTED_WRONG 2
#define WL_ACCEPTED_RIGHT 32
#define WL_ACCEPTED_REPEATED 4
// Segments without a report after which a path is taken for one that damages none.
#define WL_ACCEPTED_LATELY 256

enum wl_belief {
	WL_BELIEVED,
	WL_REPEATED, // known
	WL_STALE, // names nothing that is outstanding
	WL_MARKED, // congestion wins over corruption
	WL_UNPROVEN, // no position, or no echo where one is asked for
	WL_WRONG, // the echo is of no transmission of that segment
	WL_LIMITED, // too many
	WL_DISTRUSTED, // too many wrong echoes before
};

struct wl_accepted_one {
	u32 seq;
	u32 nonce; // 0 where none is asked for
	u16 repaired; // the segment was sent again: it was missing indeed
	u16 gone; // further behind than any window: others get its numbers
};

struct wl_accepted {
	u32 total; // believed so far
	u32 repaired; // of these, whose segments were sent again
	u32 wrong;
	u32 wrong_seq[WL_ACCEPTED_REPEATED]; // the latest wrong reports, and what a compact one has of their echoes:
	u32 wrong_echo[WL_ACCEPTED_REPEATED]; // a receiver repeats what damage has made wrong, and a guess made again is no other guess
	u32 aged; // reports that were looked at for their age
	u32 since; // segments delivered since one of those segments was sent again, or a report of it came afterwards
	struct wl_budget budget;
	u8 count; // that the latest report told
	u8 nonces; // an echo is asked for
	struct wl_accepted_one one[WL_ACCEPTED];
};

struct wl_outstanding {
	u32 una;
	u32 nxt;
};

WL_CORE int wl_accepted_distrusted(const struct wl_accepted *accepted)
{
	return accepted->wrong > WL_ACCEPTED_WRONG + accepted->total / WL_ACCEPTED_RIGHT;
}

// Whether the path has damaged segments lately: reports of what the receiver has do not count.
WL_CORE int wl_accepted_lately(const struct wl_accepted *accepted)
{
	return accepted->repaired && accepted->since < WL_ACCEPTED_LATELY;
}

// Segments were delivered, to a sender with a window of `window`.
WL_CORE void wl_accepted_delivered(struct wl_accepted *accepted, u32 segments, u32 window)
{
	accepted->since = wl_min(accepted->since + segments, WL_ACCEPTED_LATELY);
	wl_budget_earn(&accepted->budget, segments, window);
}

// A look through the reports believed.
struct wl_look {
	const struct wl_accepted *accepted;
	u32 seq;
	u32 nonce; // 0 fits any
	u32 known; // it was reported with this nonce
};

WL_STEP wl_look_step(u32 round, struct wl_look *look)
{
	const struct wl_accepted_one *one = &look->accepted->one[round % WL_ACCEPTED];

	if (round >= look->accepted->total)
		return 1;
	if (one->gone || one->seq != look->seq || (look->nonce && one->nonce != look->nonce))
		return 0;
	look->known = 1;
	return 1;
}

// Whether a transmission of the segment at `seq` was reported; that with `nonce`, unless it is 0.
WL_CORE int wl_accepted_has(const struct wl_accepted *accepted, u32 seq, u32 nonce)
{
	struct wl_look look = { accepted, seq, nonce, 0 };

	WL_LOOP(WL_ACCEPTED, wl_look_step, &look);
	return look.known;
}

struct wl_repair {
	struct wl_accepted *accepted;
	u32 seq;
	u32 len;
	u32 explained;
};

WL_STEP wl_repair_step(u32 round, struct wl_repair *repair)
{
	struct wl_accepted_one *one = &repair->accepted->one[round % WL_ACCEPTED];

	if (round >= repair->accepted->total)
		return 1;
	if (!one->gone && !one->repaired && one->seq - repair->seq < repair->len) {
		one->repaired = 1;
		repair->accepted->repaired++;
		repair->accepted->since = 0;
		repair->explained++;
	}
	return 0;
}

// `len` octets from `seq` on are sent again. A report of a segment that is never sent again excuses nothing: the receiver has it. Returns how many
// losses were reported that this repairs.
WL_CORE u32 wl_accepted_repair(struct wl_accepted *accepted, u32 seq, u32 len)
{
	struct wl_repair repair = { accepted, seq, len, 0 };

	WL_LOOP(WL_ACCEPTED, wl_repair_step, &repair);
	return repair.explained;
}

// First transmissions have come to `seq`. A report further behind than any window stands for nothing any more, before other octets have the same
// numbers. One is looked at each time, which is soon enough.
WL_CORE void wl_accepted_age(struct wl_accepted *accepted, u32 seq)
{
	struct wl_accepted_one *one = &accepted->one[accepted->aged++ % WL_ACCEPTED];

	if (seq - one->seq > WL_LARGEST_WINDOW)
		one->gone = 1;
}

// A report had a wrong echo, of which these are the last bits.
WL_CORE void wl_accepted_refuse(struct wl_accepted *accepted, u32 seq, u32 echo)
{
	u32 i, at;

	for (i = 0; i < WL_ACCEPTED_REPEATED; i++)
		if (i < accepted->wrong && accepted->wrong_seq[i] == seq && accepted->wrong_echo[i] == echo)
			return;
	at = accepted->wrong++ % WL_ACCEPTED_REPEATED;
	accepted->wrong_seq[at] = seq;
	accepted->wrong_echo[at] = echo;
}

WL_CORE enum wl_belief wl_accept_report(struct wl_accepted *accepted, struct wl_sent *sent, const struct wl_report *report,
				       const struct wl_outstanding *at)
{
	struct wl_transmission which = { 0 };
	int late = report->seq - at->una >= at->nxt - at->una, stepped = report->counted && report->count != accepted->count;
	struct wl_look look = { accepted, report->seq, 0, 0 };
	u32 repaired;

	if (wl_accepted_distrusted(accepted))
		return WL_DISTRUSTED;
	if (report->counted)
		accepted->count = report->count;
	if (late && !accepted->nonces)
		return WL_STALE;
	if (report->congested)
		return WL_MARKED;
	if (!report->confirmed || (accepted->nonces && !report->echoed))
		return WL_UNPROVEN;
	if (accepted->nonces) {
		which = wl_sent_find(sent, report->seq, report->echo, report->echoed);
		// What was acknowledged meanwhile counts if it was sent again: its report found no room before.
		if (late && !which.followed)
			return WL_STALE;
		if (!which.found) {
			wl_accepted_refuse(accepted, report->seq, report->echo & WL_COMPACT_ECHO);
			return WL_WRONG;
		}
		look.nonce = which.nonce;
	}
	WL_LOOP(WL_ACCEPTED, wl_look_step, &look);
	// Without nonces only a step of the count tells new damage to a segment from a repeated report of the old.
	if (look.known && (accepted->nonces || !stepped))
		return WL_REPEATED;
	if (!wl_budget_spend(&accepted->budget))
		return WL_LIMITED;
	repaired = which.followed;
	if (repaired || !accepted->nonces)
		repaired |= wl_repair_explain(sent, report->seq, which.number);
	accepted->one[accepted->total % WL_ACCEPTED] = (struct wl_accepted_one){ report->seq, which.nonce, !!repaired, 0 };
	accepted->total++;
	accepted->repaired += repaired;
	accepted->since = repaired ? 0 : accepted->since;
	return WL_BELIEVED;
}

#endif
