// SPDX-License-Identifier: (MIT OR Apache-2.0)
// When no verdict of corruption counts: while more than a quarter of what arrives had to be sent again. A differentiator whose estimates
// a stalled host or a new route has spoiled would else fill a short queue without end.
#ifndef WHYLOSS_CORE_TRUST_H
#define WHYLOSS_CORE_TRUST_H

#include "core/event.h"

// Segments delivered between two looks; and of these, sent again: one in so many is too much.
#define WL_TRUST_SPAN 64
#define WL_TRUST_SHARE 4

struct wl_trust {
	u32 delivered; // at the latest look
	u32 repeated;
	u32 withdrawn;
};

// Whether a verdict counts, when so many segments were delivered and sent again since the connection began.
WL_CORE int wl_trust_look(struct wl_trust *trust, u32 delivered, u32 repeated)
{
	u32 arrived = delivered - trust->delivered;

	if (arrived >= WL_TRUST_SPAN) {
		trust->withdrawn = (u64)(repeated - trust->repeated) * WL_TRUST_SHARE > arrived;
		trust->delivered = delivered;
		trust->repeated = repeated;
	}
	return !trust->withdrawn;
}

#endif
