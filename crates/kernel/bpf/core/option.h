// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The TCP options of checksum-based loss differentiation: kind 253 with our experiment identifier (RFC 6994), the layouts of
// docs/wire-formats.md. The full report has 15 octets beside 10 of timestamps and one SACK block; beside two there are 8. What takes least is an
// option of words of four octets: compact reports, and a nonce.
#ifndef WHYLOSS_CORE_OPTION_H
#define WHYLOSS_CORE_OPTION_H

#include "core/loop.h"

#define WL_OPTION_KIND 253
// On a SYN, with the same identifier: words can be read.
#define WL_WORDS_KIND 254
#define WL_OPTION_ID_HIGH 0x57
#define WL_OPTION_ID_LOW 0x4C

#define WL_PERMITTED_LEN 4
#define WL_NONCE_LEN 9
#define WL_COUNT_LEN 7
#define WL_POSITION_LEN 11
#define WL_ECHO_LEN 15
// An option of words, and the most of them that a header has room for.
#define WL_WORDS_LEN(words) (4 + 4 * (words))
#define WL_WORDS_MOST 9

#define WL_SUB_REPORT 4
#define WL_SUB_NONCE 6
// A word begins with the bits 1 if it is a report, and with 01 if it is a nonce; sub-types begin with 00.
#define WL_WORD 0x40
#define WL_WORD_NONCE 0x40000000U
#define WL_NONCE 0x3FFFFFFFU
#define WL_COMPACT 0x80000000U
#define WL_COMPACT_CE 0x40000000U
#define WL_COMPACT_OFFSETS (1U << 20)
#define WL_COMPACT_ECHO 0x3FFU

#define WL_SEQ_CONFIRMED 0x80
#define WL_ORDER_INFERRED 0x40
#define WL_CE_SEEN 0x20
#define WL_RATE_LIMITED 0x10
#define WL_LENGTH_UNIT 128

// Options of a TCP header: no more than 40, and readers look at WL_OCTETS, so that no length can lead them out.
#define WL_OPTIONS_MAX 40
#define WL_OCTETS 64

struct wl_report {
	u32 seq; // first octet of the damaged segment
	u32 echo; // nonce read from it, as far as `echoed` goes
	u32 echoed; // mask of the bits of `echo` that the report brought
	u16 len; // of the segment, rounded up; 0 if not known
	u8 count; // damaged segments so far
	u8 counted; // `count` was told
	u8 confirmed; // the receiver knows `seq` independently of the damaged header
	u8 congested; // the damaged packet carried CE
	u8 limited; // other reports were suppressed
};

struct wl_options {
	struct wl_report report;
	u32 nonce;
	u8 permitted;
	u8 words; // can be read by the peer
	u8 has_nonce;
	u8 has_report; // `report` is the first of them
};

WL_CORE u8 wl_octet(const u8 *octets, u32 at)
{
	return octets[at & (WL_OCTETS - 1)];
}

WL_CORE u32 wl_word(const u8 *octets, u32 at)
{
	return (u32)wl_octet(octets, at) << 24 | (u32)wl_octet(octets, at + 1) << 16 | (u32)wl_octet(octets, at + 2) << 8 |
	       wl_octet(octets, at + 3);
}

WL_CORE void wl_put_word(u8 *octets, u32 word)
{
	octets[0] = word >> 24;
	octets[1] = word >> 16;
	octets[2] = word >> 8;
	octets[3] = word;
}

WL_CORE void wl_put_head_of(u8 *octets, u8 kind, u8 len)
{
	octets[0] = kind;
	octets[1] = len;
	octets[2] = WL_OPTION_ID_HIGH;
	octets[3] = WL_OPTION_ID_LOW;
}

WL_CORE void wl_put_head(u8 *octets, u8 len)
{
	wl_put_head_of(octets, WL_OPTION_KIND, len);
}

