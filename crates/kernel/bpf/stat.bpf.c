// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Lists the connections that have one of our controls: what `whyloss kernel stat` reads. It does not run over the map of connections itself,
// which some kernels refuse (EPERM for `iter/bpf_sk_storage_map`).
#include "counters.h"
#include "sockets.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct wl_row {
	u64 cookie;
	u64 age_ns;
	u64 bytes_acked;
	u64 bytes_retrans;
	u32 network_namespace;
	u32 cwnd;
	u32 ssthresh;
	u32 srtt_us;
	u32 mss;
	u16 local_port;
	u16 remote_port;
	u8 local[16];
	u8 remote[16];
	char control[TCP_CA_NAME_MAX];
	u32 count[WL_COUNTER_COUNT];
};

static __always_inline void put_address(u8 *to, __be32 ipv4)
{
	to[10] = 0xff;
	to[11] = 0xff;
	__builtin_memcpy(to + 12, &ipv4, sizeof(ipv4));
}

static __always_inline void tell(struct seq_file *seq, struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, tp, 0, 0);
	struct wl_row row = {};
	char now[TCP_CA_NAME_MAX];

	if (!connection)
		return;
	// The application may have changed the control since.
	wl_control_of(sk, now);
	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		if (now[i] != connection->control[i])
			return;
	__builtin_memcpy(row.control, connection->control, sizeof(row.control));
	for (int i = 0; i < WL_COUNTER_COUNT; i++)
		row.count[i] = connection->count[i];
	row.cookie = bpf_get_socket_cookie(sk);
	row.age_ns = bpf_ktime_get_ns() - connection->since_ns;
	row.bytes_acked = BPF_CORE_READ(tp, bytes_acked);
	row.bytes_retrans = BPF_CORE_READ(tp, bytes_retrans);
	row.network_namespace = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	row.cwnd = BPF_CORE_READ(tp, snd_cwnd);
	row.ssthresh = BPF_CORE_READ(tp, snd_ssthresh);
	row.srtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
	row.mss = BPF_CORE_READ(tp, mss_cache);
	row.local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	row.remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&row.local, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&row.remote, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	} else {
		put_address(row.local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		put_address(row.remote, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	}
	bpf_seq_write(seq, &row, sizeof(row));
}

// Of one network namespace, with those that no process holds any more.
SEC("iter/tcp")
int wl_of_namespace(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = wl_tcp_of_namespace(ctx);

	if (tp)
		tell(ctx->meta->seq, tp);
	return 0;
}

// Of all processes, in whatever network namespace; twice what two descriptors lead to.
SEC("iter/task_file")
int wl_of_files(struct bpf_iter__task_file *ctx)
{
	struct tcp_sock *tp = wl_tcp_of_file(ctx);

	if (tp)
		tell(ctx->meta->seq, tp);
	return 0;
}
