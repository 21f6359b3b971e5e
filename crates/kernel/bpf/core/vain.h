// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Whether segments with a nonce vanish on their way, as before a middlebox that drops what has options it does not know. After some timeouts in
// a row without any delivery, retransmissions go without the nonce. If one of these is delivered, that is evidence: enough where no segment with
// a nonce ever was delivered; elsewhere it may have been an outage that was over just then, and it takes a second time in a row.
#ifndef WHYLOSS_CORE_VAIN_H
#define WHYLOSS_CORE_VAIN_H

#include "core/event.h"

// Timeouts in a row from which on retransmissions go without the nonce.
#define WL_VAIN_TIMEOUTS 2
// Times that only segments without were delivered, on a connection that has delivered others before.
#define WL_VAIN_TIMES 2

struct wl_vain {
	u8 timeouts; // since the latest delivery
	u8 times; // since the latest delivery of a segment with a nonce
	u8 proven; // a segment with a nonce was delivered
};

WL_CORE void wl_vain_timeout(struct wl_vain *vain)
{
	if (vain->timeouts < 255)
		vain->timeouts++;
}

// Whether a segment is sent without the nonce now.
WL_CORE int wl_vain_without(const struct wl_vain *vain)
{
	return vain->timeouts >= WL_VAIN_TIMEOUTS;
}

// Something was delivered. Returns whether nonces are to be given up.
WL_CORE int wl_vain_delivered(struct wl_vain *vain)
{
	int without = wl_vain_without(vain);

	vain->timeouts = 0;
	if (without)
		return ++vain->times >= WL_VAIN_TIMES || !vain->proven;
	vain->times = 0;
	vain->proven = 1;
	return 0;
}

#endif
