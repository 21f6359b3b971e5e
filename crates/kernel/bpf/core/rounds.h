// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Round trips, counted by what is acknowledged.
#ifndef WHYLOSS_CORE_ROUNDS_H
#define WHYLOSS_CORE_ROUNDS_H

#include "core/event.h"

struct wl_rounds {
	u32 end; // SND.NXT when the round began
};

// Whether the acknowledgement ends a round: it covers data that was sent after the round had begun. `began` tells the first one, which
// only begins a round.
WL_CORE int wl_rounds_ack(struct wl_rounds *rounds, const struct wl_ack *ack, int began)
{
	int over = began && wl_after(ack->una, rounds->end);

	if (over || !began)
		rounds->end = ack->nxt;
	return over;
}

#endif
