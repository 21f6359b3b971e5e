// SPDX-License-Identifier: (MIT OR Apache-2.0)
// CUBIC (RFC 9438): W(t) = C (t - K)^3 + W_max with K = cbrt((W_max - cwnd) / C), never below an estimate of Reno's window.
// Windows of the curve are in 1/1024 segments, times in 1/8192 s.
#ifndef WHYLOSS_CORE_CUBIC_H
#define WHYLOSS_CORE_CUBIC_H

#include "core/newreno.h"

// beta = 7/10 and, with it, alpha = 3 (1 - beta) / (1 + beta) = 9/17. C = 2/5.
#define WL_CUBIC_MOST_APART (1U << 21) // 256 s
#define WL_CUBIC_MOST_BELOW (1ULL << 33) // 2^23 segments
// Microseconds after the epoch that are counted. K is no more than 277 s, so by then the curve is as far from it as it is followed.
#define WL_CUBIC_OLDEST (1U << 30)

// What a reduction that proves wrong takes back.
struct wl_curve {
	u32 estimate; // Reno's window in segments
	u32 estimate_fraction; // in 2^-32 segments
	u32 epoch; // beginning of this stage of congestion avoidance, in microseconds
	u32 w_max;
	u32 k;
	u32 prior; // window before the latest reduction
};

struct wl_cubic {
	struct wl_curve curve;
	struct wl_curve saved;
	u32 last; // when the clock of the curve last went on, in microseconds
	u32 fraction; // of the window, in 2^-32 segments
	u32 saved_fraction;
	struct wl_slow_start slow_start;
	u8 running : 1; // the epoch counts
	u8 anchored : 1; // a loss has set w_max for this stage
	u8 saved_running : 1;
	u8 saved_anchored : 1;
	u8 saved_after_timeout : 1;
};

// The whole part of a cube root: Newton's method from above. No branches, which would multiply what the kernel's verifier follows.
WL_CORE u32 wl_cbrt(u64 number)
{
	u64 root;
	int step;

	if (!number)
		return 0;
	// No smaller than any root. Each step takes a third off, and in the end squares the relative error.
	root = 1ULL << 22;
	for (step = 0; step < 45; step++)
		root = (2 * root + number / (root * root)) / 3;
	return (u32)(root > number / (root * root) ? root - 1 : root);
}

WL_CORE void wl_cubic_init(struct wl_cubic *cubic, u8 limit, u8 limit_after_timeout)
{
	*cubic = (struct wl_cubic){ 0 };
	wl_slow_start_init(&cubic->slow_start, limit, limit_after_timeout);
}

// The window in 1/1024 segments.
WL_CORE u32 wl_cubic_window(const struct wl_cubic *cubic, u32 cwnd)
{
	return (wl_min(cwnd, (1U << 22) - 1) << 10) + (cubic->fraction >> 22);
}

// RFC 9438, eq. 1, at `micros` after the epoch.
WL_CORE u32 wl_cubic_at(const struct wl_curve *curve, u64 micros)
{
	u64 t = micros * 128 / 15625, apart = t > curve->k ? t - curve->k : curve->k - t, rise;

	if (apart > WL_CUBIC_MOST_APART)
		apart = WL_CUBIC_MOST_APART;
	rise = (apart * apart * apart / 5) >> 28;
	if (t < curve->k)
		return curve->w_max > rise ? curve->w_max - (u32)rise : 0;
	rise += curve->w_max;
	return rise < ~0U ? (u32)rise : ~0U;
}

WL_CORE void wl_cubic_begin(struct wl_cubic *cubic, u32 cwnd)
{
	struct wl_curve *curve = &cubic->curve;

	if (!cubic->anchored)
		curve->prior = cwnd;
	if (!cubic->anchored || curve->w_max <= cwnd) {
		curve->w_max = cwnd;
		curve->k = 0;
	} else {
		u64 below = curve->w_max - cwnd;

		curve->k = wl_cbrt(((below < WL_CUBIC_MOST_BELOW ? below : WL_CUBIC_MOST_BELOW) * 5) << 28); // RFC 9438, eq. 2
	}
	curve->estimate = cwnd >> 10;
	curve->estimate_fraction = cwnd << 22;
	curve->epoch = cubic->last;
	cubic->anchored = 1;
	cubic->running = 1;
}

