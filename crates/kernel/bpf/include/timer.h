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

// What the retransmission timeout of wl_auto exceeds SRTT by at least, in microseconds, unless SRTT is more: a lone segment may be acknowledged 40 ms
// late, and a timer of the receiver's may tick every 10 ms.
#define WL_AUTO_MARGIN 60000

// Gives a connection that has yet to measure its round trip, or a listener, the least timeout of wl_auto, unless it has a shorter one. `context` is
// what the program may set options by.
static __always_inline void wl_shorten_rto_min(void *context, const struct inet_connection_sock *icsk)
{
	u32 margin = WL_AUTO_MARGIN, before = icsk->icsk_rto_min;

	if (bpf_setsockopt(context, SOL_TCP, TCP_BPF_RTO_MIN, &margin, sizeof(margin)))
		return;
	margin = wl_rto_min_before(margin, before, icsk->icsk_rto_min);
	if (margin < WL_AUTO_MARGIN)
		bpf_setsockopt(context, SOL_TCP, TCP_BPF_RTO_MIN, &margin, sizeof(margin));
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
