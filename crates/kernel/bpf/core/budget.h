// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The rate limit of reports, the same at both ends: a report costs some segments that have come. What is not spent is kept, up to a bound, because
// damage arrives in bursts, and reports do after an acknowledgement that had no room for them.
#ifndef WHYLOSS_CORE_BUDGET_H
#define WHYLOSS_CORE_BUDGET_H

#include "core/event.h"

// Segments that are worth a report, and segments kept at least: 32 reports, because bursts damage some dozen segments in a row. With one segment in
// five damaged, every report meets an empty budget in the end.
#define WL_BUDGET_SEGMENTS 4
#define WL_BUDGET_KEPT 128

struct wl_budget {
	u32 segments;
};

WL_CORE void wl_budget_init(struct wl_budget *budget)
{
	budget->segments = WL_BUDGET_KEPT;
}

// Segments came; no more than a `window` of them is kept.
WL_CORE void wl_budget_earn(struct wl_budget *budget, u32 segments, u32 window)
{
	budget->segments = wl_min(budget->segments + segments, wl_max(window, WL_BUDGET_KEPT));
}

// Whether one more is within the limit; counts it if so.
WL_CORE int wl_budget_spend(struct wl_budget *budget)
{
	if (budget->segments < WL_BUDGET_SEGMENTS)
		return 0;
	budget->segments -= WL_BUDGET_SEGMENTS;
	return 1;
}

#endif
