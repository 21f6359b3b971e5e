// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What delay tells of a queue, for `auto`: the least delay known, how the delays of the latest rounds lie, and where the queue was when
// segments were lost.
#ifndef WHYLOSS_CORE_FILLING_H
#define WHYLOSS_CORE_FILLING_H

#include "core/loop.h"

// The least delay is forgotten after so many parts of so many microseconds: 30 s.
#define WL_FILLING_PARTS 16
#define WL_FILLING_PART 1875000
// Places for complete rounds. One is empty: the delays of 15 rounds count beside those of the round under way.
#define WL_FILLING_ROUNDS 16
// Samples around a moment. Of those around a loss the longest counts: what left just before and just after it.
#define WL_FILLING_AROUND 8
// Losses of one acknowledgement that are looked at one by one: after these the mean of places has arrived where it goes.
#define WL_FILLING_LOSSES 16

struct wl_delays {
	u32 longest;
	u32 samples;
	u64 sum;
};

// Delays in microseconds, no less than 1; 0 where there is none.
struct wl_filling {
	u32 base; // the least of all parts and of the one under way
	u32 part[WL_FILLING_PARTS]; // the least of each complete part
	u32 part_now;
	u32 part_began;
	u32 least; // of the round
	u32 around[WL_FILLING_AROUND];
	struct wl_delays round[WL_FILLING_ROUNDS];
	struct wl_delays past; // of all of these
	struct wl_delays now; // of the round under way
	s32 places; // where the queue was at the latest losses, on average: 0 at its mean, WL_ONE at its longest
	u8 part_next;
	u8 round_next;
	u8 around_next;
	u8 around_known;
	u8 began;
};

WL_CORE void wl_filling_init(struct wl_filling *filling)
{
	*filling = (struct wl_filling){ 0 };
	filling->places = WL_ONE;
}

WL_CORE u32 wl_least(u32 a, u32 b)
{
	return a && (!b || a < b) ? a : b;
}

// Time goes on to `now`: forgets the parts that are too old.
WL_CORE void wl_filling_pass(struct wl_filling *filling, u32 now)
{
	u32 parts = (now - filling->part_began) / WL_FILLING_PART, i;

	if (!filling->began) {
		filling->began = 1;
		filling->part_began = now;
		return;
	}
	if (!parts)
		return;
	// The part under way is one more.
	for (i = 0; i <= WL_FILLING_PARTS; i++) {
		if (i >= parts)
			break;
		filling->part[filling->part_next++ % WL_FILLING_PARTS] = filling->part_now;
		filling->part_now = 0;
	}
	filling->part_began += parts * WL_FILLING_PART;
	filling->base = 0;
	for (i = 0; i < WL_FILLING_PARTS; i++)
		filling->base = wl_least(filling->base, filling->part[i]);
}

// Takes a sample, none if it is below 0; returns whether there was one.
WL_STAGE int wl_filling_ack(struct wl_filling *filling WL_GIVEN, u32 now, s32 sample)
{
	u32 delay = sample > 0 ? sample : 1;

	if (sample < 0)
		return 0;
	wl_filling_pass(filling, now);
	filling->part_now = wl_least(filling->part_now, delay);
	filling->base = wl_least(filling->base, delay);
	filling->least = wl_least(filling->least, delay);
	filling->now.longest = wl_max(filling->now.longest, delay);
	filling->now.sum += delay;
	filling->now.samples++;
	filling->around[filling->around_next++ % WL_FILLING_AROUND] = delay;
	if (filling->around_known < WL_FILLING_AROUND)
		filling->around_known++;
	return 1;
}

// A round is over; returns the least delay in it.
WL_CORE u32 wl_filling_round(struct wl_filling *filling)
{
	u32 least = filling->least;

	filling->least = 0;
	return least;
}

