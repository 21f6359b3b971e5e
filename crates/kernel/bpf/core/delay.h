// SPDX-License-Identifier: (MIT OR Apache-2.0)
// A window that keeps a small queue, for a sender to whom the receiver explains its losses: then delay can say what loss said before.
//
// Once a round trip the least delay of it is compared with the smallest ever. What it exceeds that by is the queue that stands, and its target a
// quarter of the round trip, or a few segments where that is more, up to the round trip. (After Vegas, Brakmo & Peterson 1995, in the form of a target as in
// LEDBAT, RFC 6817.) Neighbours that fill the queue would leave little to such a sender. If the queue stands although next to nothing in it is its
// own, it competes by NewReno's rules, and looks again from time to time or when the queue has emptied (as Copa, Arun & Balakrishnan 2018).
#ifndef WHYLOSS_CORE_DELAY_H
#define WHYLOSS_CORE_DELAY_H

#include "core/newreno.h"

// The target: a fraction of the least round trip, within bounds in microseconds, and no less than some segments of its own.
#define WL_DELAY_FRACTION 4
#define WL_DELAY_LEAST 2000
#define WL_DELAY_MOST 20000
#define WL_DELAY_SEGMENTS 4
// Rounds of a queue of others after which it competes, and rounds of competing after which it looks whether it still has to.
#define WL_DELAY_PRESSED 3
#define WL_DELAY_LOOK 128

// A queue is long from as much as the path itself holds, but not below these.
#define WL_DELAY_LONG 5000

struct wl_delay {
	u32 end; // of the round
	u32 least; // delay in it; 0 before the first sample
	u32 gap; // least time that a segment took in a round trip; 0 before the first
	u32 saved; // the window when it last stopped to compete
	u16 rounds; // of competing
	u8 pressed; // rounds in a row
	u8 competing;
};

// The queue's delay that is aimed at, on a path of `base` where segments came as close as `gap` at best.
WL_CORE u32 wl_delay_target(u32 base, u32 gap)
{
	u32 target = wl_max(wl_min(base / WL_DELAY_FRACTION, WL_DELAY_MOST), WL_DELAY_LEAST);

	return wl_max(target, wl_min((u64)gap * WL_DELAY_SEGMENTS, base));
}

// Whether the queue on a path of `base` is so long that nothing can be gained by it: then a loss is a reason to shrink the window, whatever
// its cause. BBR's bound on what is under way is the same (Cardwell et al. 2016: twice what the path holds).
WL_CORE int wl_delay_long(u32 cwnd, u32 rtt, u32 base)
{
	u32 queue = base && rtt > base ? rtt - base : 0;

	return queue > wl_max(base, WL_DELAY_LONG) && (u64)cwnd * queue > (u64)rtt * WL_DELAY_SEGMENTS;
}

// Segments of a window that fill the path and leave the queue that is aimed at.
WL_CORE u32 wl_delay_path(u32 cwnd, u32 rtt, u32 base)
{
	u32 target = wl_delay_target(base, rtt / wl_max(cwnd, 1));

	return base && rtt > base + target ? (u64)cwnd * (base + target) / rtt : cwnd;
}

WL_CORE void wl_delay_compete(struct wl_delay *delay, struct wl_window *window)
{
	delay->competing = 1;
	delay->rounds = 0;
	// Back to what it had, by slow start.
	window->ssthresh = wl_max(wl_max(delay->saved, window->cwnd), 2);
}

WL_CORE void wl_delay_yield(struct wl_delay *delay, const struct wl_window *window)
{
	delay->competing = 0;
	delay->pressed = 0;
	delay->saved = window->cwnd;
}

// A round is over in which the least delay was `rtt`.
WL_CORE void wl_delay_round(struct wl_delay *delay, struct wl_window *window, u32 rtt, u32 base, int limited)
{
	u32 queue = rtt > base ? rtt - base : 0, gap = rtt / wl_max(window->cwnd, 1), target;
	u32 own = (u64)window->cwnd * queue / wl_max(rtt, 1);

	// The smallest: it does not grow when neighbours take their share.
	if (limited && (!delay->gap || gap < delay->gap))
		delay->gap = gap;
	target = wl_delay_target(base, delay->gap);
	if (delay->competing) {
		if (++delay->rounds >= WL_DELAY_LOOK || queue < target / 4)
			wl_delay_yield(delay, window);
		return;
	}
	if (window->cwnd < window->ssthresh) {
		if (queue > target / 2)
			window->ssthresh = window->cwnd;
		return;
	}
	if (queue <= target + target / 4) {
		delay->pressed = 0;
		if (limited && queue < target)
			window->cwnd += queue < target / 2 ? wl_max(window->cwnd / 16, 1) : 1;
		return;
	}
	if (own <= WL_DELAY_SEGMENTS) {
		if (++delay->pressed >= WL_DELAY_PRESSED)
			wl_delay_compete(delay, window);
		return;
	}
	delay->pressed = 0;
	// What the path carries now, with the queue that is wanted; no more than a quarter less at once.
	window->cwnd = wl_max((u64)window->cwnd * (base + target) / (base + queue), window->cwnd - window->cwnd / 4);
	window->cwnd = wl_threshold(window->cwnd);
	window->ssthresh = wl_min(window->ssthresh, window->cwnd);
}

// An acknowledgement while the window may grow. `base` is the least round trip known; 0 if none is.
WL_CORE void wl_delay_ack(struct wl_delay *delay, struct wl_newreno *reno, struct wl_window *window, const struct wl_ack *ack, u32 base)
{
	if (ack->delay > 0 && (!delay->least || (u32)ack->delay < delay->least))
		delay->least = ack->delay;
	if (delay->competing || window->cwnd < window->ssthresh)
		wl_newreno_grow(reno, window, ack);
	if (wl_after(delay->end, ack->una))
		return;
	delay->end = ack->nxt;
	if (delay->least && base)
		wl_delay_round(delay, window, delay->least, base, ack->limited);
	delay->least = 0;
}

#endif
