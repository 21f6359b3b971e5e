// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What a report has to echo: a value of each transmission that only who received it can know. It is computed from a secret of the
// connection, so that nothing has to be kept for first transmissions; retransmissions are numbered and the latest are remembered.
//
// With segmentation offload (GSO) the kernel sends several segments as one packet and copies its options into each: they share the nonce of the first,
// and each of them that was damaged is reported with it. The sender remembers where its latest such packets began and ended, so that a nonce is good
// for the segments of its packet and for no other.
#ifndef WHYLOSS_CORE_NONCE_H
#define WHYLOSS_CORE_NONCE_H

#include "core/option.h"

#define WL_AGAIN 256
// Packets of several segments, transmitted for the first time, that are remembered, and the steps to find one of them: a power of two and its
// logarithm.
#define WL_BURSTS 512
#define WL_BURST_STEPS 9
// No window is larger (RFC 7323).
#define WL_LARGEST_WINDOW (1U << 30)

struct wl_key {
	u64 k0;
	u64 k1;
};

// When the losses that a retransmission repairs were noticed, as far as the control says.
enum wl_occasion {
	WL_REPAIRS_NOTHING, // as far as is known: a tail loss probe, or what is sent again after a timeout
	WL_LOST, // at any time
	WL_LOST_FULL, // while the queue was full
	WL_LOST_BEFORE, // before the latest answer to congestion had its effect
};

struct wl_again {
	u32 seq;
	u32 end;
	u32 mss; // data of each of its segments but the last
	u32 number; // of the retransmission on its connection, from 1; 0 marks an empty place
	u16 open; // losses repaired by it that nobody has explained (see repair.h)
	u16 occasion; // enum wl_occasion
	u32 at; // when, on the connection's clock
};

// A packet of several segments.
struct wl_burst {
	u32 seq;
	u32 end;
	u32 mss;
};

// The latest transmissions.
struct wl_sent {
	struct wl_key key;
	u32 number;
	u32 bursts; // packets of several segments so far, first transmissions
	u32 bursts_from; // those before are further behind than anything that is outstanding
	u32 clock; // time in which reports could come, in microseconds
	u32 occasion; // of the losses noticed last
	u32 aged; // retransmissions that were looked at for their age
	u32 forgotten; // number of the latest retransmission that gave up its place with losses open; 0 if there is none
	struct wl_again again[WL_AGAIN];
	struct wl_burst burst[WL_BURSTS]; // in order
};

WL_CORE u64 wl_rotate(u64 x, u32 by)
{
	return x << by | x >> (64 - by);
}

#define WL_SIP_ROUND                    \
	do {                            \
		v0 += v1;               \
		v1 = wl_rotate(v1, 13); \
		v1 ^= v0;               \
		v0 = wl_rotate(v0, 32); \
		v2 += v3;               \
		v3 = wl_rotate(v3, 16); \
		v3 ^= v2;               \
		v0 += v3;               \
		v3 = wl_rotate(v3, 21); \
		v3 ^= v0;               \
		v2 += v1;               \
		v1 = wl_rotate(v1, 17); \
		v1 ^= v2;               \
		v2 = wl_rotate(v2, 32); \
	} while (0)

// SipHash-2-4 (Aumasson & Bernstein 2012) of one word.
WL_CORE u64 wl_siphash(const struct wl_key *key, u64 word)
{
	u64 v0 = key->k0 ^ 0x736f6d6570736575ULL, v1 = key->k1 ^ 0x646f72616e646f6dULL;
	u64 v2 = key->k0 ^ 0x6c7967656e657261ULL, v3 = key->k1 ^ 0x7465646279746573ULL;

	v3 ^= word;
	WL_SIP_ROUND;
	WL_SIP_ROUND;
	v0 ^= word;
	v3 ^= 8ULL << 56; // the length
	WL_SIP_ROUND;
	WL_SIP_ROUND;
	v0 ^= 8ULL << 56;
	v2 ^= 0xFF;
	WL_SIP_ROUND;
	WL_SIP_ROUND;
	WL_SIP_ROUND;
	WL_SIP_ROUND;
	return v0 ^ v1 ^ v2 ^ v3;
}

// As many bits as a word has.
WL_CORE u32 wl_nonce(const struct wl_key *key, u32 seq, u32 number)
{
	return wl_siphash(key, (u64)number << 32 | seq) & WL_NONCE;
}

// Segments of `mss` that `len` octets make.
WL_CORE u32 wl_together(u32 len, u32 mss)
{
	return mss ? (len + mss - 1) / mss : 1;
}

// A look for the packet that carried an octet first, between two numbers of packets.
struct wl_halves {
	const struct wl_sent *sent;
	u32 seq;
	u32 low; // begins no later
	u32 high; // begins later, or is still to come
};

WL_STEP wl_halves_step(u32 round, struct wl_halves *halves)
{
	u32 middle = halves->low + (halves->high - halves->low) / 2;

	if (middle == halves->low)
		return 1;
	if (wl_after(halves->sent->burst[middle % WL_BURSTS].seq, halves->seq))
		halves->high = middle;
	else
		halves->low = middle;
	return 0;
}

// The number of the oldest packet of several segments that is remembered.
WL_CORE u32 wl_bursts_from(const struct wl_sent *sent)
{
	return wl_max(sent->bursts - wl_min(sent->bursts, WL_BURSTS), sent->bursts_from);
}

