// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Watches every TCP connection of the machine, whatever its congestion control, and judges its losses. Changes nothing.
#include "kernel.h"
#include "namespace.h"
#include "sockets.h"

#include "top/watched.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct tcp_congestion_ops___named {
	char name[TCP_CA_NAME_MAX];
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_watched);
} wl_watched SEC(".maps");

// Received segments that failed their checksum, by what their headers say and where they came; a damaged header names a connection that is not there.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct wl_ends);
	__type(value, u64);
} wl_damaged SEC(".maps");

// Connections that have ended since user space last looked.
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} wl_closed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wl_row);
} wl_scratch SEC(".maps");

enum { WL_ALL_DAMAGED, WL_UNREPORTED, WL_TOTALS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WL_TOTALS);
	__type(key, u32);
	__type(value, u64);
} wl_totals SEC(".maps");

static __always_inline void count(u32 which)
{
	u64 *total = bpf_map_lookup_elem(&wl_totals, &which);

	if (total)
		__sync_fetch_and_add(total, 1);
}

static __always_inline u8 ca_state_of(struct tcp_sock *tp)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

static __always_inline struct wl_watched *begin(struct tcp_sock *tp)
{
	struct wl_watched *watched = bpf_sk_storage_get(&wl_watched, tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_options_received *options = &tp->rx_opt;

	if (watched)
		wl_watch_begin(watched, tp, ca_state_of(tp), BPF_CORE_READ_BITFIELD(options, tstamp_ok));
	return watched;
}

static __always_inline struct wl_watched *find(struct tcp_sock *tp)
{
	struct wl_watched *watched = bpf_sk_storage_get(&wl_watched, tp, 0, 0);

	return watched ? watched : begin(tp);
}

// The same for a socket that may have no connection: one that asks in vain for one, or has had one, is none that ends.
static __always_inline struct wl_watched *find_any(struct tcp_sock *tp)
{
	u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;

	return state == TCP_SYN_SENT || state == TCP_SYN_RECV || state == TCP_CLOSE || state == TCP_LISTEN ? NULL : find(tp);
}

static __always_inline void write_v4(u8 *into, __be32 address)
{
	__builtin_memset(into, 0, 10);
	into[10] = into[11] = 0xff;
	__builtin_memcpy(into + 12, &address, 4);
}

static __always_inline void write_ends(struct wl_ends *ends, const struct inet_sock *inet)
{
	const struct sock_common *common = &inet->sk.__sk_common;

	if (common->skc_family == AF_INET) {
		write_v4(ends->local, common->skc_rcv_saddr);
		write_v4(ends->remote, common->skc_daddr);
	} else {
		struct in6_addr local = common->skc_v6_rcv_saddr, remote = common->skc_v6_daddr;

		__builtin_memcpy(ends->local, &local, 16);
		__builtin_memcpy(ends->remote, &remote, 16);
	}
	// A connection that closes has already lost skc_num, unless the application had bound the port.
	ends->local_port = bpf_ntohs(inet->inet_sport);
	ends->remote_port = bpf_ntohs(common->skc_dport);
	ends->netns = common->skc_net.net->ns.inum;
}

// What came damaged between these ends. What has lost its namespace on the way to a busy socket counts for each connection that it can be of.
static __always_inline u64 damaged_of(const struct wl_ends *ends)
{
	struct wl_ends anywhere = *ends;
	u64 *here = bpf_map_lookup_elem(&wl_damaged, ends), *lost;

	anywhere.netns = 0;
	lost = bpf_map_lookup_elem(&wl_damaged, &anywhere);
	return (here ? *here : 0) + (lost ? *lost : 0);
}

static __always_inline void forget_damaged(struct wl_ends *ends)
{
	bpf_map_delete_elem(&wl_damaged, ends);
	ends->netns = 0;
	bpf_map_delete_elem(&wl_damaged, ends);
}

static __always_inline void write_row(struct wl_row *row, struct tcp_sock *tp, const struct wl_watched *watched, int closed)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->icsk_inet.sk;

	__builtin_memset(row, 0, sizeof(*row));
	write_ends(&row->ends, &icsk->icsk_inet);
	row->cookie = bpf_get_socket_cookie(tp);
	row->cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	row->since_ns = watched->since_ns;
	row->bytes_acked = tp->bytes_acked;
	row->bytes_received = tp->bytes_received;
	row->bytes_retransmitted = tp->bytes_retrans;
	row->pacing_rate = sk->sk_pacing_rate;
	row->segments_out = tp->data_segs_out;
	row->segments_in = tp->data_segs_in;
	row->retransmissions = tp->total_retrans;
	row->losses = tp->lost;
	row->probed = watched->probed;
	row->timeouts = bpf_core_field_exists(tp->total_rto) ? tp->total_rto : watched->timeouts;
	row->marked = tp->delivered_ce;
	row->srtt_us = tp->srtt_us >> 3;
	row->min_rtt_us = tp->rtt_min.s[0].v;
	row->cwnd = tp->snd_cwnd;
	row->ssthresh = tp->snd_ssthresh;
	row->in_flight = tp->packets_out;
	row->mss = tp->mss_cache;
	row->pid = watched->pid;
	__builtin_memcpy(row->process, watched->process, sizeof(row->process));
	bpf_probe_read_kernel(row->control, sizeof(row->control),
			      (const char *)icsk->icsk_ca_ops + bpf_core_field_offset(struct tcp_congestion_ops___named, name));
	row->state = sk->__sk_common.skc_state;
	row->recovery = watched->ca_state;
	row->closed = closed;
	row->whole = watched->whole;
	if (watched->in_episode) {
		row->pending_cause = watched->cause;
		row->pending_losses = tp->lost - watched->lost;
	}
	row->damaged = damaged_of(&row->ends);
	__builtin_memcpy(row->tallies, watched->tallies, sizeof(row->tallies));
	__builtin_memcpy(row->said, watched->said, sizeof(row->said));
}

