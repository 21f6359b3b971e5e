// SPDX-License-Identifier: (MIT OR Apache-2.0)
// auto: one control for any path. Where it is alone its window is a function of the delay and keeps a small queue; where others keep the queue and
// corruption is rare it competes by CUBIC's rules; and it falls for those losses only that come while the queue is full. The engine's control of that
// name.
#ifndef WHYLOSS_CORE_AUTO_H
#define WHYLOSS_CORE_AUTO_H

#include "core/blame.h"
#include "core/cubic.h"
#include "core/filling.h"

// The queue that is aimed at: a part of the least delay, within bounds in microseconds, and no less than so many halves of a segment.
#define WL_AUTO_SHARE 8
#define WL_AUTO_LEAST 500
#define WL_AUTO_MOST 4000
#define WL_AUTO_HALVES 3
// Cuts in a row that shortened the queue by less than half of what they should have, after which it competes, and rounds of competing after which it
// looks whether it still has to.
#define WL_AUTO_PRESSED 3
#define WL_AUTO_LOOK 128
// It competes, too, when shortening the queue has left it less than so many quarters of the rate that it had: others have taken the rest.
#define WL_AUTO_LEFT 3
// Where others are seen the window grows to two thirds of what they have, which is two fifths of the link, but at most to so many times what it was, and
// by no less than a tenth. While it cannot tell what they have, it grows by a half.
#define WL_AUTO_MOST_GROWTH 2
// As WL_AUTO_LOOK, after a loss at a full queue, which may be others' doing, and rounds without such a loss from which on a short queue ends it.
#define WL_AUTO_LOOK_AFTER_LOSS 16
#define WL_AUTO_CALM 8
// Sixteenths of the window that every other round adds while there is no queue, at first and at most: each time they double. The round between shows
// what came of it.
#define WL_AUTO_STEP 1
#define WL_AUTO_MOST_STEP 8
// Towards a window at which the queue overflowed it goes by this part of the way at a time, until the way is a part of the window.
#define WL_AUTO_APPROACH 4
#define WL_AUTO_NEAR 32
// The highest rate is remembered for one to two parts of so many microseconds.
#define WL_AUTO_PART 15000000
// Segments to which the window grows whatever the delay, and below which delay does not cut it: of fewer a lone one waits for the receiver's delayed
// acknowledgement, which would be taken for a queue. BBR's least window is the same.
#define WL_AUTO_FEW 4
// Quarters of a segment of delay with which a window may grow that does not fill the path: of two that leave together the second waits for the first.
#define WL_AUTO_PAIR 5
// A rate of a segment a microsecond.
#define WL_RATE_ONE 24
#define WL_RATE_MOST (1ULL << 31)

struct wl_auto {
	struct wl_cubic cubic;
	struct wl_filling filling;
	struct wl_blame blame;
	// Delivery rates of this round and of the two before, in 2^-24 segments a microsecond.
	u32 rate[3];
	u32 fastest[2]; // of this part of the history and of the one before
	u32 part_began;
	// SND.NXT and the segments delivered when the round began. It ends when the first is acknowledged, or when a segment is delivered that left
	// after the round began: where much is lost, that is round trips sooner.
	u32 until;
	u32 until_delivered;
	// SND.NXT when what is remembered of losses and of the queue was last aged: that is done again when it is acknowledged. Where much is lost
	// that takes more than a round, and losses are remembered for as long as their repair takes.
	u32 aged;
	u32 answered; // what is below was lost to the congestion that was answered
	u32 first; // what is below left before the first acknowledgement
	u32 first_lost; // segments lost of that which have not been taken from the window yet
	// Since there was last no queue, or it competed: the window when it began to shorten the queue and the rate once the first cut had had its
	// effect. 0 before.
	u32 had;
	u32 had_rate;
	// The window and the delay as they were before it grew beside others. No window: it does not grow so; no delay: it has yet to.
	u32 probe;
	u32 probe_delay;
	u32 overflowed; // the window at which the queue overflowed on a path where corruption is frequent; 0 if none is known
	u32 saved; // the window before a reduction, should it prove wrong; 0 if there was none in this episode
	u32 more_than; // a least delay above this says that the latest cut did little
	u32 fraction; // of the window, in 2^-32 segments, beside what CUBIC keeps
	u32 left; // rounds of competing
	u32 quiet; // rounds of competing since congestion was answered
	u32 burst; // segments that leave at once
	u8 others; // enum wl_others: it competes unless they are unseen
	u8 pressed : 2; // cuts in a row that hardly shortened the queue
	u8 begun : 1; // beside others the window has grown beyond what it had
	u8 step;
	u8 cut : 1; // the window was cut to shorten the queue
	u8 settled : 1; // and a round has passed since, so that its effect can be seen
	u8 room : 1; // the queue was short in the latest round
	u8 grown : 1; // the latest round ended with growth
	u8 careful : 1; // congestion ended growth on a path where corruption is rare: the window grows as CUBIC's
	u8 owes : 1; // an answer has been given
	u8 probed : 1; // a round has passed since the window grew beside others, so that the next shows what came of it
	u8 begins : 1; // not all of that has arrived yet
};

