// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Which losses nobody has explained. A loss is known by what repairs it: each retransmission stands for the loss of the transmission before, and a
// report of that transmission explains it, whether it came before or comes later.
#ifndef WHYLOSS_CORE_REPAIR_H
#define WHYLOSS_CORE_REPAIR_H

#include "core/nonce.h"

// The latest retransmission repairs losses of which `explained` segments were reported.
WL_CORE void wl_repair_begin(struct wl_sent *sent, u32 explained)
{
	struct wl_again *again = &sent->again[sent->number % WL_AGAIN];
	u32 segments = wl_together(again->end - again->seq, again->mss);

	again->open = segments > explained ? wl_min(segments - explained, 65535) : 0;
	again->occasion = sent->occasion ? sent->occasion : WL_LOST;
	again->at = sent->clock;
}

struct wl_explain {
	const struct wl_sent *sent;
	u32 seq;
	u32 number; // of the transmission that was reported
	u32 first; // number of the first retransmission after it whose loss is open; 0 if there is none
};

WL_STEP wl_explain_step(u32 round, struct wl_explain *explain)
{
	const struct wl_again *again = &explain->sent->again[round % WL_AGAIN];

	if (again->open && explain->seq - again->seq < again->end - again->seq && wl_after(again->number, explain->number) &&
	    (!explain->first || wl_after(explain->first, again->number)))
		explain->first = again->number;
	return 0;
}

// The loss of transmission `number` of the segment at `seq` was reported. Returns whether it was open.
WL_CORE int wl_repair_explain(struct wl_sent *sent, u32 seq, u32 number)
{
	struct wl_explain explain = { sent, seq, number, 0 };

	WL_LOOP(WL_AGAIN, wl_explain_step, &explain);
	if (explain.first)
		sent->again[explain.first % WL_AGAIN].open--;
	return explain.first != 0;
}

// Losses that are not explained.
struct wl_open {
	const struct wl_sent *sent;
	u32 after; // retransmissions up to this one do not count
	u32 answered; // for losses repaired up to this one the window was reduced
	u32 count;
	u32 longest; // how long the oldest is open
	u32 longest_new; // and the oldest of those for which it was not
};

WL_STEP wl_open_step(u32 round, struct wl_open *open)
{
	// From the latest on.
	const struct wl_again *again = &open->sent->again[(open->sent->number - round) % WL_AGAIN];
	u32 waited = open->sent->clock - again->at;

	if (!wl_after(again->number, open->after))
		return 1;
	if (!again->open)
		return 0;
	open->count += again->open;
	open->longest = wl_max(open->longest, waited);
	if (wl_after(again->number, open->answered))
		open->longest_new = wl_max(open->longest_new, waited);
	return 0;
}

WL_CORE void wl_repair_open(struct wl_open *open, const struct wl_sent *sent, u32 after, u32 answered)
{
	*open = (struct wl_open){ sent, after, answered, 0, 0, 0 };
	if (sent->number == after)
		return;
	WL_LOOP(WL_AGAIN, wl_open_step, open);
	// What was forgotten has been open for longer than anything else.
	if (sent->forgotten && wl_after(sent->forgotten, after)) {
		open->count++;
		open->longest = 0xFFFFFFFF;
		if (wl_after(sent->forgotten, answered))
			open->longest_new = 0xFFFFFFFF;
	}
}

// Losses about which it is known now whether the receiver explains them.
struct wl_trial {
	u32 tried; // the latest retransmission whose losses are through
	u32 patience; // for how long a report is waited for
	u32 explained;
	u32 lost; // not explained
	u32 full; // of these, while the queue was full
};

struct wl_trial_of {
	const struct wl_sent *sent;
	struct wl_trial *trial;
};

WL_STEP wl_trial_step(u32 round, struct wl_trial_of *of)
{
	struct wl_trial *trial = of->trial;
	const struct wl_again *again = &of->sent->again[(trial->tried + 1) % WL_AGAIN];
	u32 segments;

	if (trial->tried == of->sent->number)
		return 1;
	if (again->open && of->sent->clock - again->at <= trial->patience)
		return 1;
	trial->tried++;
	if (again->occasion == WL_REPAIRS_NOTHING || again->occasion == WL_LOST_BEFORE)
		return 0;
	segments = wl_together(again->end - again->seq, again->mss);
	trial->explained += segments - wl_min(segments, again->open);
	trial->lost += again->open;
	trial->full += again->occasion == WL_LOST_FULL ? again->open : 0;
	return 0;
}

// Goes on after retransmission `tried`; returns how many losses were tried.
WL_STAGE u32 wl_repair_try(struct wl_trial *trial WL_GIVEN, const struct wl_sent *sent WL_GIVEN)
{
	struct wl_trial_of of = { sent, trial };

	if (sent->number - trial->tried > WL_AGAIN)
		trial->tried = sent->number - WL_AGAIN;
	if (sent->number != trial->tried)
		WL_LOOP(WL_AGAIN, wl_trial_step, &of);
	return trial->explained + trial->lost;
}

#endif
