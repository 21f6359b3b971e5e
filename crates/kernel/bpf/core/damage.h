// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The receiver's side: which damaged segments it reports, and when. The sequence number of a damaged segment may be what was hit. It is
// believed if it equals one that the receiver expects independently: a segment boundary in a hole or behind what has arrived, or the end of what
// came right before.
#ifndef WHYLOSS_CORE_DAMAGE_H
#define WHYLOSS_CORE_DAMAGE_H

#include "core/budget.h"
#include "core/loop.h"
#include "core/option.h"

// Damaged segments that wait to be reported, or that are reported again until their data has arrived: as many as a window of some thousand
// segments has of them.
#define WL_PENDING 512
// Segments that arrived intact whose right to a report is kept: a quarter as many reports.
#define WL_PENDING_BUDGET 512
#define WL_BLOCKS 4
// Damaged segments that one option reports.
#define WL_LIST 6
// Reports of a segment that count as urgent: an acknowledgement that carries one can be lost.
#define WL_URGENT 2
// A segment that is not longer can be an acknowledgement without data, whatever its damaged data offset says.
#define WL_LONGEST_HEADER 60

struct wl_block {
	u32 start;
	u32 end;
};

// What a receiver has and expects.
struct wl_view {
	u32 now;
	u32 next; // RCV.NXT
	u32 window; // octets from `next` on
	u32 full; // data of a full segment; 0 if not known
	u32 blocks;
	struct wl_block block[WL_BLOCKS]; // in order
};

struct wl_damage {
	u32 seq;
	u32 echo;
	u32 at; // when it arrived, in microseconds
	u8 used; // until its data has arrived
	u8 echoed;
	u8 congested;
	u8 placed;
	u8 reports; // sent of it, no more than 255; already before it is noted, too
};

struct wl_receiver {
	struct wl_budget budget;
	u32 head; // number of the oldest damage
	u32 tail; // number of the next; each has the place of its number modulo WL_PENDING
	u32 list[8]; // numbers of the damages that are to be reported next
	u32 listed;
	u8 begun;
	u8 squeezed; // an acknowledgement is on its way out that had no room for them
	u8 words; // of them have room reserved as words
	u8 full; // or the first of them has, in full
	u8 count;
	u8 limited;
	struct wl_damage damage[WL_PENDING];
};

WL_CORE void wl_view_swap(struct wl_view *view, u32 a, u32 b)
{
	struct wl_block low = view->block[a], high = view->block[b];

	// An unused block stands at the end, so that it sorts there.
	if (low.start - view->next > high.start - view->next) {
		view->block[a] = high;
		view->block[b] = low;
	}
}

// Puts the blocks in order; those beyond `blocks` lie before RCV.NXT and so sort last.
WL_CORE void wl_view_sort(struct wl_view *view)
{
	u32 i;

	for (i = 0; i < WL_BLOCKS; i++)
		if (i >= view->blocks)
			view->block[i] = (struct wl_block){ view->next - 1, view->next - 1 };
	wl_view_swap(view, 0, 1);
	wl_view_swap(view, 2, 3);
	wl_view_swap(view, 0, 2);
	wl_view_swap(view, 1, 3);
	wl_view_swap(view, 1, 2);
}

// Whether the octet at `seq` lies in the window and has not arrived.
WL_CORE int wl_missing(const struct wl_view *view, u32 seq)
{
	u32 i;

	if (seq - view->next >= view->window)
		return 0;
	for (i = 0; i < WL_BLOCKS; i++) {
		const struct wl_block *block = &view->block[i];

		if (i < view->blocks && seq - block->start < block->end - block->start)
			return 0;
	}
	return 1;
}

// Octets from a missing `seq` to the next that has arrived, or to the end of the window.
WL_CORE u32 wl_room(const struct wl_view *view, u32 seq)
{
	u32 room = view->window - (seq - view->next), i;

	for (i = 0; i < WL_BLOCKS; i++) {
		u32 before = view->block[i].start - seq;

		if (i < view->blocks && (s32)before > 0)
			room = wl_min(room, before);
	}
	return room;
}

// Whether a segment begins at `seq` as far as what has arrived tells: a whole number of full segments after the left edge of a hole, or behind all
// that has arrived.
WL_CORE int wl_boundary(const struct wl_view *view, u32 seq)
{
	u32 edge = view->next, i;

	for (i = 0; i < WL_BLOCKS; i++) {
		const struct wl_block *block = &view->block[i];

		if (i >= view->blocks)
			break;
		if (seq - edge < block->start - edge)
			return seq == edge || (view->full && !((seq - edge) % view->full));
		edge = block->end;
	}
	return seq == edge || (view->full && !((seq - edge) % view->full));
}

// Whether the octet at `seq` arrived lately: behind RCV.NXT by no more than a window, or ahead of it.
WL_CORE int wl_arrived(const struct wl_view *view, u32 seq)
{
	u32 span = wl_max(view->window, 65535);

	return view->next - 1 - seq < span || (seq - view->next < view->window && !wl_missing(view, seq));
}

// The first damage is about to be noted.
WL_CORE void wl_receiver_begin(struct wl_receiver *receiver)
{
	receiver->begun = 1;
	wl_budget_init(&receiver->budget);
}

struct wl_place {
	const struct wl_receiver *receiver;
	const struct wl_damage *damage;
	u32 known; // it is noted already
};