// Reads a word of a header with acknowledgement number `ack`. Returns whether it is a report.
WL_CORE int wl_word_read(struct wl_report *report, u32 word, u32 ack)
{
	*report = (struct wl_report){ 0 };
	if (!(word & WL_COMPACT))
		return 0;
	report->seq = ack + (word >> 10 & (WL_COMPACT_OFFSETS - 1));
	report->echo = word & WL_COMPACT_ECHO;
	report->echoed = WL_COMPACT_ECHO;
	report->congested = !!(word & WL_COMPACT_CE);
	report->confirmed = 1;
	return 1;
}

// Reads a report that stands `at` octets from the beginning, `len` octets long. Returns whether it is one that names a position.
WL_CORE int wl_report_read(struct wl_report *report, const u8 *octets, u32 at, u32 len)
{
	u32 word = wl_word(octets, at + 4), flags;

	*report = (struct wl_report){ 0 };
	flags = word >> 16 & 0xFF;
	if (word >> 24 != WL_SUB_REPORT || (flags & WL_SEQ_CONFIRMED && flags & WL_ORDER_INFERRED))
		return 0;
	if (!(flags & (WL_SEQ_CONFIRMED | WL_ORDER_INFERRED)) || (len != WL_POSITION_LEN && len != WL_ECHO_LEN))
		return 0;
	report->seq = wl_word(octets, at + 7);
	report->len = (flags & 0x0F) * WL_LENGTH_UNIT;
	report->count = word >> 8 & 0xFF;
	report->counted = 1;
	report->confirmed = !!(flags & WL_SEQ_CONFIRMED);
	report->congested = !!(flags & WL_CE_SEEN);
	report->limited = !!(flags & WL_RATE_LIMITED);
	if (len == WL_ECHO_LEN) {
		report->echo = wl_word(octets, at + 11);
		report->echoed = 0xFFFFFFFF;
	}
	return 1;
}

// The options of a header, and what of ours was found in them.
struct wl_scan {
	u32 len;
	u32 at;
	u32 report_at;
	u32 report_len; // 0 if there is none
	u32 words_at;
	u32 words; // reports among them; 0 if there are none
	u32 nonce_at; // of its value; 0 if there is none
	u32 nonce_mask;
	u32 permitted;
	u32 readable; // words are, by the peer
	u8 octets[WL_OCTETS];
};

// Words begin at `at`, the first of them a nonce or not; all others have to be reports.
WL_CORE void wl_scan_words(struct wl_scan *scan, u32 at, u32 words, int nonce)
{
	u32 i, others = 0;

	for (i = 1; i < WL_WORDS_MOST; i++)
		others += i < words && !(wl_octet(scan->octets, at + 4 * i) & 0x80);
	if (others)
		return;
	if (nonce) {
		scan->nonce_at = at;
		scan->nonce_mask = WL_NONCE;
	}
	if (words > (u32)nonce) {
		scan->words_at = at + 4 * nonce;
		scan->words = words - nonce;
		scan->report_len = 0;
	}
}

WL_STEP wl_scan_step(u32 round, struct wl_scan *scan)
{
	u32 at = scan->at, kind, size, sub;

	if (at >= scan->len)
		return 1;
	kind = wl_octet(scan->octets, at);
	if (!kind)
		return 1;
	if (kind == 1) {
		scan->at = at + 1;
		return 0;
	}
	size = at + 1 < scan->len ? wl_octet(scan->octets, at + 1) : 0;
	if (size < 2 || size > scan->len - at)
		return 1;
	scan->at = at + size;
	if (size < WL_PERMITTED_LEN || wl_octet(scan->octets, at + 2) != WL_OPTION_ID_HIGH ||
	    wl_octet(scan->octets, at + 3) != WL_OPTION_ID_LOW)
		return 0;
	if (kind == WL_WORDS_KIND && size == WL_PERMITTED_LEN)
		scan->readable = 1;
	if (kind != WL_OPTION_KIND)
		return 0;
	sub = wl_octet(scan->octets, at + 4);
	if (size == WL_PERMITTED_LEN) {
		scan->permitted = 1;
	} else if (size == WL_NONCE_LEN && sub == WL_SUB_NONCE) {
		// That of words comes first.
		if (scan->nonce_mask != WL_NONCE) {
			scan->nonce_at = at + 5;
			scan->nonce_mask = 0xFFFFFFFF;
		}
	} else if (size > WL_PERMITTED_LEN && sub == WL_SUB_REPORT) {
		scan->report_at = at;
		scan->report_len = size;
		scan->words = 0;
	} else if (sub >= WL_WORD && size >= WL_WORDS_LEN(1) && !(size & 3)) {
		wl_scan_words(scan, at + 4, (size - 4) / 4, sub < 0x80);
	}
	return 0;
}

