// SPDX-License-Identifier: (MIT OR Apache-2.0)
// TCP Veno (Fu & Liew 2003): the segments that wait in queues, N = W (RTT - BaseRTT) / RTT, halve the pace of growth and tell random
// losses from congestion, both at N = 3.
#ifndef WHYLOSS_CORE_VENO_H
#define WHYLOSS_CORE_VENO_H

#include "core/newreno.h"
#include "core/rounds.h"

#define WL_VENO_BETA 3
#define WL_VENO_FEWEST 3

// The smallest round-trip time of the connection, of its last round and of the one under way; 0 if there is none.
struct wl_backlog {
	u32 base;
	u32 current;
	u32 complete;
	struct wl_rounds rounds;
	u16 samples; // of the current round
	u16 samples_before; // of the complete one
	u8 began;
	u8 seen; // samples of the connection, up to WL_VENO_FEWEST
};

struct wl_veno {
	struct wl_backlog pace; // of all acknowledgements: what growth goes by
	struct wl_backlog judge; // of those of new data outside recovery: what verdicts go by
	u32 judged_window; // at the last of them
	u32 fraction; // of the window, in 2^-32 segments
	u32 saved; // what that was before the reductions of an episode
	struct wl_slow_start slow_start;
};

WL_CORE void wl_backlog_ack(struct wl_backlog *backlog, const struct wl_ack *ack)
{
	int over = wl_rounds_ack(&backlog->rounds, ack, backlog->began);
	u32 rtt = wl_max(ack->delay, 1);

	backlog->began = 1;
	if (over && backlog->samples) {
		backlog->complete = backlog->current;
		backlog->samples_before = backlog->samples;
		backlog->samples = 0;
	}
	if (ack->delay < 0)
		return;
	backlog->base = backlog->base ? wl_min(backlog->base, rtt) : rtt;
	backlog->current = backlog->samples ? wl_min(backlog->current, rtt) : rtt;
	if (backlog->samples != 65535)
		backlog->samples++;
	if (backlog->seen != WL_VENO_FEWEST)
		backlog->seen++;
}

// The round-trip time that counts: the smallest of the last complete round, of the one under way while there is none; 0 if there is none.
WL_CORE u32 wl_backlog_rtt(const struct wl_backlog *backlog)
{
	if (backlog->samples_before)
		return backlog->complete;
	return backlog->samples ? backlog->current : 0;
}

// Whether N of a window in 1/256 segments is WL_VENO_BETA or more.
WL_CORE int wl_backlog_is_long(const struct wl_backlog *backlog, u64 window)
{
	u32 rtt = wl_backlog_rtt(backlog);

	return rtt > backlog->base && window * (rtt - backlog->base) >= ((u64)rtt << 8) * WL_VENO_BETA;
}

WL_CORE u64 wl_veno_window(const struct wl_veno *veno, u32 cwnd)
{
	return ((u64)cwnd << 8) + (veno->fraction >> 24);
}

WL_CORE void wl_veno_init(struct wl_veno *veno, u8 limit, u8 limit_after_timeout)
{
	*veno = (struct wl_veno){ 0 };
	wl_slow_start_init(&veno->slow_start, limit, limit_after_timeout);
}

// Told of every acknowledgement, before what it reveals is judged.
WL_CORE void wl_veno_ack(struct wl_veno *veno, const struct wl_ack *ack)
{
	wl_backlog_ack(&veno->pace, ack);
	// What arrives in recovery was sent by another window than the one that lost.
	if (ack->duplicate || ack->in_recovery)
		return;
	wl_backlog_ack(&veno->judge, ack);
	veno->judged_window = ack->cwnd;
}

WL_CORE void wl_veno_grow(struct wl_veno *veno, struct wl_window *window, const struct wl_ack *ack)
{
	u64 paced, growth;
	u32 samples;

	if (!ack->acked || ack->in_recovery)
		return;
	if (window->cwnd < window->ssthresh) {
		wl_slow_start_ack(&veno->slow_start, window, ack);
		return;
	}
	veno->slow_start.after_timeout = 0;
	if (!ack->limited || !window->cwnd)
		return;
	samples = veno->pace.samples_before ? veno->pace.samples_before : veno->pace.samples;
	paced = wl_min(ack->acked, 32767);
	paced <<= 48;
	if (samples >= WL_VENO_FEWEST && wl_backlog_is_long(&veno->pace, wl_veno_window(veno, window->cwnd)))
		paced >>= 1;
	growth = paced / (((u64)window->cwnd << 16) + (veno->fraction >> 16)) + veno->fraction;
	veno->fraction = (u32)growth;
	window->cwnd += growth >> 32;
}

// Half of what is used of the window, as Reno.
WL_CORE u32 wl_veno_threshold(struct wl_veno *veno, const struct wl_loss *loss)
{
	u64 window = ((u64)loss->cwnd << 32) + veno->fraction, flight = (u64)loss->flight << 32;

	veno->fraction = 0;
	return wl_threshold((flight < window ? flight : window) / 2 >> 32);
}

// Four fifths of the window, for a random loss.
WL_CORE u32 wl_veno_scaled(struct wl_veno *veno, const struct wl_loss *loss)
{
	u64 window = ((u64)loss->cwnd << 32) + veno->fraction;

	veno->fraction = 0;
	return wl_threshold(window / 5 * 4 >> 32);
}

// Notes what wl_veno_undo() will need.
WL_CORE void wl_veno_save(struct wl_veno *veno)
{
	veno->saved = veno->fraction;
}

WL_CORE void wl_veno_undo(struct wl_veno *veno)
{
	veno->fraction = veno->saved;
}

WL_CORE void wl_veno_timeout(struct wl_veno *veno)
{
	veno->fraction = 0;
	veno->slow_start.after_timeout = 1;
}

WL_CORE struct wl_verdict wl_veno_judge(const struct wl_veno *veno)
{
	u32 rtt = wl_backlog_rtt(&veno->judge), base = veno->judge.base;
	u64 backlog = rtt > base ? (u64)veno->judged_window * (rtt - base) : 0; // in segments, by the round-trip time

	if (veno->judge.seen < WL_VENO_FEWEST)
		return (struct wl_verdict){ WL_UNKNOWN, 0 };
	return wl_decided(backlog < (u64)rtt * WL_VENO_BETA, wl_share(rtt, rtt + backlog));
}

#endif