// The curve's clock stands still while the window is not what limits the sender (RFC 9438, 4.2 and 5.8). Told, too, when data leaves
// and nothing was outstanding.
WL_CORE void wl_cubic_hold(struct wl_cubic *cubic, u32 now)
{
	if (cubic->running)
		cubic->curve.epoch += now - cubic->last;
	cubic->last = now;
}

WL_CORE void wl_cubic_grow(struct wl_cubic *cubic, struct wl_window *window, const struct wl_ack *ack)
{
	struct wl_curve *curve = &cubic->curve;
	u64 growth, estimate;
	u32 cwnd, t;

	if (ack->in_recovery) {
		cubic->last = ack->now;
		return;
	}
	if (!ack->acked)
		return;
	if (window->cwnd < window->ssthresh) {
		cubic->running = 0;
		wl_slow_start_ack(&cubic->slow_start, window, ack);
		return;
	}
	cubic->slow_start.after_timeout = 0;
	if (!ack->limited || !window->cwnd) {
		wl_cubic_hold(cubic, ack->now);
		return;
	}
	cubic->last = ack->now;
	cwnd = wl_cubic_window(cubic, window->cwnd);
	if (!cubic->running)
		wl_cubic_begin(cubic, cwnd);
	t = ack->now - curve->epoch;
	// Else the clock would come round to the epoch.
	if (t > WL_CUBIC_OLDEST) {
		t = WL_CUBIC_OLDEST;
		curve->epoch = ack->now - t;
	}

	// RFC 9438, eq. 4
	growth = ((u64)wl_min(ack->acked, 65535) << 42) / cwnd;
	estimate = (u64)curve->estimate << 32 | curve->estimate_fraction;
	estimate += estimate < (u64)curve->prior << 22 ? growth / 17 * 9 : growth;
	curve->estimate = estimate >> 32;
	curve->estimate_fraction = (u32)estimate;
	estimate >>= 22;
	if (wl_cubic_at(curve, t) < estimate) {
		growth = estimate > cwnd ? (estimate - cwnd) << 22 : 0;
	} else {
		u64 target = wl_cubic_at(curve, (u64)t + ack->srtt), most = (u64)cwnd * 3 / 2;

		target = target < most ? target : most;
		// A step for each segment acknowledged, so that delayed acknowledgements do not slow the curve.
		growth = target > cwnd ? target - cwnd : 0;
		if ((u64)ack->acked << 10 < cwnd)
			growth = ((growth << 22) / cwnd * ack->acked) << 10;
		else
			growth <<= 22;
	}
	growth += cubic->fraction;
	cubic->fraction = (u32)growth;
	window->cwnd += growth >> 32;
}

// Notes what wl_cubic_undo() will need.
WL_CORE void wl_cubic_save(struct wl_cubic *cubic)
{
	cubic->saved = cubic->curve;
	cubic->saved_fraction = cubic->fraction;
	cubic->saved_running = cubic->running;
	cubic->saved_anchored = cubic->anchored;
	cubic->saved_after_timeout = cubic->slow_start.after_timeout;
}

// RFC 9438, 4.9
WL_CORE void wl_cubic_undo(struct wl_cubic *cubic)
{
	cubic->curve = cubic->saved;
	cubic->fraction = cubic->saved_fraction;
	cubic->running = cubic->saved_running;
	cubic->anchored = cubic->saved_anchored;
	cubic->slow_start.after_timeout = cubic->saved_after_timeout;
}

WL_CORE u32 wl_cubic_threshold(struct wl_cubic *cubic, const struct wl_loss *loss)
{
	struct wl_curve *curve = &cubic->curve;
	u32 cwnd = wl_cubic_window(cubic, loss->cwnd);

	// RFC 9438, 4.7: a flow whose windows shrink from loss to loss makes room for new ones.
	curve->w_max = cwnd < curve->w_max ? (u32)((u64)cwnd * 17 / 20) : cwnd;
	curve->prior = cwnd;
	cubic->running = 0;
	cubic->anchored = 1;
	cubic->fraction = 0;
	return wl_threshold((u32)((u64)loss->flight * 7 / 10)); // RFC 9438, 4.6
}

WL_CORE void wl_cubic_timeout(struct wl_cubic *cubic)
{
	cubic->anchored = 0;
	cubic->running = 0;
	cubic->fraction = 0;
	cubic->slow_start.after_timeout = 1;
}

#endif