WL_CORE u32 wl_scan_word(const struct wl_scan *scan, u32 number)
{
	return wl_word(scan->octets, scan->words_at + 4 * number);
}

// Reads report `number` of those in `scan`; returns whether there is such a one.
WL_CORE int wl_report_at(struct wl_report *report, const struct wl_scan *scan, u32 number, u32 ack)
{
	if (scan->report_len)
		return !number && wl_report_read(report, scan->octets, scan->report_at, scan->report_len);
	return number < scan->words && wl_word_read(report, wl_scan_word(scan, number), ack);
}

// Reads what of ours stands in the first `len` octets of `scan`; `ack` is the acknowledgement number of their header. Of an option that comes
// twice the last counts, and one whose length makes no sense ends the reading.
WL_CORE void wl_options_read(struct wl_options *options, struct wl_scan *scan, u32 len, u32 ack)
{
	*options = (struct wl_options){ 0 };
	scan->len = wl_min(len, WL_OPTIONS_MAX);
	scan->at = scan->report_at = scan->report_len = scan->words_at = scan->words = scan->nonce_at = scan->nonce_mask = scan->permitted =
		scan->readable = 0;
	WL_LOOP(WL_OPTIONS_MAX, wl_scan_step, scan);
	options->permitted = !!scan->permitted;
	options->words = !!scan->readable;
	if (scan->nonce_at) {
		options->has_nonce = 1;
		options->nonce = wl_word(scan->octets, scan->nonce_at) & scan->nonce_mask;
	}
	options->has_report = wl_report_at(&options->report, scan, 0, ack);
}

WL_CORE void wl_nonce_write(u8 *octets, u32 nonce)
{
	wl_put_head(octets, WL_NONCE_LEN);
	octets[4] = WL_SUB_NONCE;
	wl_put_word(octets + 5, nonce);
}

// Writes the full report into 15 octets; returns its length.
WL_CORE u32 wl_report_write(u8 *octets, const struct wl_report *report)
{
	u32 units = (report->len + WL_LENGTH_UNIT - 1) / WL_LENGTH_UNIT;
	u32 len = report->echoed ? WL_ECHO_LEN : WL_POSITION_LEN;

	wl_put_head(octets, len);
	octets[4] = WL_SUB_REPORT;
	octets[5] = (report->confirmed ? WL_SEQ_CONFIRMED : WL_ORDER_INFERRED) | (report->congested ? WL_CE_SEEN : 0) |
		    (report->limited ? WL_RATE_LIMITED : 0) | wl_min(units, 15);
	octets[6] = report->count;
	wl_put_word(octets + 7, report->seq);
	if (report->echoed)
		wl_put_word(octets + 11, report->echo);
	return len;
}

// The word of a compact report, of the segment that begins `offset` octets behind the acknowledgement number.
WL_CORE u32 wl_word_of(u32 offset, u32 echo, int congested)
{
	return WL_COMPACT | (congested ? WL_COMPACT_CE : 0) | (offset & (WL_COMPACT_OFFSETS - 1)) << 10 | (echo & WL_COMPACT_ECHO);
}

// Writes word `number` of the option that begins at `octets`.
WL_CORE void wl_word_write(u8 *octets, u32 number, u32 word)
{
	wl_put_word(octets + WL_WORDS_LEN(number), word);
}

#endif
