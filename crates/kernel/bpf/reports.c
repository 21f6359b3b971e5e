// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The cores of the reports of damaged segments, for the host.
#include <stddef.h>
#include <string.h>

#include "core/damage.h"
#include "core/delay.h"
#include "core/accepted.h"
#include "core/kept.h"
#include "core/room.h"
#include "core/tickets.h"

void wl_host_options_read(struct wl_options *options, const u8 *octets, u32 len, u32 ack)
{
	struct wl_scan scan = { 0 };

	memcpy(scan.octets, octets, wl_min(len, WL_OPTIONS_MAX));
	wl_options_read(options, &scan, len, ack);
}

u32 wl_host_report_write(u8 *octets, const struct wl_report *report)
{
	return wl_report_write(octets, report);
}

// Reads report `number` of an option, and returns whether there is such a one.
int wl_host_report_at(struct wl_report *report, const u8 *octets, u32 len, u32 number, u32 ack)
{
	struct wl_scan scan = { 0 };
	struct wl_options options;

	memcpy(scan.octets, octets, wl_min(len, WL_OPTIONS_MAX));
	wl_options_read(&options, &scan, len, ack);
	return wl_report_at(report, &scan, number, ack);
}

// Writes an option of words into 40 octets, with a nonce if it is not 0; returns its length.
u32 wl_host_words_write(u8 *octets, u32 nonce, const struct wl_report *reports, u32 count, u32 ack)
{
	u32 first = !!nonce, i;

	wl_put_head(octets, WL_WORDS_LEN(first + count));
	if (nonce)
		wl_word_write(octets, 0, WL_WORD_NONCE | nonce);
	for (i = 0; i < count; i++)
		wl_word_write(octets, first + i, wl_word_of(reports[i].seq - ack, reports[i].echo, reports[i].congested));
	return WL_WORDS_LEN(first + count);
}

int wl_host_room_make(u8 *octets, u32 len, const u8 *report, u32 size)
{
	u8 scan[WL_OCTETS] = { 0 };
	int made;

	memcpy(scan, octets, wl_min(len, WL_OPTIONS_MAX));
	made = wl_room_make(scan, len, report, size);
	memcpy(octets, scan, wl_min(len, WL_OPTIONS_MAX));
	return made;
}

u64 wl_host_siphash(u64 k0, u64 k1, u64 word)
{
	struct wl_key key = { k0, k1 };

	return wl_siphash(&key, word);
}

// One sender.
struct wl_host_sender {
	struct wl_sent sent;
	struct wl_accepted accepted;
};

const size_t wl_host_sender_size = sizeof(struct wl_host_sender);

void wl_host_sender_init(struct wl_host_sender *sender, u64 key, int nonces)
{
	memset(sender, 0, sizeof(*sender));
	sender->sent.key = (struct wl_key){ key, ~key };
	sender->accepted.nonces = nonces;
	wl_budget_init(&sender->accepted.budget);
}

// Whatever is sent again was lost.
u32 wl_host_sender_send(struct wl_host_sender *sender, u32 seq, u32 len, u32 mss, int again)
{
	u32 explained = again ? wl_accepted_repair(&sender->accepted, seq, len) : 0, nonce;

	if (!again)
		wl_accepted_age(&sender->accepted, seq);
	nonce = wl_sent_nonce(&sender->sent, seq, len, mss, again);
	if (again)
		wl_repair_begin(&sender->sent, explained);
	return nonce;
}

u32 wl_host_sender_report(struct wl_host_sender *sender, const struct wl_report *report, u32 una, u32 nxt)
{
	struct wl_outstanding at = { una, nxt };

	return wl_accept_report(&sender->accepted, &sender->sent, report, &at);
}

void wl_host_sender_delivered(struct wl_host_sender *sender, u32 segments, u32 window)
{
	wl_accepted_delivered(&sender->accepted, segments, window);
}

void wl_host_sender_pass(struct wl_host_sender *sender, u32 elapsed)
{
	sender->sent.clock += elapsed;
}

void wl_host_sender_counts(const struct wl_host_sender *sender, u32 counts[4])
{
	counts[0] = sender->accepted.total;
	counts[1] = sender->accepted.repaired;
	counts[2] = wl_accepted_distrusted(&sender->accepted);
	counts[3] = wl_accepted_lately(&sender->accepted);
}

const size_t wl_host_kept_size = sizeof(struct wl_kept);

u32 wl_host_kept_begin(struct wl_kept *kept, const struct wl_host_sender *sender, u32 cwnd, u32 path, int reported, int marked)
{
	return wl_kept_begin(kept, (struct wl_window){ cwnd, 2 }, path, sender->sent.number, reported, marked);
}

u32 wl_host_kept_ack(struct wl_kept *kept, const struct wl_host_sender *sender, u32 patience, int repaired)
{
	return wl_kept_ack(kept, &sender->sent, patience, repaired);
}

u32 wl_host_kept_mark(struct wl_kept *kept, const struct wl_host_sender *sender)
{
	return wl_kept_mark(kept, sender->sent.number);
}

void wl_host_kept_end(struct wl_kept *kept)
{
	wl_kept_end(kept);
}

u32 wl_host_kept_threshold(const struct wl_kept *kept)
{
	return wl_kept_threshold(kept);
}

struct wl_host_delay {
	struct wl_delay delay;
	struct wl_newreno reno;
	struct wl_window window;
};

const size_t wl_host_delay_size = sizeof(struct wl_host_delay);

void wl_host_delay_init(struct wl_host_delay *host, u32 cwnd)
{
	memset(host, 0, sizeof(*host));
	wl_newreno_init(&host->reno, WL_UNLIMITED, WL_UNLIMITED);
	host->window = (struct wl_window){ cwnd, 0x7fffffff };
}

// A round trip of `rtt` over a path of `base`; returns the window, and above it whether it competes.
u32 wl_host_delay_round(struct wl_host_delay *host, u32 rtt, u32 base)
{
	u32 i, sent = host->window.cwnd, end = host->delay.end;

	for (i = 1; i <= sent; i++) {
		struct wl_ack ack = { 0 };

		ack.acked = 1;
		ack.una = end + i;
		ack.nxt = end + sent + i;
		ack.delay = rtt;
		ack.limited = 1;
		if (i < sent)
			ack.una = end - 1; // only the last ends the round
		wl_delay_ack(&host->delay, &host->reno, &host->window, &ack, base);
	}
	return host->window.cwnd | (u32)host->delay.competing << 31;
}

int wl_host_delay_long(u32 cwnd, u32 rtt, u32 base)
{
	return wl_delay_long(cwnd, rtt, base);
}

u32 wl_host_delay_path(u32 cwnd, u32 rtt, u32 base)
{
	return wl_delay_path(cwnd, rtt, base);
}

int wl_host_ticket_take(u32 *tail, u32 head, u32 places, u32 *ticket)
{
	return wl_ticket_take(tail, head, places, ticket);
}

_Static_assert(sizeof(struct wl_report) == 20 && sizeof(struct wl_options) == 28, "tests/reports.rs has these");
