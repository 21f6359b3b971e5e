// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The least retransmission timeout, which some controls shorten (`sets_rto_min`) and `whyloss kernel unload` puts back.
#ifndef WHYLOSS_TIMER_H
#define WHYLOSS_TIMER_H

#include "counters.h"

// The kernel's default in microseconds. A program can set no more.
#define WL_RTO_MIN 200000

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
