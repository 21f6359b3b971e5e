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
// Losses that one acknowledgement reveals, from which on they are hardly chance.
#define WL_BLAME_RUN 3

struct wl_blame {
	// Of the latest rounds.
	u32 delivered;
	u32 explained;
	u32 stray; // not explained, and the queue was not full
	u32 forgiven; // unexplained at a full queue, because others were explained
	u32 corruptions; // losses by corruption
	// Of this round, in whole segments.
	u32 round_delivered;
	u32 round_lost;
	u32 revealed; // lost without explanation, by the acknowledgement under way, in whole segments
	u8 due; // a loss at a full queue awaits its answer
};

WL_CORE void wl_blame_add(u32 *count, u32 segments)
{
	*count += wl_min(segments, 1U << 16) << 8;
	*count = wl_min(*count, 1U << 31);
}

WL_CORE void wl_blame_delivered(struct wl_blame *blame, u32 segments)
{
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
	blame->revealed += segments;
	if (full > forgiven)
		blame->due = 1;
	wl_blame_add(&blame->stray, segments - full);
	wl_blame_add(&blame->forgiven, forgiven);
	wl_blame_add(&blame->corruptions, segments - full + forgiven);
	return blame->due;
}

// Whether the window has to answer now, if what was answered before is repaired.
WL_CORE int wl_blame_congested(const struct wl_blame *blame)
{
	u64 sent = (u64)blame->round_lost + blame->round_delivered;

	return blame->due || (blame->round_lost > WL_BLAME_MANY && (u64)blame->round_lost * 100 > sent * WL_BLAME_TOO_MANY);
}

// Whether the acknowledgement under way, which is told by this, has revealed a run of losses.
WL_CORE int wl_blame_take_run(struct wl_blame *blame)
{
	u32 revealed = blame->revealed;

	blame->revealed = 0;
	return revealed >= WL_BLAME_RUN;
}

WL_CORE void wl_blame_answered(struct wl_blame *blame)
{
	blame->due = 0;
	blame->round_lost = 0;
	// Where they are many, a few answers in a row do not make them forgotten.
	blame->corruptions /= 2;
}

WL_CORE void wl_blame_round(struct wl_blame *blame)
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