// What an acknowledgement tells beside `struct wl_ack`.
struct wl_news {
	u32 rate; // of delivery, in 2^-24 segments a microsecond; 0 without a sample
	u32 total; // segments delivered
	u32 prior; // and those when the one that the sample is of had left
	u32 flight; // segments outstanding, no more than the window
	u32 burst; // segments that leave at once, 1 if each leaves by itself
	u32 app_limited; // the application limited it
	u32 marked; // a router marked a segment
};

// The rate of `delivered` segments in `micros`.
WL_CORE u32 wl_rate(u32 delivered, u32 micros)
{
	u64 rate = micros ? ((u64)delivered << WL_RATE_ONE) / micros : 0;

	return rate < WL_RATE_MOST ? rate : WL_RATE_MOST;
}

// `first`: the sequence number behind what leaves before the first acknowledgement.
WL_CORE void wl_auto_init(struct wl_auto *control, u8 limit, u8 after, u32 nxt, u32 total, u32 first)
{
	*control = (struct wl_auto){ 0 };
	wl_cubic_init(&control->cubic, limit, after);
	wl_filling_init(&control->filling);
	control->until = nxt;
	control->until_delivered = total;
	control->aged = nxt;
	control->first = first;
	control->begins = 1;
	control->step = WL_AUTO_STEP;
	control->room = 1;
}

WL_CORE u32 wl_auto_rate(const struct wl_auto *control)
{
	return wl_max(wl_max(control->rate[0], control->rate[1]), control->rate[2]);
}

WL_CORE void wl_auto_see(struct wl_auto *control, u32 rate, u32 now)
{
	control->rate[0] = wl_max(control->rate[0], rate);
	if (now - control->part_began >= WL_AUTO_PART) {
		control->fastest[1] = now - control->part_began < 2 * WL_AUTO_PART ? control->fastest[0] : 0;
		control->fastest[0] = 0;
		control->part_began = now;
	}
	control->fastest[0] = wl_max(control->fastest[0], rate);
}

// Microseconds that a number of half segments takes at the bottleneck, as far as is known. At the rate delivered now it would be long where others
// have the rest, and their queue would pass for a segment or two of its own.
WL_CORE u32 wl_auto_halves(const struct wl_auto *control, u32 halves)
{
	u32 rate = wl_max(control->fastest[0], control->fastest[1]);

	return rate ? ((u64)halves << (WL_RATE_ONE - 1)) / rate : 0;
}

// The least delay of what leaves: of a burst (segmentation offload) the newest segment, whose delay is measured, waits for those before it.
WL_CORE u32 wl_auto_base(const struct wl_auto *control)
{
	return control->filling.base + wl_auto_halves(control, control->burst > 1 ? 2 * control->burst - 2 : 0);
}

// The queue that is aimed at.
WL_CORE u32 wl_auto_target(const struct wl_auto *control)
{
	u32 target = wl_max(wl_min(control->filling.base / WL_AUTO_SHARE, WL_AUTO_MOST), WL_AUTO_LEAST);

	return wl_max(target, wl_auto_halves(control, WL_AUTO_HALVES));
}

