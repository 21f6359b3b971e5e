// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The receiver's clock, read from the timestamps of its acknowledgements (RFC 7323): how long a tick is, which no option says.
#ifndef WHYLOSS_CORE_CLOCK_H
#define WHYLOSS_CORE_CLOCK_H

#include "core/event.h"

// Ticks that must have passed before their length is measured.
#define WL_CLOCK_FEWEST 20

struct wl_clock {
	u32 origin; // when the first timestamp came
	u32 latest;
	u32 ticks; // since the first timestamp
	u32 tick; // in microseconds; 0 before it is known
	u32 measure_at; // time from the origin; beyond half the range of the clock it is not measured again
};

#define WL_CLOCK_TICKS(X)                                                                                                             \
	X(1) X(10) X(100) X(1000) X(2000) X(4000) X(5000) X(10000) X(20000) X(40000) X(50000) X(100000) X(200000) X(250000) X(500000) \
		X(1000000)

// The tick in use somewhere that has the smallest ratio to `ticks` in `elapsed`, in either direction.
WL_CORE u32 wl_clock_nearest(u32 elapsed, u32 ticks)
{
	u64 nanos = (u64)elapsed * 1000 / ticks;
	u32 lower = 0;

#define WL_CLOCK_TRY(micros)                                                                               \
	if (nanos <= micros##ULL * 1000) {                                                                 \
		/* measured / lower < higher / measured */                                                 \
		return lower && nanos * nanos < (u64)lower * micros##ULL * 1000000 ? lower : micros##U; \
	}                                                                                                  \
	lower = micros##U;
	WL_CLOCK_TICKS(WL_CLOCK_TRY)
#undef WL_CLOCK_TRY
	return lower;
}

// Returns the ticks since the first timestamp. `began` tells whether there was one before.
WL_CORE u32 wl_clock_ack(struct wl_clock *clock, const struct wl_ack *ack, int began)
{
	u32 elapsed = ack->now - clock->origin;

	if (!began) {
		clock->origin = ack->now;
		clock->latest = ack->tsval;
		return 0;
	}
	if (wl_after(ack->tsval, clock->latest)) {
		clock->ticks += ack->tsval - clock->latest;
		clock->latest = ack->tsval;
	}
	if (elapsed >= clock->measure_at && clock->ticks >= WL_CLOCK_FEWEST && clock->measure_at < 1U << 31) {
		// The delay of an acknowledgement varies, but what it varies by matters less and less.
		clock->measure_at = elapsed < 1U << 30 ? elapsed * 2 : 1U << 31;
		clock->tick = wl_clock_nearest(elapsed, clock->ticks);
	}
	return clock->ticks;
}

#endif
