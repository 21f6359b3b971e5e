// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Which losses speak for congestion, for `auto`. Segments are counted in 1/256.
#ifndef WHYLOSS_CORE_BLAME_H
#define WHYLOSS_CORE_BLAME_H

#include "core/event.h"

// Percent of what is sent that, lost in a round, are congestion whatever the delay says, and the segments lost from which on that counts.
#define WL_BLAME_TOO_MANY 20
#define WL_BLAME_MANY 8
// One unexplained loss in so many that are explained is forgiven.
#define WL_BLAME_ALLOWANCE 20
// Segments, and a part of the window, that are lost beyond `TOO_MANY` of what is sent, from which on losses without explanation are hardly chance.
#define WL_BLAME_RUN 3
#define WL_BLAME_RUN_PART 8

struct wl_blame {
	// Of the latest rounds.
	u32 delivered;
	u32 explained;
	u32 stray; // not explained, and the queue was not full
	u32 forgiven; // unexplained at a full queue, because others were explained
	u32 corruptions; // losses by corruption
	u32 excess; // lost without explanation beyond `TOO_MANY` of what was sent, since that was last none
	// Of this round, in whole segments.
	u32 round_delivered;
	u32 round_lost;
	u8 due; // a loss at a full queue awaits its answer
};

WL_CORE void wl_blame_add(u32 *count, u32 segments)
{
	*count += wl_min(segments, 1U << 16) << 8;
	*count = wl_min(*count, 1U << 31);
}

WL_CORE void wl_blame_delivered(struct wl_blame *blame, u32 segments)
{
	u32 part = 0;

	wl_blame_add(&part, segments);
	part = part * WL_BLAME_TOO_MANY / (100 - WL_BLAME_TOO_MANY);
	blame->excess -= wl_min(blame->excess, part);
	wl_blame_add(&blame->delivered, segments);
	blame->round_delivered += segments;
}

WL_CORE void wl_blame_excused(struct wl_blame *blame, u32 segments)
{
	wl_blame_add(&blame->explained, segments);
	wl_blame_add(&blame->corruptions, segments);
}

// Lost without explanation; of these `full` while the queue was full. Returns whether that asks for an answer.
WL_STAGE int wl_blame_lost(struct wl_blame *blame WL_GIVEN, u32 segments, u32 full)
{
	u32 allowed = blame->explained / WL_BLAME_ALLOWANCE;
	u32 room = allowed > blame->forgiven ? (allowed - blame->forgiven) >> 8 : 0;
	u32 forgiven = wl_min(full, room);

	blame->round_lost += segments;
	wl_blame_add(&blame->excess, segments);
	if (full > forgiven)
		blame->due = 1;
	wl_blame_add(&blame->stray, segments - full);
	wl_blame_add(&blame->forgiven, forgiven);
	wl_blame_add(&blame->corruptions, segments - full + forgiven);
	return blame->due;
}

// Whether a window of `cwnd` segments has to answer now, if what was answered before is repaired. A round has as much as the window: of what it has
// told so far a burst of errors may be most.
WL_CORE int wl_blame_congested(const struct wl_blame *blame, u32 cwnd)
{
	u64 told = (u64)blame->round_lost + blame->round_delivered, sent = told > cwnd ? told : cwnd;

	return blame->due || (blame->round_lost > WL_BLAME_MANY && (u64)blame->round_lost * 100 > sent * WL_BLAME_TOO_MANY);
}

// Many were lost in a row in a window of `cwnd` segments.
WL_CORE int wl_blame_in_a_row(const struct wl_blame *blame, u32 cwnd)
{
	return blame->excess >= wl_max(WL_BLAME_RUN << 8, wl_min(cwnd, 1U << 20) * (256 / WL_BLAME_RUN_PART));
}

WL_CORE void wl_blame_answered(struct wl_blame *blame)
{
	blame->due = 0;
	blame->round_lost = 0;
	blame->excess = 0;
	// Where they are many, a few answers in a row do not make them forgotten.
	blame->corruptions /= 2;
}

// Makes older counts weigh less.
WL_CORE void wl_blame_age(struct wl_blame *blame)
{
	blame->delivered -= blame->delivered / 8;
	blame->explained -= blame->explained / 8;
	blame->stray -= blame->stray / 8;
	blame->forgiven -= blame->forgiven / 8;
	blame->corruptions -= blame->corruptions / 8;
	blame->round_delivered = 0;
	blame->round_lost = 0;
}

// Segments corrupted for each that is delivered, in 1 / WL_ONE.
WL_CORE u32 wl_blame_corrupted(const struct wl_blame *blame)
{
	return wl_share((u64)blame->explained + blame->stray, wl_max(blame->delivered, 1));
}

// Of these only what was explained: the part that is certain.
WL_CORE u32 wl_blame_explained(const struct wl_blame *blame)
{
	return wl_share(blame->explained, wl_max(blame->delivered, 1));
}

// Corruption has struck more often than congestion lately.
WL_CORE int wl_blame_is_corruption(const struct wl_blame *blame)
{
	return blame->corruptions > 1 << 8;
}

#endif