// Segments that fill `delay` at the rate at which they cross the path, those damaged behind it included: `share` in 1 / WL_ONE of those delivered.
WL_CORE u32 wl_auto_fill(const struct wl_auto *control, u32 delay, u32 share)
{
	u64 fill = (u64)wl_auto_rate(control) * delay >> WL_RATE_ONE;

	if (fill > 1U << 24)
		fill = 1U << 24;
	return fill * (WL_ONE + share) >> 16;
}

// Where corruption is frequent it bounds the windows of others: growth would take all that they leave, and the queue.
WL_CORE int wl_auto_grows_as_cubic(const struct wl_auto *control)
{
	return (control->others || (control->room && control->careful)) && !wl_blame_is_corruption(&control->blame);
}

WL_CORE void wl_auto_alone(struct wl_auto *control)
{
	control->others = WL_UNSEEN;
	control->pressed = 0;
	control->cut = 0;
	control->settled = 0;
}

WL_CORE void wl_auto_compete(struct wl_auto *control, u8 others, u32 rounds)
{
	control->others = others;
	control->left = rounds;
	control->quiet = 0;
	control->had = 0;
	control->had_rate = 0;
}

// Others have a part of the rate that it had before it began to shorten the queue.
WL_CORE int wl_auto_has_lost(const struct wl_auto *control)
{
	return (u64)wl_auto_rate(control) * 4 < (u64)control->had_rate * WL_AUTO_LEFT;
}

// A queue stands of which others may be the owners. The window falls by what it is too long, and by half at most.
WL_CORE void wl_auto_shorten(struct wl_auto *control, struct wl_window *window, u32 least, u32 aimed_at)
{
	u32 cwnd = window->cwnd, aimed, pressed = 0;

	if (control->cut && !control->settled) {
		control->settled = 1;
		if (!control->had_rate)
			control->had_rate = wl_auto_rate(control);
		return;
	}
	if (control->cut && least > control->more_than)
		pressed = control->pressed + 1;
	else if (control->cut && wl_auto_has_lost(control))
		pressed = WL_AUTO_PRESSED;
	else if (control->cut)
		control->careful = 0; // The queue is its own: delay ends growth here, so that losses need not.
	if (!control->had)
		control->had = cwnd;
	if (pressed >= WL_AUTO_PRESSED) {
		control->probe = cwnd;
		control->probe_delay = least;
		control->probed = 0;
		control->begun = 0;
		// Back to what it had, by slow start.
		window->ssthresh = wl_threshold(wl_max(control->had, cwnd));
		wl_auto_compete(control, WL_SEEN, WL_AUTO_LOOK);
		return;
	}
	aimed = wl_max((u64)cwnd * aimed_at / wl_max(least, 1), cwnd / 2);
	// A cut by less than a segment changes nothing that could be seen.
	aimed = wl_max(wl_min(aimed, cwnd ? cwnd - 1 : 0), WL_AUTO_FEW);
	aimed = wl_min(aimed, cwnd);
	control->more_than = (u32)(((u64)least + (u64)least * aimed / wl_max(cwnd, 1)) / 2);
	control->pressed = pressed;
	control->cut = 1;
	control->settled = 0;
	control->fraction = 0;
	window->cwnd = aimed;
	window->ssthresh = wl_threshold(aimed);
	wl_cubic_timeout(&control->cubic);
}

// What the window grows by at the end of a round without a queue, in 2^-32 segments: `full` is the delay of a path that is full.
WL_CORE u64 wl_auto_growth(struct wl_auto *control, u32 cwnd, u32 full)
{
	// As far as the rate follows.
	u32 most = wl_auto_fill(control, full, wl_blame_corrupted(&control->blame)), way;
	u64 growth;

	most = wl_max(most + most / 4, WL_AUTO_FEW);
	way = control->overflowed > cwnd ? control->overflowed - cwnd : 0;
	if (way > cwnd / WL_AUTO_NEAR) {
		growth = (u64)way << 32;
		growth /= WL_AUTO_APPROACH;
	} else {
		control->overflowed = 0;
		growth = ((u64)cwnd << 28) * control->step;
		control->step = wl_min(control->step * 2, WL_AUTO_MOST_STEP);
	}
	if (most <= cwnd)
		return 0;
	return growth < (u64)(most - cwnd) << 32 ? growth : (u64)(most - cwnd) << 32;
}