WL_STEP wl_place_step(u32 round, struct wl_place *place)
{
	const struct wl_damage *other = &place->receiver->damage[(place->receiver->head + round) % WL_PENDING];

	if (round >= place->receiver->tail - place->receiver->head)
		return 1;
	// Another echo is another damage, so that a forged copy cannot displace the genuine one.
	if (!other->used || other->seq != place->damage->seq || other->echo != place->damage->echo)
		return 0;
	place->known = 1;
	return 1;
}

// Takes note of a damaged segment; returns whether there was room for it. What lies outside the window is not kept; nor is what has arrived, unless
// the sender can tell by an echo that it was damaged before: SACK blocks can have left no room for its report until then.
WL_CORE int wl_receiver_damage(struct wl_receiver *receiver, const struct wl_view *view, const struct wl_damage *damage)
{
	struct wl_place place = { receiver, damage, 0 };
	struct wl_damage *free;

	if (!wl_missing(view, damage->seq) && !(damage->echoed && wl_arrived(view, damage->seq)))
		return 1;
	WL_LOOP(WL_PENDING, wl_place_step, &place);
	if (place.known)
		return 1;
	if (receiver->tail - receiver->head >= WL_PENDING)
		return 0;
	free = &receiver->damage[receiver->tail % WL_PENDING];
	*free = *damage;
	free->used = 1;
	// What was reported at once has its place, and counts.
	free->placed = !!damage->reports;
	if (free->placed) {
		wl_budget_spend(&receiver->budget);
		receiver->count++;
	}
	receiver->tail++;
	return 1;
}

struct wl_choice {
	struct wl_receiver *receiver;
	const struct wl_view *view;
	u32 from;
	u32 wanted;
	u32 most; // that go together
	u32 least; // reports of those that are listed
};

// Whether a word says enough of a damage: it is known by its nonce, of which ten bits would else be a guess, and lies where a word can name it.
WL_CORE int wl_damage_serves(const struct wl_damage *damage, u32 ack)
{
	return damage->echoed && damage->seq - ack < WL_COMPACT_OFFSETS;
}

WL_CORE void wl_choice_add(struct wl_choice *choice, const struct wl_damage *damage, u32 number)
{
	struct wl_receiver *receiver = choice->receiver;

	if (damage->reports < choice->least) {
		choice->least = damage->reports;
		receiver->list[0] = number;
		receiver->listed = 1;
		// What is not urgent is told one by one.
		choice->most = damage->reports < WL_URGENT && wl_damage_serves(damage, choice->view->next) ? choice->wanted : 1;
	} else if (damage->reports == choice->least && receiver->listed < choice->most && wl_damage_serves(damage, choice->view->next)) {
		receiver->list[receiver->listed & 7] = number;
		receiver->listed++;
	}
}

WL_STEP wl_choice_step(u32 round, struct wl_choice *choice)
{
	struct wl_receiver *receiver = choice->receiver;
	u32 number = choice->from + round;
	struct wl_damage *damage = &receiver->damage[number % WL_PENDING];
	int missing;

	if (number == receiver->tail)
		return 1;
	if (!damage->used) {
		receiver->head += receiver->head == number;
		return 0;
	}
	missing = wl_missing(choice->view, damage->seq);
	if (!missing && (damage->reports || !damage->echoed || !wl_arrived(choice->view, damage->seq))) {
		damage->used = 0;
		return 0;
	}
	if (!damage->placed) {
		if (missing && !wl_boundary(choice->view, damage->seq))
			return 0;
		if (!wl_budget_spend(&receiver->budget)) {
			receiver->limited = 1;
			damage->used = 0;
			return 0;
		}
		receiver->limited = 0;
		receiver->count++;
		damage->placed = 1;
	}
	wl_choice_add(choice, damage, number);
	// Nothing is more urgent than the oldest that were never reported.
	return !choice->least && receiver->listed >= choice->most;
}

// Chooses what the next acknowledgement reports, no more than `most` segments: those that were reported least often, of these the oldest. Forgets
// what has arrived and was reported. Returns how many there are.
WL_CORE u32 wl_receiver_choose(struct wl_receiver *receiver, const struct wl_view *view, u32 most)
{
	struct wl_choice choice = { receiver, view, receiver->head, wl_min(most, WL_LIST), 1, 256 };

	receiver->listed = 0;
	WL_LOOP(WL_PENDING, wl_choice_step, &choice);
	return receiver->listed;
}

// Of those that were chosen.
WL_CORE struct wl_damage *wl_receiver_listed(struct wl_receiver *receiver, u32 place)
{
	return &receiver->damage[receiver->list[place & 7] % WL_PENDING];
}

WL_CORE u32 wl_damage_word(const struct wl_damage *damage, u32 ack)
{
	return wl_word_of(damage->seq - ack, damage->echo, damage->congested);
}

WL_CORE void wl_receiver_report(const struct wl_receiver *receiver, const struct wl_view *view, const struct wl_damage *damage,
				struct wl_report *report)
{

	*report = (struct wl_report){ 0 };
	report->seq = damage->seq;
	report->echo = damage->echo;
	report->echoed = damage->echoed ? 0xFFFFFFFF : 0;
	report->len = wl_min(wl_missing(view, damage->seq) ? wl_min(view->full, wl_room(view, damage->seq)) : view->full, 0xFFFF);
	report->count = receiver->count;
	report->counted = 1;
	report->confirmed = 1;
	report->congested = damage->congested;
	report->limited = receiver->limited;
}

#endif
