// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Where the latest round-trip time stands between the smallest and the largest of the connection.
#ifndef WHYLOSS_CORE_USAGE_H
#define WHYLOSS_CORE_USAGE_H

#include "core/event.h"

struct wl_usage {
	u32 latest; // 0 before the first sample
	u32 least;
	u32 most;
	u16 samples; // up to 65535
};

WL_CORE void wl_usage_ack(struct wl_usage *usage, const struct wl_ack *ack)
{
	u32 rtt = wl_max(ack->delay, 1);

	if (ack->delay < 0)
		return;
	usage->least = usage->latest ? wl_min(usage->least, rtt) : rtt;
	usage->most = wl_max(usage->most, rtt);
	usage->latest = rtt;
	if (usage->samples != 65535)
		usage->samples++;
}

WL_CORE u32 wl_usage_waiting(const struct wl_usage *usage)
{
	return usage->latest - usage->least;
}

WL_CORE u32 wl_usage_range(const struct wl_usage *usage)
{
	return usage->most - usage->least;
}

#endif