// With this delay in the queue the window may grow.
WL_CORE int wl_auto_has_room(const struct wl_auto *control, u32 cwnd, u32 waiting)
{
	u64 filling = (u64)wl_max(control->fastest[0], control->fastest[1]) * (control->filling.base + wl_auto_halves(control, 2));
	int pair = ((u64)cwnd << WL_RATE_ONE) < filling && waiting < wl_auto_halves(control, WL_AUTO_PAIR) / 2;

	return waiting < wl_auto_target(control) / 2 || pair;
}

// A round is over in which `least` was the least delay: the window is a function of it.
WL_CORE void wl_auto_steer(struct wl_auto *control, struct wl_window *window, u32 least, int limited)
{
	u32 base = wl_auto_base(control), target = wl_auto_target(control), waiting = least > base ? least - base : 0;
	int careful = control->careful && !wl_blame_is_corruption(&control->blame);
	u64 growth;

	control->room = wl_auto_has_room(control, window->cwnd, waiting);
	if (window->cwnd < window->ssthresh)
		return;
	if (control->room) {
		wl_auto_alone(control);
		control->had = 0;
		control->had_rate = 0;
	}
	if (control->room || window->cwnd < WL_AUTO_FEW) {
		control->grown = !control->grown && limited && !careful;
		if (!control->grown)
			return;
		growth = wl_auto_growth(control, window->cwnd, base + target) + control->fraction;
		control->fraction = (u32)growth;
		window->cwnd += growth >> 32;
		return;
	}
	control->step = WL_AUTO_STEP;
	if (waiting <= target + target / 4)
		wl_auto_alone(control);
	else
		wl_auto_shorten(control, window, least, base + target);
}

// The queue stands, so slow start is over: what fills the path is known by now.
WL_CORE void wl_auto_end_slow_start(struct wl_auto *control, struct wl_window *window)
{
	u32 least = wl_filling_standing(&control->filling), base = control->filling.base ? wl_auto_base(control) : 0, aimed_at;

	if (!least || !base || window->cwnd >= window->ssthresh || control->others || control->pressed || control->cut)
		return;
	aimed_at = base + wl_auto_target(control);
	if (least < base || least - base < (aimed_at - base) / 2)
		return;
	window->cwnd = wl_max((u64)window->cwnd * aimed_at / wl_max(least, aimed_at), 1);
	window->ssthresh = wl_threshold(window->cwnd);
}

// What is remembered was for a round trip longer.
WL_CORE void wl_auto_age(struct wl_auto *control, u32 nxt)
{
	control->aged = nxt;
	wl_blame_age(&control->blame);
	wl_filling_age(&control->filling);
	control->rate[2] = control->rate[1];
	control->rate[1] = control->rate[0];
	control->rate[0] = 0;
	control->left -= control->left > 0;
	control->quiet++;
}

// Whether what was answered is not repaired yet.
WL_CORE int wl_auto_is_answering(const struct wl_auto *control, u32 una)
{
	return control->owes && wl_after(control->answered, una);
}

// Two thirds of what others have on a link that is full, from two windows and their delays: all that is under way is the link's rate times the delay.
// No bound where the delay did not follow.
WL_CORE u64 wl_auto_of_others(u32 before, u32 shorter, u32 cwnd, u32 longer)
{
	u64 more = (u64)cwnd * shorter, less = (u64)before * longer;

	if (longer <= shorter)
		return ~0ULL;
	return more > less ? 2 * (more - less) / (3 * (u64)(longer - shorter)) : 0;
}

