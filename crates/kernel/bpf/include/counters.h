// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What the controls count, for each control and for each connection. The kernel takes no get_info of a BPF control, so `ss -i` cannot
// show it; `whyloss kernel stat` reads these maps.
//
// Objects that include this share both maps: the loader joins maps of one name.
#ifndef WHYLOSS_COUNTERS_H
#define WHYLOSS_COUNTERS_H

#include "kernel.h"

#include "core/trust.h"

// A counter is a line: its name and what it counts. build.rs reads the lines too.
#define WL_COUNTERS(X)                                                                        \
	X(connections, "connections that took the control")                                   \
	X(losses, "recoveries that began with a loss")                                        \
	X(kept, "of these, taken for corruption: the window was kept or came back")           \
	X(cut_later, "of these, reduced all the same for what followed in the recovery")      \
	X(overruled, "verdicts of corruption that did not count: too much was lost")           \
	X(timeouts, "retransmission timeouts")                                                \
	X(timeouts_kept, "of these, taken for corruption: the window was kept")               \
	X(undone, "reductions that the kernel found to be wrong and took back")               \
	X(damaged, "damaged segments received")                                               \
	X(reported, "damaged segments reported to the sender")                                \
	X(heard, "reports that came from the receiver")                                       \
	X(refused, "reports from the receiver that were not believed")

#define WL_COUNTER_ENUM(name, what) wl_counts_##name,
enum wl_counter { WL_COUNTERS(WL_COUNTER_ENUM) WL_COUNTER_COUNT };

// What is known of one connection; it lives and dies with the socket.
struct wl_connection {
	u64 since_ns;
	char control[TCP_CA_NAME_MAX];
	u32 count[WL_COUNTER_COUNT];
	struct wl_trust trust;
	u8 takes_reports; // its control takes the receiver's reports
};

struct wl_control {
	u64 count[WL_COUNTER_COUNT];
	u64 sets_rto_min; // the last field, not 0 if the control sets the least timeout of its connections
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_connection);
} wl_connections SEC(".maps");

// By the control's name in the kernel; the loader makes the rows, so that a name is there if and only if the control is ours.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, char[TCP_CA_NAME_MAX]);
	__type(value, struct wl_control);
} wl_controls SEC(".maps");

struct tcp_congestion_ops___named {
	char name[TCP_CA_NAME_MAX];
} __attribute__((preserve_access_index));

// An interrupt or another task may count on the same processor meanwhile.
static __always_inline void wl_count_control(const char *control, enum wl_counter which)
{
	struct wl_control *row = bpf_map_lookup_elem(&wl_controls, control);

	if (row)
		__sync_fetch_and_add(&row->count[which], 1);
}

// The name of the control that a connection has now.
static __always_inline void wl_control_of(const struct sock *sk, char name[TCP_CA_NAME_MAX])
{
	const struct tcp_congestion_ops___named *ops = (const void *)BPF_CORE_READ(inet_csk(sk), icsk_ca_ops);

	bpf_core_read(name, TCP_CA_NAME_MAX, &ops->name);
}

// Begins to count for a connection: what the `init` of every control calls. A connection that changes its control starts anew. Gives NULL
// where there is no memory.
static __always_inline struct wl_connection *wl_begin(struct sock *sk)
{
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!connection)
		return connection;
	__builtin_memset(connection, 0, sizeof(*connection));
	connection->since_ns = bpf_ktime_get_ns();
	wl_control_of(sk, connection->control);
	wl_count_control(connection->control, wl_counts_connections);
	connection->count[wl_counts_connections] = 1;
	return connection;
}

// Whether a verdict of corruption counts for a connection that has begun.
static __always_inline int wl_is_trusted(struct sock *sk)
{
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);

	return !connection || wl_trust_look(&connection->trust, tp->delivered, tp->total_retrans);
}

// Counts one event of a connection that has begun.
static __always_inline void wl_count(struct sock *sk, enum wl_counter which)
{
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);

	if (!connection)
		return;
	connection->count[which]++;
	wl_count_control(connection->control, which);
}

#endif
