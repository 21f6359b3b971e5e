// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Which retransmission timeouts are forgiven: those judged corruption, within rules that keep a dead or congested path from being
// hammered (the timeout policy `aware`). The timer's back-off stays in any case.
#ifndef WHYLOSS_CORE_AWARE_H
#define WHYLOSS_CORE_AWARE_H

#include "core/event.h"

// Expiries in a row, and silence in timeouts without back-off, from which on nothing is forgiven.
#define WL_AWARE_IN_A_ROW 3
#define WL_AWARE_OUTAGE 4
// Segments that leave at once when the window comes back (RFC 6928).
#define WL_AWARE_INITIAL 10

struct wl_aware {
	u32 last; // when a timeout was last forgiven
	u8 forgivable : 1; // every expiry of this repair was
	u8 advanced : 1; // an acknowledgement has since
	u8 ever : 1; // `last` counts
};

// The timer expired for the `in_a_row`-th time after `silence`; `rto` is the timeout without back-off, `repairing` whether an earlier
// timeout is still being repaired.
WL_CORE void wl_aware_timeout(struct wl_aware *aware, u32 now, u32 rto, u32 silence, u32 in_a_row, int repairing, u32 cause)
{
	int safe = in_a_row < WL_AWARE_IN_A_ROW && silence <= (u64)rto * WL_AWARE_OUTAGE && (!aware->ever || now - aware->last >= rto);

	aware->forgivable = safe && cause == WL_CORRUPTION && (aware->forgivable || !repairing);
	aware->advanced = 0;
}

// An acknowledgement arrived after `silence`; `genuine` tells that the timeout is known not to be spurious. Returns whether the window
// is to come back now.
WL_CORE int wl_aware_ack(struct wl_aware *aware, u32 now, u32 rto, u32 silence, int advances, int genuine)
{
	if (silence > (u64)rto * WL_AWARE_OUTAGE)
		aware->forgivable = 0;
	if (advances)
		aware->advanced = 1;
	if (!genuine || !aware->forgivable || !aware->advanced)
		return 0;
	aware->forgivable = 0;
	aware->last = now;
	aware->ever = 1;
	return 1;
}

// The window that comes back: what is in the network and an initial window; slow start goes on to the old one.
WL_CORE struct wl_window wl_aware_window(struct wl_window now, u32 cwnd_before, u32 ssthresh_before, u32 in_network)
{
	u32 target = wl_max(cwnd_before, now.cwnd);

	return (struct wl_window){ wl_max(wl_min(target, in_network + WL_AWARE_INITIAL), now.cwnd), wl_max(ssthresh_before, target) };
}

#endif
