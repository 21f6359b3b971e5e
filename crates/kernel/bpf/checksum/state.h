// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What checksum-based loss differentiation keeps, and where: with the socket, so that it goes with it, or in one bounded map.
#ifndef WHYLOSS_CHECKSUM_STATE_H
#define WHYLOSS_CHECKSUM_STATE_H

#include "core/damage.h"
#include "core/accepted.h"
#include "core/kept.h"
#include "core/room.h"
#include "core/tickets.h"
#include "core/vain.h"

#define WL_FLOWS 65536
// Damaged segments of a connection between two of its acknowledgements.
#define WL_SLOTS 64

// Both ends of a connection as a packet of the peer names them; IPv4 addresses are mapped into IPv6.
struct wl_ends {
	__be32 remote[4];
	__be32 local[4];
	__be16 remote_port;
	__be16 local_port;
};

// A damaged segment on its way from the interrupt that saw it to the socket that reports it.
struct wl_slot {
	u32 ticket; // one more than the place in the order; written last
	u32 seq;
	u32 echo;
	u32 at;
	u8 echoed;
	u8 congested;
	u8 told; // reports of it that have been sent
};

// A connection that agreed on reports. The tracepoint knows only the packet: it finds the connection here.
struct wl_flow {
	u64 netns;
	u64 owner; // cookie of the socket
	u32 next; // RCV.NXT and the window behind it when the last acknowledgement left
	u32 window;
	u32 expected; // end of what came last, as the interface saw it
	u32 damaged; // segments that came damaged to TCP, forged ones included
	u32 segments; // data segments that had come intact when the latest damaged one was answered
	struct wl_budget budget; // of answers
	u32 words; // the peer can read them
	u32 tail; // tickets given
	u32 head; // tickets taken
	struct wl_slot slot[WL_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WL_FLOWS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct wl_ends);
	__type(value, struct wl_flow);
} wl_flows SEC(".maps");

// Where a flow is put together: too large for a program's stack. Only the members before the slots are ever written.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wl_flow);
} wl_fresh SEC(".maps");

// A socket that agreed on reports, as the receiver of data.
struct wl_agreed {
	struct wl_ends ends;
	u32 words; // the peer can read them
	u32 segments; // data segments that had arrived intact when the last acknowledgement with damage before it left
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_agreed);
} wl_agreements SEC(".maps");

// What it has to report, once a segment came damaged.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_receiver);
} wl_receivers SEC(".maps");

// The same socket, as the sender of data, once it has one of our controls.
struct wl_sender {
	struct wl_sent sent;
	struct wl_accepted accepted;
	struct wl_vain vain;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_sender);
} wl_senders SEC(".maps");

// The other end's address, as a network namespace has it.
struct wl_destination {
	u64 netns; // cookie
	__be32 remote[4];
};

// What is known of a destination on whose path segments with our option vanished. On a path that loses packets they do so by chance, too: it
// takes some connections in a row. Then new ones do without the option for a while. The destination that was not looked for the longest gives
// up its place.
#define WL_AVOIDED 4096
#define WL_AVOID_AFTER 3
#define WL_AVOID_NS (600ULL * 1000000000)

// What vanished.
enum wl_vanished { WL_SYNS, WL_DATA, WL_VANISHED_KINDS };

struct wl_avoidance {
	u64 until; // nanoseconds of CLOCK_MONOTONIC; 0 if it is not avoided
	u8 vanished[WL_VANISHED_KINDS]; // connections in a row for which it did
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WL_AVOIDED);
	__type(key, struct wl_destination);
	__type(value, struct wl_avoidance);
} wl_avoided SEC(".maps");

static __always_inline void wl_did_vanish(const struct wl_destination *destination, enum wl_vanished kind)
{
	struct wl_avoidance *avoidance = bpf_map_lookup_elem(&wl_avoided, destination), fresh = {};

	if (!avoidance) {
		bpf_map_update_elem(&wl_avoided, destination, &fresh, BPF_NOEXIST);
		avoidance = bpf_map_lookup_elem(&wl_avoided, destination);
		if (!avoidance)
			return;
	}
	if (avoidance->vanished[kind] < 255)
		avoidance->vanished[kind]++;
	if (avoidance->vanished[kind] >= WL_AVOID_AFTER)
		avoidance->until = bpf_ktime_get_ns() + WL_AVOID_NS;
}

