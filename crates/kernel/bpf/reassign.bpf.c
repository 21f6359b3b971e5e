// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Gives the connections and listeners that have one of our controls back to the control and the timer that are usual in their network namespace: what
// `whyloss kernel unload` does at the end. It runs over the sockets of one namespace, each of which the kernel locks meanwhile.
#include "counters.h"
#include "sockets.h"
#include "timer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

SEC("iter/tcp")
int wl_reassign(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = wl_tcp_of_namespace(ctx);
	const struct tcp_congestion_ops___named *usual;
	char name[TCP_CA_NAME_MAX] = {};
	struct wl_control *ours;
	u32 rto_min;
	u8 moved = 1;

	if (!tp)
		return 0;
	wl_control_of((struct sock *)tp, name);
	ours = bpf_map_lookup_elem(&wl_controls, name);
	if (!ours)
		return 0;
	usual = (const void *)BPF_CORE_READ((struct sock *)tp, __sk_common.skc_net.net, ipv4.tcp_congestion_control);
	__builtin_memset(name, 0, sizeof(name));
	bpf_core_read(name, sizeof(name), &usual->name);
	// Somebody has made ours the usual one: the one that every kernel has, then.
	if (bpf_map_lookup_elem(&wl_controls, name))
		__builtin_memcpy(name, "reno", sizeof("reno"));
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	if (ours->sets_rto_min) {
		rto_min = wl_usual_rto_min((struct sock *)tp);
		bpf_setsockopt(tp, SOL_TCP, TCP_BPF_RTO_MIN, &rto_min, sizeof(rto_min));
	}
	if (BPF_CORE_READ((struct sock *)tp, __sk_common.skc_state) != TCP_LISTEN)
		bpf_seq_write(ctx->meta->seq, &moved, sizeof(moved));
	return 0;
}