// Where others had the queue before slow start knew the path, what it had is little. So the window goes beyond that.
WL_CORE void wl_auto_grow_beside_others(struct wl_auto *control, struct wl_window *window, const struct wl_ack *ack, u32 delay)
{
	u32 cwnd = window->cwnd, before = control->probe;
	// A window that is not used tells nothing.
	int waits = cwnd < window->ssthresh || wl_auto_is_answering(control, ack->una) || !ack->limited;
	u64 next = (u64)cwnd + cwnd / 2, most = (u64)cwnd * WL_AUTO_MOST_GROWTH;

	if (!before || !control->others || wl_blame_is_corruption(&control->blame)) {
		control->probe = 0;
		return;
	}
	if (waits || !control->probed) {
		control->probed = !waits;
		return;
	}
	if (control->probe_delay) {
		next = wl_auto_of_others(before, control->probe_delay, cwnd, delay);
		next = next < most ? next : most;
	}
	// In a window of few segments there is no step that would tell.
	if ((control->probe_delay && cwnd <= before) || next * 10 < (u64)cwnd * 11) {
		control->probe = 0;
		return;
	}
	control->probe = cwnd;
	control->probe_delay = delay;
	control->probed = 0;
	control->begun = 1;
	control->fraction = 0;
	window->cwnd = (u32)next;
	window->ssthresh = wl_threshold(window->cwnd);
	wl_cubic_timeout(&control->cubic);
}

// Returns whether the window changed.
WL_STAGE int wl_auto_end_round(struct wl_auto *control WL_GIVEN, struct wl_window *window WL_GIVEN, const struct wl_ack *ack WL_GIVEN)
{
	u32 least = wl_filling_round(&control->filling), base = control->filling.base, cwnd = window->cwnd;

	if (!least || !base)
		return 0;
	if (!control->others)
		wl_auto_steer(control, window, least, ack->limited);
	else if (!control->left || (control->quiet >= WL_AUTO_CALM && least < wl_auto_base(control) + wl_auto_target(control) / 4))
		wl_auto_alone(control);
	wl_auto_grow_beside_others(control, window, ack, least);
	return window->cwnd != cwnd;
}

// Losses or a router's mark speak for congestion.
WL_CORE void wl_auto_reduce(struct wl_auto *control, struct wl_window *window, const struct wl_ack *ack, const struct wl_news *news)
{
	struct wl_loss loss = { .now = ack->now, .cwnd = window->cwnd, .flight = news->flight, .srtt = ack->srtt };
	int climbing = window->cwnd < window->ssthresh;
	// Where nothing tells of a queue but many are lost, the rate says how much is too much.
	int queued = news->marked || control->blame.due;
	int holds = !control->others && (wl_blame_is_corruption(&control->blame) || !queued);
	u32 share = queued ? wl_blame_corrupted(&control->blame) : wl_blame_explained(&control->blame);
	u32 floor = climbing || holds ? wl_auto_fill(control, control->filling.base, share) : 0, target;

	wl_cubic_save(&control->cubic);
	target = wl_max(wl_cubic_threshold(&control->cubic, &loss), floor);
	control->answered = ack->nxt;
	control->owes = 1;
	control->saved = window->cwnd;
	target = wl_min(target, window->cwnd);
	window->ssthresh = wl_threshold(target);
	window->cwnd = target;
	wl_blame_answered(&control->blame);
	control->careful = !holds;
	control->step = WL_AUTO_STEP;
	control->overflowed = holds && !climbing ? control->saved : 0;
	control->fraction = 0;
	// Before it went beyond what it had: the queue that overflows is still others', and what it has now is even less.
	if (control->begun || control->others != WL_SEEN || target < 2 * WL_AUTO_FEW)
		control->probe = 0;
	control->probe_delay = 0;
	if (climbing || holds)
		return;
	if (control->others)
		wl_auto_compete(control, control->others, control->left);
	else
		wl_auto_compete(control, WL_SUSPECTED, WL_AUTO_LOOK_AFTER_LOSS);
}

// Segments are taken for lost. Returns how many of them came while the queue was full.
WL_CORE u32 wl_auto_place(struct wl_auto *control, u32 segments)
{
	return wl_filling_lost(&control->filling, segments, wl_auto_halves(control, 2), control->others);
}

// Losses of what left before the first acknowledgement.
WL_CORE void wl_auto_lost_first(struct wl_auto *control, u32 segments)
{
	control->first_lost += segments;
}

// Nobody has explained these losses, of which `full` came while the queue was full.
WL_CORE void wl_auto_lost(struct wl_auto *control, u32 segments, u32 full)
{
	wl_blame_lost(&control->blame, segments, wl_min(full, segments));
}

