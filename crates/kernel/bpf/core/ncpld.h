// SPDX-License-Identifier: (MIT OR Apache-2.0)
// NCPLD (Samaraweera 1999), by the reading RTT_min + 2 S of its threshold: congestion if the latest segment waited for as long as the
// bottleneck takes to serve two.
#ifndef WHYLOSS_CORE_NCPLD_H
#define WHYLOSS_CORE_NCPLD_H

#include "core/rounds.h"

#define WL_NCPLD_KAPPA 2
#define WL_NCPLD_ROUNDS 10

struct wl_ncpld {
	u32 latest; // round-trip time; 0 before the first sample
	u32 least;
	u32 before; // when the rate was last sampled
	u32 segments; // delivered since
	struct wl_rounds rounds;
	u32 rates[WL_NCPLD_ROUNDS]; // the largest of each complete round, in 1/256 segments a second
	u32 rate; // of the round under way
	u8 in_round;
	u8 began;
};

WL_CORE void wl_ncpld_ack(struct wl_ncpld *ncpld, const struct wl_ack *ack)
{
	u32 at, spacing, rtt = wl_max(ack->delay, 1);
	u64 rate;

	if (ack->delay >= 0) {
		ncpld->least = ncpld->latest ? wl_min(ncpld->least, rtt) : rtt;
		ncpld->latest = rtt;
	}
	if (wl_rounds_ack(&ncpld->rounds, ack, ncpld->in_round)) {
		// No ring: the kernel's private state cannot be indexed by a variable.
		for (at = WL_NCPLD_ROUNDS - 1; at > 0; at--)
			ncpld->rates[at] = ncpld->rates[at - 1];
		ncpld->rates[0] = ncpld->rate;
		ncpld->rate = 0;
	}
	ncpld->in_round = 1;
	spacing = ack->now - ncpld->before;
	if (ack->delay < 0 || !ncpld->began) {
		// A filled hole delivers at once what had arrived long before.
		ncpld->began = 1;
		ncpld->before = ack->now;
		ncpld->segments = 0;
		return;
	}
	ncpld->segments += ack->delivered;
	if (!spacing)
		return;
	rate = ((u64)ncpld->segments * 1000000 << 8) / spacing;
	ncpld->rate = wl_max(ncpld->rate, rate < ~0U ? (u32)rate : ~0U);
	ncpld->before = ack->now;
	ncpld->segments = 0;
}

WL_CORE struct wl_verdict wl_ncpld_judge(const struct wl_ncpld *ncpld)
{
	u64 waited; // in 1/256 segments, by a million
	u32 rate = ncpld->rate, at;

	for (at = 0; at < WL_NCPLD_ROUNDS; at++)
		rate = wl_max(rate, ncpld->rates[at]);
	if (!ncpld->latest || !rate)
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	waited = (u64)(ncpld->latest - ncpld->least) * rate;
	return wl_decided(waited < WL_NCPLD_KAPPA * 256000000ULL, wl_share(256000000, 256000000 + waited));
}

#endif