// Every segment received for an established connection.
SEC("tp_btf/tcp_probe")
int BPF_PROG(wl_segment, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct wl_watched *watched;

	// Nothing is outstanding: an endpoint that only receives, or what this acknowledged is told with the next one.
	if (!tp || !tp->packets_out)
		return 0;
	watched = find(tp);
	if (watched && wl_watch_due(watched, tp))
		wl_watch_ack(watched, tp);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(wl_congestion_state, struct sock *sk, u8 ca_state)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct wl_watched *watched = tp ? find_any(tp) : NULL;

	if (watched)
		wl_watch_state(watched, tp, ca_state);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(wl_state, struct sock *sk, int before, int after)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct wl_watched *watched;
	struct wl_ends ends = { 0 };
	struct wl_row *row;

	if (!tp)
		return 0;
	if (after == TCP_ESTABLISHED) {
		watched = begin(tp);
		if (watched)
			watched->whole = 1;
		return 0;
	}
	if (after != TCP_CLOSE)
		return 0;
	watched = bpf_sk_storage_get(&wl_watched, tp, 0, 0);
	if (!watched)
		return 0;
	wl_watch_end(watched, tp->lost, 0);
	row = bpf_ringbuf_reserve(&wl_closed, sizeof(*row), 0);
	if (row) {
		write_row(row, tp, watched, 1);
		bpf_ringbuf_submit(row, BPF_RB_NO_WAKEUP);
	} else {
		count(WL_UNREPORTED);
	}
	// The next connection between them has its own.
	write_ends(&ends, &tp->inet_conn.icsk_inet);
	forget_damaged(&ends);
	bpf_sk_storage_delete(&wl_watched, tp);
	return 0;
}

struct ipv4 {
	u8 version_and_length;
	u8 until_source[11];
	__be32 source;
	__be32 destination;
};

struct ipv6 {
	u8 until_source[8];
	u8 source[16];
	u8 destination[16];
};

// A segment that fails its checksum, where the kernel drops it.
SEC("tp_btf/tcp_bad_csum")
int BPF_PROG(wl_bad_checksum, struct sk_buff *skb)
{
	unsigned char *ip = skb->head + skb->network_header, *tcp = skb->head + skb->transport_header;
	struct wl_ends ends = { 0 };
	__be16 ports[2];
	u64 one = 1, *damaged;
	struct net *net;
	u8 version;

	count(WL_ALL_DAMAGED);
	if (bpf_probe_read_kernel(&version, 1, ip) || bpf_probe_read_kernel(ports, sizeof(ports), tcp))
		return 0;
	if (version >> 4 == 4) {
		struct ipv4 header;

		if (bpf_probe_read_kernel(&header, sizeof(header), ip))
			return 0;
		write_v4(ends.remote, header.source);
		write_v4(ends.local, header.destination);
	} else {
		struct ipv6 header;

		if (bpf_probe_read_kernel(&header, sizeof(header), ip))
			return 0;
		__builtin_memcpy(ends.remote, header.source, 16);
		__builtin_memcpy(ends.local, header.destination, 16);
	}
	ends.remote_port = bpf_ntohs(ports[0]);
	ends.local_port = bpf_ntohs(ports[1]);
	net = wl_net_of(skb);
	ends.netns = net ? BPF_CORE_READ(net, ns.inum) : 0;
	damaged = bpf_map_lookup_elem(&wl_damaged, &ends);
	if (damaged)
		__sync_fetch_and_add(damaged, 1);
	else
		bpf_map_update_elem(&wl_damaged, &ends, &one, BPF_NOEXIST);
	return 0;
}

static __always_inline void tell(struct seq_file *seq, struct tcp_sock *tp, struct wl_watched *watched)
{
	u32 first = 0;
	struct wl_row *row = bpf_map_lookup_elem(&wl_scratch, &first);

	if (!row)
		return;
	write_row(row, tp, watched, 0);
	bpf_seq_write(seq, row, sizeof(*row));
}

// Writes a row for every connection of one network namespace, with those that no process holds any more.
SEC("iter/tcp")
int wl_of_namespace(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = wl_tcp_of_namespace(ctx);
	struct wl_watched *watched = tp ? find_any(tp) : NULL;

	if (watched)
		tell(ctx->meta->seq, tp, watched);
	return 0;
}

// Writes a row for every connection of all processes, in whatever network namespace, and notes whose they are.
SEC("iter/task_file")
int wl_of_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct tcp_sock *tp = wl_tcp_of_file(ctx);
	struct wl_watched *watched = tp ? find_any(tp) : NULL;

	if (!task || !watched)
		return 0;
	watched->pid = task->tgid;
	bpf_probe_read_kernel(watched->process, sizeof(watched->process), task->group_leader->comm);
	tell(ctx->meta->seq, tp, watched);
	return 0;
}