// A packet of several segments begins at `seq`. Sequence numbers wrap, so that those too far behind it would not be in order.
WL_CORE void wl_bursts_age(struct wl_sent *sent, u32 seq)
{
	struct wl_halves halves = { sent, seq - WL_LARGEST_WINDOW, wl_bursts_from(sent), sent->bursts };

	if (halves.low == halves.high || seq - sent->burst[halves.low % WL_BURSTS].seq <= WL_LARGEST_WINDOW)
		return;
	if (seq - sent->burst[(sent->bursts - 1) % WL_BURSTS].seq > WL_LARGEST_WINDOW) {
		sent->bursts_from = sent->bursts;
		return;
	}
	WL_LOOP(WL_BURST_STEPS, wl_halves_step, &halves);
	sent->bursts_from = halves.low + 1;
}

// First transmissions have come to `seq`. A retransmission further behind than any window gives up its octets, before others have the same numbers.
// One is looked at each time, which is soon enough.
WL_CORE void wl_again_age(struct wl_sent *sent, u32 seq)
{
	struct wl_again *again = &sent->again[sent->aged++ % WL_AGAIN];

	if (seq - again->seq > WL_LARGEST_WINDOW)
		again->end = again->seq;
}

// The nonce of the transmission of `len` octets from `seq` on, made of segments of `mss`.
WL_CORE u32 wl_sent_nonce(struct wl_sent *sent, u32 seq, u32 len, u32 mss, int again)
{
	struct wl_again *place;

	if (!again) {
		wl_again_age(sent, seq);
		if (len > mss) {
			wl_bursts_age(sent, seq);
			sent->burst[sent->bursts++ % WL_BURSTS] = (struct wl_burst){ seq, seq + len, mss };
		}
		return wl_nonce(&sent->key, seq, 0);
	}
	if (!++sent->number)
		sent->number = 1;
	place = &sent->again[sent->number % WL_AGAIN];
	if (place->open)
		sent->forgotten = place->number;
	*place = (struct wl_again){ seq, seq + len, mss, sent->number, 0, WL_REPAIRS_NOTHING, 0 };
	return wl_nonce(&sent->key, seq, sent->number);
}

struct wl_transmission {
	u32 nonce; // the whole one
	u32 start; // first octet of its GSO packet
	u32 number; // of the retransmission; 0 for the first transmission
	u8 found;
	u8 followed; // it was transmitted once more after that
};

// A look for the transmission of one octet.
struct wl_seek {
	const struct wl_sent *sent;
	u32 seq;
	u32 echo;
	u32 echoed;
	u32 latest; // number of the latest retransmission
	u32 start; // where that began
	struct wl_transmission found; // with the nonce that is looked for
};

// Whether a segment of `mss` begins at `seq` in what reaches from `start` to `end`.
WL_CORE int wl_begins(u32 seq, u32 start, u32 end, u32 mss)
{
	return seq - start < end - start && (seq == start || (mss && !((seq - start) % mss)));
}

// The first transmission of the segment at `seq`, if it is remembered and fits the echo.
WL_CORE void wl_seek_first(struct wl_seek *seek)
{
	const struct wl_sent *sent = seek->sent;
	struct wl_halves halves = { sent, seek->seq, wl_bursts_from(sent), sent->bursts };
	const struct wl_burst *burst;
	u32 nonce;

	// It begins its packet.
	nonce = wl_nonce(&sent->key, seek->seq, 0);
	if (!((nonce ^ seek->echo) & seek->echoed)) {
		seek->found = (struct wl_transmission){ nonce, seek->seq, 0, 1, 0 };
		return;
	}
	if (halves.low == halves.high)
		return;
	WL_LOOP(WL_BURST_STEPS, wl_halves_step, &halves);
	burst = &sent->burst[halves.low % WL_BURSTS];
	if (!wl_begins(seek->seq, burst->seq, burst->end, burst->mss))
		return;
	nonce = wl_nonce(&sent->key, burst->seq, 0);
	if (!((nonce ^ seek->echo) & seek->echoed))
		seek->found = (struct wl_transmission){ nonce, burst->seq, 0, 1, 0 };
}

WL_STEP wl_seek_again(u32 round, struct wl_seek *seek)
{
	const struct wl_again *again = &seek->sent->again[round % WL_AGAIN];
	u32 nonce;

	if (!again->number || seek->seq - again->seq >= again->end - again->seq)
		return 0;
	if (!seek->latest || wl_after(again->number, seek->latest)) {
		seek->latest = again->number;
		seek->start = again->seq;
	}
	if (!seek->echoed || seek->found.found || !wl_begins(seek->seq, again->seq, again->end, again->mss))
		return 0;
	nonce = wl_nonce(&seek->sent->key, again->seq, again->number);
	if (!((nonce ^ seek->echo) & seek->echoed))
		seek->found = (struct wl_transmission){ nonce, again->seq, again->number, 1, 0 };
	return 0;
}

// The latest retransmission of the octet at `seq`; not found if none is remembered.
WL_CORE struct wl_transmission wl_sent_latest(const struct wl_sent *sent, u32 seq)
{
	struct wl_seek seek = { sent, seq, 0, 0, 0, 0, { 0 } };

	WL_LOOP(WL_AGAIN, wl_seek_again, &seek);
	if (!seek.latest)
		return (struct wl_transmission){ 0 };
	return (struct wl_transmission){ wl_nonce(&sent->key, seek.start, seek.latest), seek.start, seek.latest, 1, 0 };
}

// Which transmission of the segment at `seq` carried a nonce that is `echo` in the bits of `echoed`.
WL_CORE struct wl_transmission wl_sent_find(const struct wl_sent *sent, u32 seq, u32 echo, u32 echoed)
{
	struct wl_seek seek = { sent, seq, echo, echoed, 0, 0, { 0 } };

	wl_seek_first(&seek);
	WL_LOOP(WL_AGAIN, wl_seek_again, &seek);
	seek.found.followed = seek.found.found && seek.latest != seek.found.number;
	return seek.found;
}

#endif
