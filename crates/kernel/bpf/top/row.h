// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What the observer tells user space of a connection. `src/top/row.rs` has the same members in the same order.
#ifndef WHYLOSS_TOP_ROW_H
#define WHYLOSS_TOP_ROW_H

#include "kernel.h"

// The differentiators that listen.
enum wl_differentiator { WL_LDA_EQ, WL_SPIKE, WL_JTCP, WL_NCPLD, WL_VENO, WL_DIFFERENTIATORS };

// What an episode of losses was: the causes of core/event.h, and that nothing had been lost.
#define WL_SPURIOUS 3
#define WL_CAUSES 4

// What became of the episodes that one cause was found for.
struct wl_tally {
	u32 episodes;
	u32 losses; // segments
	u64 agreement; // sum over the episodes of the share of differentiators that agreed, in 1/65536
	u64 score; // sum over the episodes of the mean score, in 1/65536
};

// What one differentiator said of the episodes.
struct wl_said {
	u32 verdicts[3]; // by cause
	u32 reserved;
	u64 score; // sum over those that it could judge, in 1/65536
};

// The two ends of a connection, seen from this machine. An IPv4 address is written ::ffff:a.b.c.d.
struct wl_ends {
	u8 local[16];
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 netns; // inode of the network namespace; 0 if it is not known
};

struct wl_row {
	struct wl_ends ends;
	u64 cookie;
	u64 cgroup;
	u64 since_ns; // when the observer first saw it, CLOCK_MONOTONIC
	// The kernel's own counts, from the beginning of the connection.
	u64 bytes_acked;
	u64 bytes_received;
	u64 bytes_retransmitted;
	u64 pacing_rate; // octets a second
	u32 segments_out; // with data
	u32 segments_in; // with data
	u32 retransmissions;
	u32 losses; // segments taken for lost
	u32 probed; // segments that a tail loss probe repaired, which are not among the losses; since the observer first saw the connection
	u32 timeouts;
	u32 marked; // segments delivered with congestion experienced
	// How it is now.
	u32 srtt_us;
	u32 min_rtt_us;
	u32 cwnd;
	u32 ssthresh;
	u32 in_flight;
	u32 mss;
	u32 pid;
	char process[TASK_COMM_LEN];
	char control[TCP_CA_NAME_MAX];
	u8 state;
	u8 recovery; // enum tcp_ca_state
	u8 pending_cause; // of the episode under way
	u8 closed;
	u8 whole; // seen from the beginning of the connection
	u32 pending_losses;
	u32 damaged; // received segments that failed their checksum
	struct wl_tally tallies[WL_CAUSES];
	struct wl_said said[WL_DIFFERENTIATORS];
};

#endif