WL_CORE void wl_auto_excused(struct wl_auto *control, u32 segments)
{
	wl_blame_excused(&control->blame, segments);
}

// Whether what is lost may have left before the first acknowledgement, unpaced: a queue too short for that says nothing of how large a paced window
// may be.
WL_CORE int wl_auto_is_beginning(const struct wl_auto *control, u32 una)
{
	return control->begins && wl_after(control->first, una);
}

// An acknowledgement, after the losses that it revealed. Returns whether the window was reduced for congestion.
WL_STAGE int wl_auto_ack(struct wl_auto *control WL_GIVEN, struct wl_window *window WL_GIVEN, const struct wl_ack *ack WL_GIVEN,
			 const struct wl_news *news WL_GIVEN)
{
	int open = !wl_auto_is_answering(control, ack->una), reduced = 0;
	struct wl_ack grown = *ack;
	u32 few;

	if (news->rate && (!news->app_limited || news->rate > wl_auto_rate(control)))
		wl_auto_see(control, news->rate, ack->now);
	control->burst = news->burst;
	control->begins = wl_auto_is_beginning(control, ack->una);
	wl_filling_ack(&control->filling, ack->now, ack->delay);
	wl_blame_delivered(&control->blame, ack->delivered);
	if (open) {
		// An answer that is repaired is history: sequence numbers wrap.
		control->owes = 0;
		if (wl_blame_congested(&control->blame, window->cwnd) || news->marked) {
			wl_auto_reduce(control, window, ack, news);
			reduced = 1;
		}
	}
	if (control->first_lost) {
		// Slow start goes on from what arrived.
		few = wl_min(WL_AUTO_FEW, window->cwnd);
		window->cwnd = wl_max(window->cwnd - wl_min(control->first_lost, window->cwnd), few);
		control->first_lost = 0;
	}
	// A queue too short to be seen may have overflowed.
	if (window->cwnd < window->ssthresh && wl_blame_in_a_row(&control->blame, window->cwnd))
		window->ssthresh = wl_threshold(window->cwnd);
	if (window->cwnd < window->ssthresh || wl_auto_grows_as_cubic(control)) {
		grown.acked = ack->delivered;
		// Beside others it does not grow while it repairs what it has answered.
		grown.in_recovery = control->others && !open;
		wl_cubic_grow(&control->cubic, window, &grown);
	}
	wl_auto_end_slow_start(control, window);
	if (!wl_after(control->until, ack->una) || (news->rate && !wl_after(control->until_delivered, news->prior))) {
		control->until = ack->nxt;
		control->until_delivered = news->total;
		wl_auto_end_round(control, window, ack);
	}
	if (!wl_after(control->aged, ack->una))
		wl_auto_age(control, ack->nxt);
	return reduced;
}

// An episode of losses begins, which may prove none.
WL_CORE void wl_auto_save(struct wl_auto *control)
{
	wl_cubic_save(&control->cubic);
	control->saved = 0;
}

// The timer has expired for the first time since everything was repaired. Returns the threshold.
WL_CORE u32 wl_auto_threshold(struct wl_auto *control, const struct wl_loss *loss)
{
	u32 threshold;

	wl_cubic_save(&control->cubic);
	threshold = wl_max(wl_cubic_threshold(&control->cubic, loss), wl_auto_fill(control, control->filling.base, wl_blame_corrupted(&control->blame)));
	control->saved = loss->cwnd;
	return wl_threshold(wl_min(threshold, loss->cwnd));
}

// The timer expired and nothing speaks for corruption.
WL_CORE void wl_auto_timeout(struct wl_auto *control, u32 nxt)
{
	control->answered = nxt;
	control->owes = 1;
	control->fraction = 0;
	control->probe = 0;
	wl_blame_answered(&control->blame);
	wl_filling_timeout(&control->filling);
	wl_cubic_timeout(&control->cubic);
}

// The latest reduction or timeout proved wrong.
WL_CORE void wl_auto_undo(struct wl_auto *control, struct wl_window *window)
{
	wl_cubic_undo(&control->cubic);
	window->cwnd = wl_max(window->cwnd, control->saved);
}

#endif
