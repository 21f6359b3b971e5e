// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Where the kernel drops a segment for its checksum. It knows the socket there, but the tracepoint does not tell it; and nothing in the segment
// can be trusted but, with IPv4, the header that has its own checksum. What is read here is used only if it fits a connection that agreed.

struct wl_ipv4 {
	u8 version_ihl;
	u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	u8 ttl;
	u8 protocol;
	__be16 check;
	__be32 saddr;
	__be32 daddr;
};

struct wl_ipv6 {
	u8 version_class;
	u8 class_flow;
	__be16 flow;
	__be16 payload_len;
	u8 nexthdr;
	u8 hop_limit;
	__be32 saddr[4];
	__be32 daddr[4];
};

struct wl_tcp {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	u8 doff;
	u8 flags;
	__be16 window;
	__be16 check;
	__be16 urg_ptr;
};

static __always_inline void wl_mapped(__be32 *to, __be32 address)
{
	to[0] = 0;
	to[1] = 0;
	to[2] = bpf_htonl(0xFFFF);
	to[3] = address;
}

// What a damaged segment says of itself, and where it came.
struct wl_seen {
	struct wl_ends ends;
	u64 netns; // cookie; 0 if it is not known
	u32 seq;
	u32 len; // of header and data
	u32 congested;
};

static __always_inline void wl_seen_ipv4(struct wl_seen *seen, const struct wl_ipv4 *ip, u32 header)
{
	wl_mapped(seen->ends.remote, ip->saddr);
	wl_mapped(seen->ends.local, ip->daddr);
	seen->congested = (ip->tos & 3) == 3;
	seen->len = bpf_ntohs(ip->tot_len) - header;
}

static __always_inline void wl_seen_ipv6(struct wl_seen *seen, const struct wl_ipv6 *ip, u32 header)
{
	__builtin_memcpy(seen->ends.remote, ip->saddr, sizeof(seen->ends.remote));
	__builtin_memcpy(seen->ends.local, ip->daddr, sizeof(seen->ends.local));
	seen->congested = (ip->class_flow >> 4 & 3) == 3;
	seen->len = bpf_ntohs(ip->payload_len) + sizeof(*ip) - header;
}

static __always_inline void wl_seen_tcp(struct wl_seen *seen, const struct wl_tcp *tcp)
{
	seen->ends.remote_port = tcp->source;
	seen->ends.local_port = tcp->dest;
	seen->seq = bpf_ntohl(tcp->seq);
}

// Whether it can be one of this connection, with data: what is outside its window, or has come in another namespace, is not.
static __always_inline int wl_is_inside(const struct wl_flow *flow, const struct wl_seen *seen)
{
	return (!seen->netns || seen->netns == flow->netns) && seen->len > WL_LONGEST_HEADER && seen->len <= 65535 &&
	       seen->seq - flow->next < flow->window;
}

// Queues a damaged segment for the socket, which has been reported `told` times. Two processors can be here for one connection: a place is taken
// by its ticket; the socket sees by the ticket when it is filled. Returns whether
// there was a place.
static __always_inline int wl_queue(struct wl_flow *flow, const struct wl_seen *seen, const struct wl_options *options, u8 told, u32 *ticket)
{
	struct wl_slot *slot;

	if (!wl_ticket_take(&flow->tail, flow->head, WL_SLOTS, ticket)) {
		wl_report_add(wl_reports_overrun, 1);
		return 0;
	}
	slot = &flow->slot[*ticket % WL_SLOTS];
	slot->seq = seen->seq;
	slot->echo = options->nonce;
	slot->echoed = options->has_nonce;
	slot->congested = seen->congested;
	slot->told = told;
	slot->at = wl_clock();
	__sync_lock_test_and_set(&slot->ticket, *ticket + 1);
	wl_report_add(wl_reports_queued, 1);
	return 1;
}

SEC("tp_btf/tcp_bad_csum")
int BPF_PROG(wl_bad_csum, struct sk_buff *skb)
{
	unsigned char *head = skb->head;
	u32 network = skb->network_header, transport = skb->transport_header;
	struct wl_seen seen = {};
	struct wl_ipv4 ip;
	struct wl_ipv6 ip6;
	struct wl_tcp tcp;
	struct wl_options options;
	struct wl_flow *flow;
	struct wl_scan scan = {};
	u32 header, ticket;
	struct net *net;

	if (bpf_probe_read_kernel(&ip, sizeof(ip), head + network) || bpf_probe_read_kernel(&tcp, sizeof(tcp), head + transport))
		return 0;
	if (ip.version_ihl >> 4 == 4) {
		wl_seen_ipv4(&seen, &ip, transport - network);
	} else {
		if (bpf_probe_read_kernel(&ip6, sizeof(ip6), head + network))
			return 0;
		wl_seen_ipv6(&seen, &ip6, transport - network);
	}
	wl_seen_tcp(&seen, &tcp);
	flow = bpf_map_lookup_elem(&wl_flows, &seen.ends);
	if (!flow) {
		wl_report_add(wl_reports_foreign, 1);
		return 0;
	}
	wl_report_add(wl_reports_damaged, 1);
	__sync_fetch_and_add(&flow->damaged, 1);
	net = wl_net_of(skb);
	seen.netns = net ? BPF_CORE_READ(net, net_cookie) : 0;
	if (!wl_is_inside(flow, &seen)) {
		wl_report_add(wl_reports_outside, 1);
		return 0;
	}
	header = (tcp.doff >> 4) * 4;
	if (header > 20 && header <= 60)
		bpf_probe_read_kernel(scan.octets, (header - 20) & 63, head + transport + 20);
	else
		header = 20;
	wl_options_read(&options, &scan, header - 20, 0);
	wl_queue(flow, &seen, &options, 0, &ticket);
	return 0;
}
