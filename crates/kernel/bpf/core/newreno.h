// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Additive increase counted in acknowledged data, half the flight on congestion (RFC 5681, RFC 3465).
#ifndef WHYLOSS_CORE_NEWRENO_H
#define WHYLOSS_CORE_NEWRENO_H

#include "core/event.h"

// Largest growth for one acknowledgement in slow start, in segments: L of RFC 3465, and what it is after a timeout.
struct wl_slow_start {
	u8 limit;
	u8 limit_after_timeout;
	u8 after_timeout;
};

struct wl_newreno {
	u32 acked; // in congestion avoidance, since the window last grew
	u32 saved; // what that was before the reductions of an episode
	struct wl_slow_start slow_start;
	u8 saved_after_timeout;
};

// No limit: for senders that count what was delivered and meet acknowledgements that were merged on their way.
#define WL_UNLIMITED 255

WL_CORE void wl_slow_start_init(struct wl_slow_start *slow, u8 limit, u8 limit_after_timeout)
{
	*slow = (struct wl_slow_start){ limit, limit_after_timeout, 0 };
}

// Returns the acknowledged segments that are left for congestion avoidance. Limited growth may pass the threshold by less than the limit,
// as the engine's does; growth without limit ends there.
WL_CORE u32 wl_slow_start_ack(struct wl_slow_start *slow, struct wl_window *window, const struct wl_ack *ack)
{
	u32 limit = slow->after_timeout ? slow->limit_after_timeout : slow->limit;
	u32 grown;

	if (!ack->limited)
		return 0;
	grown = wl_min(ack->acked, limit != WL_UNLIMITED ? limit : window->ssthresh - window->cwnd);
	window->cwnd += grown;
	return limit != WL_UNLIMITED ? 0 : ack->acked - grown;
}

WL_CORE void wl_newreno_init(struct wl_newreno *reno, u8 limit, u8 limit_after_timeout)
{
	*reno = (struct wl_newreno){ 0 };
	wl_slow_start_init(&reno->slow_start, limit, limit_after_timeout);
}

WL_CORE void wl_newreno_grow(struct wl_newreno *reno, struct wl_window *window, const struct wl_ack *ack)
{
	u32 acked = ack->acked;

	if (!acked || ack->in_recovery)
		return;
	if (window->cwnd < window->ssthresh) {
		acked = wl_slow_start_ack(&reno->slow_start, window, ack);
		if (!acked)
			return;
	}
	reno->slow_start.after_timeout = 0;
	if (!ack->limited)
		return;
	reno->acked += acked;
	if (reno->acked >= window->cwnd) {
		reno->acked -= window->cwnd;
		window->cwnd++;
	}
}

// Notes what wl_newreno_undo() will need.
WL_CORE void wl_newreno_save(struct wl_newreno *reno)
{
	reno->saved = reno->acked;
	reno->saved_after_timeout = reno->slow_start.after_timeout;
}

WL_CORE u32 wl_newreno_threshold(struct wl_newreno *reno, const struct wl_loss *loss)
{
	reno->acked = 0;
	return wl_threshold(loss->flight / 2);
}

WL_CORE void wl_newreno_timeout(struct wl_newreno *reno)
{
	reno->slow_start.after_timeout = 1;
}

WL_CORE void wl_newreno_undo(struct wl_newreno *reno)
{
	reno->acked = reno->saved;
	reno->slow_start.after_timeout = reno->saved_after_timeout;
}

#endif