static __always_inline void wl_did_arrive(const struct wl_destination *destination, enum wl_vanished kind)
{
	struct wl_avoidance *avoidance = bpf_map_lookup_elem(&wl_avoided, destination);

	if (avoidance)
		avoidance->vanished[kind] = 0;
}

static __always_inline int wl_is_avoided(const struct wl_destination *destination)
{
	struct wl_avoidance *avoidance = bpf_map_lookup_elem(&wl_avoided, destination);

	return avoidance && bpf_ktime_get_ns() < avoidance->until;
}

struct wl_settings {
	u32 plain; // the form of the paper: no nonces, and none asked for
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wl_settings);
} wl_settings SEC(".maps");

// What is counted of reports on the whole machine, whatever control a connection has. A line: its name and what it counts.
#define WL_REPORT_COUNTERS(X)                                                                     \
	X(agreed, "connections that agreed on reports")                                           \
	X(ended, "of these, ended")                                                               \
	X(no_flow, "connections not taken because the map was full or their ends were in use")    \
	X(damaged, "damaged segments of a connection that agreed")                                \
	X(foreign, "damaged segments of no such connection")                                      \
	X(outside, "damaged segments outside the window, of another namespace, or without data")  \
	X(overrun, "damaged segments for which the queue had no room")                            \
	X(queued, "damaged segments that wait to be reported")                                    \
	X(reported, "damaged segments reported")                                                  \
	X(answered, "of these, at once, by a copy of the latest acknowledgement")                 \
	X(repeated, "reports sent again")                                                         \
	X(compact, "reports sent in the compact form")                                            \
	X(listed, "of these, together with others")                                               \
	X(no_room, "acknowledgements that `sockops` found no room in for a report")               \
	X(made_room, "acknowledgements in which SACK blocks gave way to a report")               \
	X(late, "damaged segments first reported more than a round trip after they came")         \
	X(late_us, "microseconds between damage and its first report, in all")                    \
	X(nonces, "segments sent with a nonce")                                                   \
	X(vanished, "connections that gave up nonces: segments with them vanish on the way")       \
	X(avoided, "SYNs and answers without the option, because it had vanished on that way")    \
	X(believed, "reports believed")                                                           \
	X(known, "reports that had come before")                                                  \
	X(stale, "reports of data that was not outstanding")                                      \
	X(marked, "reports of segments that were marked CE")                                      \
	X(unproven, "reports without an echo, or of an unconfirmed position")                     \
	X(wrong, "reports with an echo of no transmission")                                       \
	X(limited, "reports beyond the rate limit")                                               \
	X(distrusted, "reports of receivers that are not believed any more")

#define WL_REPORT_ENUM(name, what) wl_reports_##name,
enum wl_report_counter { WL_REPORT_COUNTERS(WL_REPORT_ENUM) WL_REPORT_COUNTER_COUNT };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WL_REPORT_COUNTER_COUNT);
	__type(key, u32);
	__type(value, u64);
} wl_reports SEC(".maps");

// An interrupt or another task may count on the same processor meanwhile.
static __always_inline void wl_report_add(u32 which, u64 by)
{
	u64 *value = bpf_map_lookup_elem(&wl_reports, &which);

	if (value)
		__sync_fetch_and_add(value, by);
}

// Microseconds, for events that are not a connection's own.
static __always_inline u32 wl_clock(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static __always_inline int wl_is_plain(void)
{
	u32 zero = 0;
	struct wl_settings *settings = bpf_map_lookup_elem(&wl_settings, &zero);

	return settings && settings->plain;
}

// The connection has both, the agreement and a control that takes reports: from now on it sends nonces and takes them. Which of the two comes
// first depends on who chooses the control: a rule does so before the connection is established, an application before or later.
static __always_inline void wl_take_reports(void *sk)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!sender)
		return;
	sender->sent.key.k0 = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	sender->sent.key.k1 = (u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	sender->accepted.nonces = !wl_is_plain();
	wl_budget_init(&sender->accepted.budget);
}

#endif