// The retransmission timer has expired: the latest delays were those of a window that is gone.
WL_CORE void wl_filling_timeout(struct wl_filling *filling)
{
	u32 i;

	filling->least = 0;
	filling->around_known = 0;
	for (i = 0; i < WL_FILLING_AROUND; i++)
		filling->around[i] = 0;
}

// Forgets the oldest delays.
WL_STAGE int wl_filling_age(struct wl_filling *filling WL_GIVEN)
{
	struct wl_delays *latest = &filling->round[filling->round_next++ % WL_FILLING_ROUNDS];
	struct wl_delays *oldest = &filling->round[filling->round_next % WL_FILLING_ROUNDS];
	u32 i;

	filling->past.sum += filling->now.sum - oldest->sum;
	filling->past.samples += filling->now.samples - oldest->samples;
	*latest = filling->now;
	*oldest = (struct wl_delays){ 0 };
	filling->past.longest = 0;
	for (i = 0; i < WL_FILLING_ROUNDS; i++)
		filling->past.longest = wl_max(filling->past.longest, filling->round[i].longest);
	filling->now = (struct wl_delays){ 0 };
	return 0;
}

// The least of the latest delays; 0 while there are too few to tell.
WL_CORE u32 wl_filling_standing(const struct wl_filling *filling)
{
	u32 least = ~0U, i;

	for (i = 0; i < WL_FILLING_AROUND; i++)
		least = wl_min(least, filling->around[i]);
	return filling->around_known < WL_FILLING_AROUND ? 0 : least;
}

// What is known of others in the queue.
enum wl_others {
	WL_UNSEEN, // nothing: what speaks for congestion has to be clear
	WL_SUSPECTED, // a loss at a full queue may have been their doing
	WL_SEEN, // they keep it long
};

// Segments that are lost at one moment.
struct wl_place_of {
	struct wl_filling *filling;
	s32 place; // of the queue between its mean and its longest
	u32 segments;
	u32 speak; // for congestion, of those looked at
	u32 latest; // whether the latest does
	u32 stands; // there is more than two segments' delay
	u32 others;
};

WL_STEP wl_filling_step(u32 round, struct wl_place_of *at)
{
	s32 half = WL_ONE / 2, from = at->others == WL_SEEN ? 0 : half;

	if (round >= at->segments)
		return 1;
	at->filling->places += (at->place - at->filling->places) >> 3;
	at->latest = at->stands && at->place > from && (at->others != WL_UNSEEN || at->filling->places > half);
	at->speak += at->latest;
	return 0;
}

// Segments are lost, which take `unit` each at the rate delivered. Returns how many of them speak for congestion: the queue is about as long as it
// ever was lately, and unless `others` are suspected there it was so when other segments were lost. Where they were seen, it is enough that it is
// longer than its mean. A delay of two segments is no queue.
WL_STAGE u32 wl_filling_lost(struct wl_filling *filling WL_GIVEN, u32 segments, u32 unit, u32 others)
{
	u32 samples = filling->past.samples + filling->now.samples, most = wl_max(filling->past.longest, filling->now.longest);
	struct wl_place_of at = { .filling = filling, .segments = segments, .others = others };
	u32 now = 0, mean, i;

	if (!filling->base || !samples)
		return segments;
	for (i = 0; i < WL_FILLING_AROUND; i++)
		now = wl_max(now, filling->around[i]);
	mean = wl_max((filling->past.sum + filling->now.sum) / samples, filling->base);
	at.stands = now > filling->base + 2 * unit;
	// A loss that has nothing to do with the queue lies at the mean, on average.
	if (most > mean) {
		u32 apart = wl_share(now > mean ? now - mean : mean - now, most - mean);

		at.place = now > mean ? (s32)apart : -(s32)apart;
	}
	WL_LOOP(WL_FILLING_LOSSES, wl_filling_step, &at);
	// The others as the last one looked at.
	return at.speak + (at.latest && segments > WL_FILLING_LOSSES ? segments - WL_FILLING_LOSSES : 0);
}

#endif
