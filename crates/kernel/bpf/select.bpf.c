// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Chooses the congestion control of new connections by rules. One copy for each control group that has rules.
#include "counters.h"
#include "timer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

// A rule's port is the one that the service has: the remote one of a connection that was opened actively, the local one of
// one that was opened passively; 0 is any. The address is the remote one; IPv4 stands in IPv6's ::ffff:0:0/96, so that a socket of either family meets the same rule.
struct wl_match {
	u32 bits;
	__be16 port;
	u8 remote[16];
} __attribute__((packed));

struct wl_rule {
	char control[TCP_CA_NAME_MAX];
	u64 connections;
};

// Of several rules the one with the longest match decides.
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct wl_match);
	__type(value, struct wl_rule);
} rules SEC(".maps");

// What a rule has chosen for a socket. Programs of a control group run before those of the groups around it: the inner rule holds. A socket may
// connect again (AF_UNSPEC), to another destination.
struct wl_choice {
	u32 connection; // its first sequence number, or what stands for that when it begins
	char control[TCP_CA_NAME_MAX]; // the chosen one; empty while an accepted connection is not established
	char before[TCP_CA_NAME_MAX]; // that of the socket before any rule
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_choice);
} wl_chosen SEC(".maps");

static __always_inline struct wl_rule *find(struct wl_match *match)
{
	struct wl_rule *rule;

	match->bits = 8 * (sizeof(match->port) + sizeof(match->remote));
	rule = bpf_map_lookup_elem(&rules, match);
	if (rule)
		return rule;
	match->port = 0;
	return bpf_map_lookup_elem(&rules, match);
}

static __always_inline int equal(const char *a, const char *b)
{
	u32 i;

	for (i = 0; i < TCP_CA_NAME_MAX; i++) {
		if (a[i] != b[i])
			return 0;
		if (!a[i])
			break;
	}
	return 1;
}

// A connection is about to be accepted: its control is chosen when it is established, but at the handshake's round trip the kernel takes the least
// timeout for RTTVAR. Without this program (CONFIG_BPF_LSM) RTTVAR comes down by a quarter a round trip.
SEC("lsm_cgroup/inet_csk_clone")
int BPF_PROG(wl_accept, struct sock *sk, const struct request_sock *request)
{
	const struct sock_common *ends = &request->__req_common;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__be32 words[4] = { 0, 0, bpf_htonl(0xffff), 0 };
	struct wl_match match = {};
	struct wl_control *control;
	struct wl_rule *rule;

	// The application has asked for the listener's control, or the rule of an inner group holds.
	if (!tp || BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt) || bpf_sk_storage_get(&wl_chosen, sk, 0, 0))
		return 1;
	match.port = bpf_htons(ends->skc_num);
	if (ends->skc_family == AF_INET6) {
		struct in6_addr remote = ends->skc_v6_daddr;

		__builtin_memcpy(match.remote, &remote, sizeof(match.remote));
	} else {
		words[3] = ends->skc_daddr;
		__builtin_memcpy(match.remote, words, sizeof(match.remote));
	}
	rule = find(&match);
	if (!rule || !bpf_sk_storage_get(&wl_chosen, sk, 0, BPF_SK_STORAGE_GET_F_CREATE))
		return 1;
	control = bpf_map_lookup_elem(&wl_controls, rule->control);
	if (control && control->sets_rto_min)
		wl_shorten_rto_min(sk, &tp->inet_conn);
	return 1;
}

SEC("sockops")
int wl_select(struct bpf_sock_ops *ctx)
{
	struct wl_match match = {};
	struct wl_rule *rule;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	__be32 words[4] = {0, 0, bpf_htonl(0xffff), 0};
	char control[TCP_CA_NAME_MAX], now[TCP_CA_NAME_MAX] = {};
	struct wl_choice *choice;
	u32 connection;
	int chosen;

	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		match.port = bpf_htons(bpf_ntohl(ctx->remote_port));
	else if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		match.port = bpf_htons(ctx->local_port);
	else
		return 1;
	if (ctx->family == AF_INET6) {
		words[0] = ctx->remote_ip6[0];
		words[1] = ctx->remote_ip6[1];
		words[2] = ctx->remote_ip6[2];
		words[3] = ctx->remote_ip6[3];
		// Else clang makes one load of both branches, from a computed place in the context, which the verifier forbids.
		asm volatile("" ::: "memory");
	} else {
		words[3] = ctx->remote_ip4;
	}
	__builtin_memcpy(match.remote, words, sizeof(match.remote));

	rule = find(&match);
	sk = ctx->sk;
	tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	if (!tp)
		return 1;
	connection = tp->write_seq;
	choice = bpf_sk_storage_get(&wl_chosen, sk, 0, 0);
	chosen = choice && choice->control[0];
	if (chosen && (choice->connection == connection || ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB))
		return 1;
	if ((!rule && !chosen) || bpf_getsockopt(ctx, SOL_TCP, TCP_CONGESTION, now, sizeof(now)))
		return 1;
	// Who asked for a control by setsockopt gets it. What a rule chose before looks as if it had been asked for.
	if (chosen ? !equal(now, choice->control) : BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_setsockopt))
		return 1;
	__builtin_memcpy(control, rule ? rule->control : choice->before, sizeof(control));
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, control, sizeof(control)))
		return 1;
	if (!choice)
		choice = bpf_sk_storage_get(&wl_chosen, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (choice) {
		if (!chosen)
			__builtin_memcpy(choice->before, now, sizeof(now));
		__builtin_memcpy(choice->control, control, sizeof(control));
	}
	if (!rule)
		return 1;
	if (choice)
		choice->connection = connection;
	__sync_fetch_and_add(&rule->connections, 1);
	return 1;
}
