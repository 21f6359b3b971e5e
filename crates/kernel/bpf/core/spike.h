// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Spike (Tobe et al. 2000; Cen, Cosman & Voelker 2003): congestion while the one-way trip time is in a spike, which begins above the middle
// between its extremes and ends below a third.
//
// The published one works at the receiver. This one works at the sender, on the relative trip of the newest segment that an
// acknowledgement reports: from when it left, by the sender's clock, to the timestamp of the acknowledgement, by the receiver's. So the
// way back does not count, but the trip has the resolution of the receiver's ticks, and nothing is known without timestamps.
#ifndef WHYLOSS_CORE_SPIKE_H
#define WHYLOSS_CORE_SPIKE_H

#include "core/clock.h"

// Less is no evidence: samples, and microseconds between the extremes; a range of less than four ticks is none either.
#define WL_SPIKE_FEWEST 20
#define WL_SPIKE_RANGE 1000
#define WL_SPIKE_TICKS 4

// The state machine, fed with trips.
struct wl_spike {
	s32 latest;
	s32 least;
	s32 most;
	u16 samples; // up to 65535
	u8 high;
	u32 height; // the largest alpha, with beta in proportion, for which there would be a spike now
};

// The trips of acknowledged segments.
struct wl_trips {
	struct wl_clock clock;
	u32 origin; // when the first segment left whose trip is known
	u32 ticks; // of the clock then
	u32 tick; // that these trips were measured with
	u8 stamped;
};

WL_CORE u32 wl_spike_range(const struct wl_spike *spike)
{
	return (u32)spike->most - (u32)spike->least;
}

WL_CORE void wl_spike_trip(struct wl_spike *spike, s32 trip)
{
	u32 waiting, range, usage;

	spike->least = spike->samples && spike->least < trip ? spike->least : trip;
	spike->most = spike->samples && spike->most > trip ? spike->most : trip;
	spike->latest = trip;
	if (spike->samples != 65535)
		spike->samples++;
	waiting = (u32)trip - (u32)spike->least;
	range = wl_spike_range(spike);
	if (!range)
		return;
	spike->high = spike->high ? (u64)waiting * 3 >= range : (u64)waiting * 2 > range;
	// With beta = 2/3 alpha a spike of alpha lasts until the usage falls below 2/3 alpha.
	usage = wl_share(waiting, range);
	spike->height = wl_max(usage, wl_min(spike->height, usage + usage / 2));
}

WL_CORE struct wl_verdict wl_spike_verdict(const struct wl_spike *spike, u32 least_range)
{
	if (spike->samples < WL_SPIKE_FEWEST || wl_spike_range(spike) < wl_max(least_range, 1))
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	return wl_decided(!spike->high, WL_ONE - wl_min(spike->height, WL_ONE));
}

// The acknowledgement's part: turns it into a trip.
WL_CORE void wl_spike_ack(struct wl_spike *spike, struct wl_trips *trips, const struct wl_ack *ack)
{
	u32 ticks, sent = ack->now - (u32)ack->delay;

	if (!ack->stamped)
		return;
	ticks = wl_clock_ack(&trips->clock, ack, trips->stamped);
	trips->stamped = 1;
	if (!trips->clock.tick || ack->delay < 0)
		return;
	if (trips->tick != trips->clock.tick) {
		// Trips that were measured with another tick say nothing of these.
		*spike = (struct wl_spike){ 0 };
		trips->tick = trips->clock.tick;
		trips->origin = sent;
		trips->ticks = ticks;
	}
	wl_spike_trip(spike, (s32)((ticks - trips->ticks) * trips->tick - (sent - trips->origin)));
}

WL_CORE struct wl_verdict wl_spike_judge(const struct wl_spike *spike, const struct wl_trips *trips)
{
	return wl_spike_verdict(spike, wl_max(WL_SPIKE_RANGE, WL_SPIKE_TICKS * trips->tick));
}

#endif
