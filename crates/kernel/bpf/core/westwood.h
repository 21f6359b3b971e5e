// SPDX-License-Identifier: (MIT OR Apache-2.0)
// TCP Westwood (Mascolo et al. 2001): NewReno's growth, and a threshold of measured rate times smallest delay.
#ifndef WHYLOSS_CORE_WESTWOOD_H
#define WHYLOSS_CORE_WESTWOOD_H

#include "core/newreno.h"

// The filter's constants in microseconds: twice tau, and tau / m, after which a sample of zero is taken.
#define WL_WESTWOOD_TWO_TAU 1000000U
#define WL_WESTWOOD_STEP 250000U
// Rates are in 1/256 segments a second, and end here: 2^29 segments a second.
#define WL_WESTWOOD_MOST (1ULL << 37)
// Samples of zero after which nothing is left of any rate: (3/5)^54 < 2^-37 after the first one.
#define WL_WESTWOOD_FORGOTTEN 56

struct wl_westwood {
	u64 rate;
	u64 last; // the sample before
	u32 since; // where the sample that is being taken begins
	u32 segments; // of it
	u32 least; // the smallest delay; 0 before there is one
	u8 began;
	u8 sampled;
	struct wl_newreno growth;
};

WL_CORE void wl_westwood_init(struct wl_westwood *west, u8 limit, u8 limit_after_timeout)
{
	*west = (struct wl_westwood){ 0 };
	wl_newreno_init(&west->growth, limit, limit_after_timeout);
}

// Mascolo et al. 2001, eq. 1, with a sample that is at most 1.5 steps long.
WL_CORE void wl_westwood_step(struct wl_westwood *west, u64 sample, u32 elapsed)
{
	u64 weighted, total = WL_WESTWOOD_TWO_TAU + elapsed;

	if (elapsed > WL_WESTWOOD_TWO_TAU)
		elapsed = WL_WESTWOOD_TWO_TAU;
	if (west->sampled) {
		weighted = (WL_WESTWOOD_TWO_TAU - elapsed) * west->rate + elapsed * (sample + west->last);
		west->rate = (weighted + total / 2) / total;
	} else {
		west->rate = sample;
		west->sampled = 1;
	}
	west->last = sample;
}

// Samples of zero for a time without acknowledgements. An acknowledgement less than half a step after one takes its place.
WL_CORE void wl_westwood_pass(struct wl_westwood *west, u32 now)
{
	u32 idle, taken, half_steps = (now - west->since) / (WL_WESTWOOD_STEP / 2);

	if (!west->began || half_steps < 3)
		return;
	idle = (half_steps - 1) / 2;
	west->since += idle * WL_WESTWOOD_STEP;
	if (!west->sampled)
		return;
	for (taken = 0; taken < WL_WESTWOOD_FORGOTTEN; taken++) {
		if (taken >= idle)
			return;
		wl_westwood_step(west, 0, WL_WESTWOOD_STEP);
	}
	west->rate = 0;
}

WL_CORE void wl_westwood_ack(struct wl_westwood *west, const struct wl_ack *ack)
{
	u32 elapsed;
	u64 sample;

	if (ack->delay >= 0) {
		u32 delay = wl_max(ack->delay, 1);

		west->least = west->least ? wl_min(west->least, delay) : delay;
	}
	if (!ack->delivered)
		return;
	wl_westwood_pass(west, ack->now);
	if (!west->began) {
		west->began = 1;
		west->since = ack->now;
		return;
	}
	west->segments += ack->delivered;
	elapsed = ack->now - west->since;
	if (!elapsed)
		return; // one sample with what follows at once
	sample = ((u64)west->segments * 1000000 << 8) / elapsed;
	wl_westwood_step(west, sample < WL_WESTWOOD_MOST ? sample : WL_WESTWOOD_MOST, elapsed);
	west->segments = 0;
	west->since = ack->now;
}

WL_CORE void wl_westwood_grow(struct wl_westwood *west, struct wl_window *window, const struct wl_ack *ack)
{
	wl_newreno_grow(&west->growth, window, ack);
}

// What the path holds without a queue; half the flight before that is known. May be more than the window, which then stays.
WL_CORE u32 wl_westwood_threshold(struct wl_westwood *west, const struct wl_loss *loss)
{
	u32 half = wl_newreno_threshold(&west->growth, loss);
	u64 segments;

	wl_westwood_pass(west, loss->now);
	if (!west->sampled || !west->least)
		return half;
	segments = (west->rate * wl_min(west->least, 1U << 26) / 1000000) >> 8;
	return wl_threshold(segments < 1U << 30 ? segments : 1U << 30);
}

#endif
