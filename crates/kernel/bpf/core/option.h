// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The TCP options of checksum-based loss differentiation: kind 253 with our experiment identifier (RFC 6994), the layouts of
// docs/wire-formats.md. The full report has 15 octets beside 10 of timestamps and one SACK block; beside two there are 8, which is what the
// compact one takes.
#ifndef WHYLOSS_CORE_OPTION_H
#define WHYLOSS_CORE_OPTION_H

#include "core/loop.h"

#define WL_OPTION_KIND 253
#define WL_OPTION_ID_HIGH 0x57
#define WL_OPTION_ID_LOW 0x4C

#define WL_PERMITTED_LEN 4
#define WL_NONCE_LEN 9
#define WL_COUNT_LEN 7
#define WL_POSITION_LEN 11
#define WL_ECHO_LEN 15
#define WL_COMPACT_LEN 8

#define WL_SUB_REPORT 4
#define WL_SUB_NONCE 6
// The first bit of the compact report's word; the others are no sub-type.
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
	u8 has_nonce;
	u8 has_report;
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

WL_CORE void wl_put_head(u8 *octets, u8 len)
{
	octets[0] = WL_OPTION_KIND;
	octets[1] = len;
	octets[2] = WL_OPTION_ID_HIGH;
	octets[3] = WL_OPTION_ID_LOW;
}

// Reads a report that stands `at` octets from the beginning, `len` octets long; `ack` is the acknowledgement number of its header. Returns
// whether it is one that names a position.
WL_CORE int wl_report_read(struct wl_report *report, const u8 *octets, u32 at, u32 len, u32 ack)
{
	u32 word = wl_word(octets, at + 4), flags;

	*report = (struct wl_report){ 0 };
	if (len == WL_COMPACT_LEN) {
		if (!(word & WL_COMPACT))
			return 0;
		report->seq = ack + (word >> 10 & (WL_COMPACT_OFFSETS - 1));
		report->echo = word & WL_COMPACT_ECHO;
		report->echoed = WL_COMPACT_ECHO;
		report->congested = !!(word & WL_COMPACT_CE);
		report->confirmed = 1;
		return 1;
	}
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
	u32 nonce_at; // of its value; 0 if there is none
	u32 permitted;
	u8 octets[WL_OCTETS];
};

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
	if (kind != WL_OPTION_KIND || size < WL_PERMITTED_LEN || wl_octet(scan->octets, at + 2) != WL_OPTION_ID_HIGH ||
	    wl_octet(scan->octets, at + 3) != WL_OPTION_ID_LOW)
		return 0;
	sub = wl_octet(scan->octets, at + 4);
	if (size == WL_PERMITTED_LEN) {
		scan->permitted = 1;
	} else if (size == WL_NONCE_LEN && sub == WL_SUB_NONCE) {
		scan->nonce_at = at + 5;
	} else if (size > WL_PERMITTED_LEN && (sub == WL_SUB_REPORT || (size == WL_COMPACT_LEN && sub >= 0x80))) {
		scan->report_at = at;
		scan->report_len = size;
	}
	return 0;
}

// Reads what of ours stands in the first `len` octets of `scan`; `ack` is the acknowledgement number of their header. Of an option that comes
// twice the last counts, and one whose length makes no sense ends the reading.
WL_CORE void wl_options_read(struct wl_options *options, struct wl_scan *scan, u32 len, u32 ack)
{
	*options = (struct wl_options){ 0 };
	scan->len = wl_min(len, WL_OPTIONS_MAX);
	scan->at = scan->report_at = scan->report_len = scan->nonce_at = scan->permitted = 0;
	WL_LOOP(WL_OPTIONS_MAX, wl_scan_step, scan);
	options->permitted = !!scan->permitted;
	if (scan->nonce_at) {
		options->has_nonce = 1;
		options->nonce = wl_word(scan->octets, scan->nonce_at);
	}
	if (scan->report_len)
		options->has_report = wl_report_read(&options->report, scan->octets, scan->report_at, scan->report_len, ack);
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

// Whether the compact report can name the position.
WL_CORE int wl_compact_fits(const struct wl_report *report, u32 ack)
{
	return report->confirmed && report->seq - ack < WL_COMPACT_OFFSETS;
}

// Whether it says enough: without the nonce its ten bits would be a guess.
WL_CORE int wl_compact_serves(const struct wl_report *report, u32 ack)
{
	return report->echoed && wl_compact_fits(report, ack);
}

WL_CORE void wl_compact_write(u8 *octets, const struct wl_report *report, u32 ack)
{
	wl_put_head(octets, WL_COMPACT_LEN);
	wl_put_word(octets + 4, WL_COMPACT | (report->congested ? WL_COMPACT_CE : 0) | (report->seq - ack) << 10 |
					(report->echo & WL_COMPACT_ECHO));
}

#endif
