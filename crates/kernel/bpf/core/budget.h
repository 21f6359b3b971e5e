// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The rate limit of the hardened scheme, the same at both ends: in each interval at most a share of the segments that the interval before
// brought, and never fewer than a few.
#ifndef WHYLOSS_CORE_BUDGET_H
#define WHYLOSS_CORE_BUDGET_H

#include "core/event.h"

// Grants an interval on a connection at rest, and segments that are worth a grant.
#define WL_BUDGET_FLOOR 4
#define WL_BUDGET_SEGMENTS 4

struct wl_budget {
	u32 begin; // microseconds
	u32 segments;
	u32 left;
};

WL_CORE void wl_budget_init(struct wl_budget *budget, u32 now)
{
	*budget = (struct wl_budget){ now, 0, WL_BUDGET_FLOOR };
}

WL_CORE void wl_budget_roll(struct wl_budget *budget, u32 now, u32 interval)
{
	u32 elapsed = now - budget->begin, recent;

	if (elapsed < interval)
		return;
	recent = elapsed < (u64)interval * 2 ? budget->segments : 0;
	*budget = (struct wl_budget){ now, 0, wl_max(WL_BUDGET_FLOOR, recent / WL_BUDGET_SEGMENTS) };
}

WL_CORE void wl_budget_earn(struct wl_budget *budget, u32 now, u32 interval, u32 segments)
{
	wl_budget_roll(budget, now, interval);
	budget->segments += segments;
}

// Whether one more is within the limit; counts it if so.
WL_CORE int wl_budget_spend(struct wl_budget *budget, u32 now, u32 interval)
{
	wl_budget_roll(budget, now, interval);
	if (!budget->left)
		return 0;
	budget->left--;
	return 1;
}

#endif
