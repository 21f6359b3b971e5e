// SPDX-License-Identifier: (MIT OR Apache-2.0)
// LDA_EQ (Park, Chung & Sreekumari 2009): congestion if the queues of the path are more than half full,
// (RTT - RTT_min) / (RTT_max - RTT_min) > 1/2.
#ifndef WHYLOSS_CORE_LDAEQ_H
#define WHYLOSS_CORE_LDAEQ_H

#include "core/usage.h"

// Less is no evidence: samples, and microseconds between the extremes.
#define WL_LDAEQ_FEWEST 16
#define WL_LDAEQ_RANGE 2000

WL_CORE struct wl_verdict wl_ldaeq_judge(const struct wl_usage *usage)
{
	u32 waiting = wl_usage_waiting(usage), range = wl_usage_range(usage);

	if (usage->samples < WL_LDAEQ_FEWEST || range < WL_LDAEQ_RANGE)
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	return wl_decided((u64)waiting * 2 <= range, WL_ONE - wl_share(waiting, range));
}

#endif
