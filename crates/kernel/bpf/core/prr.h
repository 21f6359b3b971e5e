// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Proportional rate reduction (RFC 9937): what may be sent in fast recovery, so that the window falls smoothly to the threshold.
#ifndef WHYLOSS_CORE_PRR_H
#define WHYLOSS_CORE_PRR_H

#include "core/event.h"

struct wl_prr {
	u32 before; // the window when recovery began
	u32 target; // to arrive at
	u32 delivered; // since recovery began
	u32 out; // sent since recovery began
	u32 pipe; // in the network
	u32 newly; // delivered by this acknowledgement
	u8 safe; // it advanced and revealed no further loss
};

WL_CORE u32 wl_prr_window(const struct wl_prr *prr)
{
	u64 due;
	u32 count;

	if (prr->pipe > prr->target) {
		due = ((u64)prr->delivered * prr->target + prr->before - 1) / wl_max(prr->before, 1);
		count = due > prr->out ? (u32)(due - prr->out) : 0;
	} else {
		count = wl_max(prr->delivered > prr->out ? prr->delivered - prr->out : 0, prr->newly) + !!prr->safe;
		count = wl_min(count, prr->target - prr->pipe);
	}
	if (!prr->out)
		count = wl_max(count, 1); // the first fast retransmit is never held back
	return prr->pipe + count;
}

#endif
