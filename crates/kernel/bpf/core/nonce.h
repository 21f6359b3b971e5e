// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What a report has to echo: a value of each transmission that only who received it can know. It is computed from a secret of the
// connection, so that nothing has to be kept for first transmissions; retransmissions are numbered and the latest are remembered.
//
// With segmentation offload (GSO) the kernel sends several segments as one packet and copies its options into each: they share the nonce of the first. A
// reported segment is therefore looked for up to `most` segments behind the beginning of its transmission.
#ifndef WHYLOSS_CORE_NONCE_H
#define WHYLOSS_CORE_NONCE_H

#include "core/loop.h"

#define WL_AGAIN 64
// Segments of one GSO packet at most: 64 KiB in segments of an Ethernet frame, and one.
#define WL_TOGETHER 46

struct wl_key {
	u64 k0;
	u64 k1;
};

struct wl_again {
	u32 seq;
	u32 end;
	u32 number; // of the retransmission on its connection, from 1; 0 marks an empty place
	u32 open; // losses repaired by it that nobody has explained (see repair.h)
	u32 at; // when, on the connection's clock
};

// The latest retransmissions.
struct wl_sent {
	struct wl_key key;
	u32 number;
	u32 most; // largest GSO packet so far, in segments
	u32 mss; // data of a segment, lately
	u32 clock; // time in which reports could come, in microseconds
	u32 forgotten; // number of the latest retransmission that gave up its place with losses open; 0 if there is none
	struct wl_again again[WL_AGAIN];
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

WL_CORE u32 wl_nonce(const struct wl_key *key, u32 seq, u32 number)
{
	return wl_siphash(key, (u64)number << 32 | seq);
}

// Segments of `mss` that `len` octets make.
WL_CORE u32 wl_together(u32 len, u32 mss)
{
	return mss ? (len + mss - 1) / mss : 1;
}

// The nonce of the transmission of `len` octets from `seq` on, made of segments of `mss`.
WL_CORE u32 wl_sent_nonce(struct wl_sent *sent, u32 seq, u32 len, u32 mss, int again)
{
	struct wl_again *place;

	sent->mss = mss;
	sent->most = wl_min(wl_max(sent->most, wl_together(len, mss)), WL_TOGETHER);
	if (!again)
		return wl_nonce(&sent->key, seq, 0);
	if (!++sent->number)
		sent->number = 1;
	place = &sent->again[sent->number % WL_AGAIN];
	if (place->open)
		sent->forgotten = place->number;
	*place = (struct wl_again){ seq, seq + len, sent->number, 0, 0 };
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

WL_STEP wl_seek_first(u32 round, struct wl_seek *seek)
{
	u32 start = seek->seq - round * seek->sent->mss, nonce;

	if (round >= seek->sent->most)
		return 1;
	nonce = wl_nonce(&seek->sent->key, start, 0);
	if ((nonce ^ seek->echo) & seek->echoed)
		return 0;
	seek->found = (struct wl_transmission){ nonce, start, 0, 1, 0 };
	return 1;
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
	if (!seek->echoed || seek->found.found)
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

	WL_LOOP(WL_TOGETHER, wl_seek_first, &seek);
	WL_LOOP(WL_AGAIN, wl_seek_again, &seek);
	seek.found.followed = seek.found.found && seek.latest != seek.found.number;
	return seek.found;
}

#endif
