// SPDX-License-Identifier: (MIT OR Apache-2.0)
// In which network namespace a segment came.
#ifndef WHYLOSS_NAMESPACE_H
#define WHYLOSS_NAMESPACE_H

#include "kernel.h"

// The namespace that received the segment, by its device or its route; NULL if it has lost both on its way to a busy socket.
static __always_inline struct net *wl_net_of(struct sk_buff *skb)
{
	struct net_device *dev = BPF_CORE_READ(skb, dev);
	struct dst_entry *dst;

	if (!dev) {
		dst = (struct dst_entry *)(BPF_CORE_READ(skb, _skb_refdst) & ~1UL);
		if (!dst)
			return NULL;
		dev = BPF_CORE_READ(dst, dev);
	}
	return dev ? BPF_CORE_READ(dev, nd_net.net) : NULL;
}

#endif
