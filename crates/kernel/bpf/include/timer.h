// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The least retransmission timeout, which wl_auto shortens and `whyloss kernel unload` puts back.
#ifndef WHYLOSS_TIMER_H
#define WHYLOSS_TIMER_H

#include "counters.h"

// The kernel's default in microseconds. A program can set no more.
#define WL_RTO_MIN 200000

// The name of wl_auto in the kernel without its prefix, which may be another.
#define WL_AUTO_NAME_LEN 6
static __always_inline int wl_is_auto(const char *end)
{
	return end[0] == '_' && end[1] == 'a' && end[2] == 'u' && end[3] == 't' && end[4] == 'o' && !end[5];
}

// Whether a control sets the least timeout of its connections.
static __always_inline int wl_has_own_timer(const char name[TCP_CA_NAME_MAX])
{
	u32 i;

	if (!bpf_map_lookup_elem(&wl_controls, name))
		return 0;
#pragma unroll
	for (i = 0; i + WL_AUTO_NAME_LEN <= TCP_CA_NAME_MAX; i++)
		if (wl_is_auto(name + i))
			return 1;
	return 0;
}

// What it was in microseconds, before it was set to `set`. The kernel keeps it in ticks of a clock that it does not tell: `before` and `now`.
static __always_inline u32 wl_rto_min_before(u32 set, u32 before, u32 now)
{
	return (u64)set * before / wl_max(now, 1);
}

// What a connection begins with in its network namespace, in microseconds, as far as a program can set it.
static __always_inline u32 wl_usual_rto_min(const struct sock *sk)
{
	struct net *net = BPF_CORE_READ(sk, __sk_common.skc_net.net);

	if (!bpf_core_field_exists(net->ipv4.sysctl_tcp_rto_min_us))
		return WL_RTO_MIN;
	return wl_min((u32)BPF_CORE_READ(net, ipv4.sysctl_tcp_rto_min_us), WL_RTO_MIN);
}

#endif
