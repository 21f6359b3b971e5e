// SPDX-License-Identifier: (MIT OR Apache-2.0)
// TCP CERL (El-Ocla 2010): congestion if the queue holds at least 55 % of the most that it ever held; the rate of the bottleneck cancels.
#ifndef WHYLOSS_CORE_CERL_H
#define WHYLOSS_CORE_CERL_H

#include "core/usage.h"

WL_CORE struct wl_verdict wl_cerl_judge(const struct wl_usage *usage)
{
	u32 waiting = wl_usage_waiting(usage), range = wl_usage_range(usage);

	if (!range)
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	return wl_decided((u64)waiting * 20 < (u64)range * 11, WL_ONE - wl_share(waiting, range));
}

#endif
