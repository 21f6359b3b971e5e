// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Where packets enter by an interface: a damaged segment is answered at once, by a copy of the latest acknowledgement with nothing more than reports.
// TCP itself reports when it has something to acknowledge; of the end of a flight, or while everything that arrives is damaged, it has not. The
// packet itself becomes the answer: TCP, which would drop it, does not see it. What is not answered goes on to TCP.
//
// The socket is not locked here. Its numbers are those of an acknowledgement that has left, or of one that is about to.

// What becomes of a packet: it goes on to the next program, or no further.
#define WL_GO_ON (-1) // TCX_NEXT
#define WL_DROP 2 // TCX_DROP
#define WL_CHUNK 512 // octets that bpf_csum_diff takes at once
#define WL_ETHERNET 14
#define WL_ETHERNET_ADDRESS 6
#define WL_ANSWER_MOST 40
#define WL_HOPS 64
// Of ip_summed: nobody has looked at the checksum, or somebody has summed the whole packet up.
#define WL_CHECKSUM_NONE 0
#define WL_CHECKSUM_COMPLETE 2
// Of ecn_flags: the flags of each acknowledgement count marks (accurate ECN).
#define WL_ACCURATE_ECN 0x10
// Reports in an answer.
#define WL_ANSWERS 3

enum { WL_FIN_WAIT1 = 4, WL_FIN_WAIT2 = 5, WL_IPV4_TYPE = 0x0800, WL_IPV6_TYPE = 0x86DD, WL_TCP_TYPE = 6 };

// The packet that is looked at: too large for a program's stack.
struct wl_arrival {
	struct wl_seen seen;
	struct wl_ipv4 ip;
	struct wl_ipv6 ip6;
	struct wl_tcp tcp;
	u8 options[WL_ANSWER_MOST]; // of the answer, behind its header
	u32 network; // offsets from the beginning of the packet
	u32 transport;
	struct wl_options told; // by its options
	struct wl_view view;
	u8 chunk[WL_CHUNK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wl_arrival);
} wl_arrivals SEC(".maps");

static __always_inline u16 wl_folded(u64 sum)
{
	sum = (sum & 0xFFFFFFFF) + (sum >> 32);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return sum;
}

// The sum of the pseudo-header. What IPv4 addresses are mapped with adds nothing.
static __always_inline u64 wl_pseudo_sum(const struct wl_ends *ends, u32 len)
{
	return (u64)bpf_csum_diff(NULL, 0, (__be32 *)ends->remote, 32, 0) + bpf_htons(WL_TCP_TYPE) + bpf_htons(len);
}

struct wl_sum {
	struct __sk_buff *skb;
	struct wl_arrival *arrival;
	u64 sum;
	u32 failed;
};

WL_STEP wl_sum_step(u32 round, struct wl_sum *sum)
{
	struct wl_arrival *arrival = sum->arrival;
	u32 at = round * WL_CHUNK, left;

	if (at >= arrival->seen.len)
		return 1;
	left = wl_min(arrival->seen.len - at, WL_CHUNK);
	barrier_var(left);
	if (!left || left > WL_CHUNK)
		return 1;
	if (left < WL_CHUNK)
		__builtin_memset(arrival->chunk, 0, WL_CHUNK);
	if (bpf_skb_load_bytes(sum->skb, arrival->transport + at, arrival->chunk, left)) {
		sum->failed = 1;
		return 1;
	}
	sum->sum += (u64)bpf_csum_diff(NULL, 0, (__be32 *)arrival->chunk, WL_CHUNK, 0);
	return 0;
}

// Whether the checksum of the segment does not hold.
static __always_inline int wl_is_damaged(struct __sk_buff *skb, struct wl_arrival *arrival)
{
	struct wl_sum sum = { skb, arrival, wl_pseudo_sum(&arrival->seen.ends, arrival->seen.len), 0 };

	WL_LOOP(65536 / WL_CHUNK, wl_sum_step, &sum);
	return !sum.failed && wl_folded(sum.sum) != 0xFFFF;
}

// Reads the headers of a packet with TCP in it; returns whether it is one that can be answered.
__noinline int wl_arrival_read(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct wl_arrival *arrival = bpf_map_lookup_elem(&wl_arrivals, &zero);
	struct sk_buff *buffer = bpf_cast_to_kern_ctx(skb);
	u32 summed, network;

	if (!arrival)
		return 0;
	summed = BPF_CORE_READ_BITFIELD(buffer, ip_summed);
	if (summed != WL_CHECKSUM_NONE && summed != WL_CHECKSUM_COMPLETE)
		return 0;
	network = (u64)BPF_CORE_READ(buffer, head) + buffer->network_header - (u64)BPF_CORE_READ(buffer, data);
	if (network && network != WL_ETHERNET)
		return 0;
	arrival->network = network;
	if (skb->protocol == bpf_htons(WL_IPV4_TYPE)) {
		arrival->transport = network + sizeof(arrival->ip);
		// Without options, and no fragment.
		if (bpf_skb_load_bytes(skb, network, &arrival->ip, sizeof(arrival->ip)) || arrival->ip.version_ihl != 0x45 ||
		    arrival->ip.protocol != WL_TCP_TYPE || arrival->ip.frag_off & bpf_htons(0x3FFF) ||
		    wl_folded(bpf_csum_diff(NULL, 0, (__be32 *)&arrival->ip, sizeof(arrival->ip), 0)) != 0xFFFF)
			return 0;
		wl_seen_ipv4(&arrival->seen, &arrival->ip, sizeof(arrival->ip));
	} else if (skb->protocol == bpf_htons(WL_IPV6_TYPE)) {
		arrival->transport = network + sizeof(arrival->ip6);
		if (bpf_skb_load_bytes(skb, network, &arrival->ip6, sizeof(arrival->ip6)) || arrival->ip6.nexthdr != WL_TCP_TYPE)
			return 0;
		wl_seen_ipv6(&arrival->seen, &arrival->ip6, sizeof(arrival->ip6));
	} else {
		return 0;
	}
	if (arrival->transport + arrival->seen.len > skb->len || bpf_skb_load_bytes(skb, arrival->transport, &arrival->tcp, sizeof(arrival->tcp)))
		return 0;
	wl_seen_tcp(&arrival->seen, &arrival->tcp);
	arrival->seen.netns = BPF_CORE_READ(buffer, dev, nd_net.net, net_cookie);
	return 1;
}

// Where the segment ends, as far as its header is intact.
static __always_inline u32 wl_arrival_end(const struct wl_arrival *arrival)
{
	return arrival->seen.seq + arrival->seen.len - (arrival->tcp.doff >> 4) * 4;
}

// Reads the nonce of a damaged segment.
__noinline int wl_arrival_options(struct __sk_buff *skb)
{
	u32 zero = 0, header;
	struct wl_arrival *arrival = bpf_map_lookup_elem(&wl_arrivals, &zero);
	struct wl_scan scan = {};

	if (!arrival)
		return 0;
	header = (arrival->tcp.doff >> 4) * 4;
	if (header <= WL_HEADER || header > WL_HEADER + WL_OPTIONS_MAX)
		return 0;
	header -= WL_HEADER;
	barrier_var(header);
	if (!header || header > WL_OPTIONS_MAX || bpf_skb_load_bytes(skb, arrival->transport + WL_HEADER, scan.octets, header))
		return 0;
	wl_options_read(&arrival->told, &scan, header, 0);
	return arrival->told.has_nonce;
}

// A copy of the latest acknowledgement: what it acknowledged and what window it gave, with the time of now. Returns the length of its options; 0 if
// another processor has taken the place of `ticket` meanwhile.
static __always_inline u32 wl_answer_header(struct wl_arrival *arrival, const struct tcp_sock *tp, const struct wl_flow *flow, u32 ticket)
{
	u32 scale = BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale), stamped = BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok), ack = tp->rcv_wup;
	u32 words = 0, i, at = 0;
	u64 now = bpf_ktime_get_ns();
	struct wl_tcp *tcp = &arrival->tcp;
	u8 option[WL_WORDS_LEN(WL_ANSWERS)] = {};

	__builtin_memset(arrival->options, 0, sizeof(arrival->options));
	if (stamped) {
		int in_us = bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts);

		arrival->options[0] = arrival->options[1] = 1;
		arrival->options[2] = 8;
		arrival->options[3] = 10;
		wl_put_word(arrival->options + 4, (u32)(now / (in_us ? 1000 : 1000000)) + tp->tsoffset);
		wl_put_word(arrival->options + 8, tp->rx_opt.ts_recent);
		at = WL_TIMESTAMPS;
	}
	// This one, and the latest before it that are missing still.
	for (i = 0; i < WL_ANSWERS; i++) {
		const struct wl_slot *slot = &flow->slot[(ticket - i) % WL_SLOTS];

		if ((i && !flow->words) || slot->ticket != ticket - i + 1 || !slot->told || !wl_missing(&arrival->view, slot->seq) ||
		    slot->seq - ack >= WL_COMPACT_OFFSETS)
			break;
		wl_word_write(option, i, wl_word_of(slot->seq - ack, slot->echo, slot->congested));
		words++;
	}
	if (!words)
		return 0;
	wl_put_head(option, WL_WORDS_LEN(words));
	if (stamped)
		__builtin_memcpy(arrival->options + WL_TIMESTAMPS, option, sizeof(option));
	else
		__builtin_memcpy(arrival->options, option, sizeof(option));
	at += WL_WORDS_LEN(words);
	tcp->source = arrival->seen.ends.local_port;
	tcp->dest = arrival->seen.ends.remote_port;
	tcp->seq = bpf_htonl(tp->snd_nxt);
	tcp->ack_seq = bpf_htonl(ack);
	tcp->doff = (WL_HEADER + at) / 4 << 4;
	tcp->flags = WL_ACK;
	tcp->window = bpf_htons(wl_min(tp->rcv_wnd >> scale, 0xFFFF));
	tcp->check = 0;
	tcp->urg_ptr = 0;
	tcp->check = ~wl_folded(wl_pseudo_sum(&arrival->seen.ends, WL_HEADER + at) + bpf_csum_diff(NULL, 0, (__be32 *)tcp, sizeof(*tcp), 0) +
				bpf_csum_diff(NULL, 0, (__be32 *)arrival->options, sizeof(arrival->options), 0));
	return at;
}

// Notes a damaged segment that can be answered, and makes the answer. Returns the length of its options; 0 if there is none.
static __always_inline u32 wl_answer_make(struct wl_arrival *arrival, struct wl_flow *flow, struct bpf_sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 intact, ticket;

	if (!tp || (sk->state != TCP_ESTABLISHED && sk->state != WL_FIN_WAIT1 && sk->state != WL_FIN_WAIT2))
		return 0;
	// Without SACK it would be a duplicate acknowledgement; with a signature it would need one.
	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) || tp->ecn_flags & WL_ACCURATE_ECN ||
	    tp->tcp_header_len != WL_HEADER + (BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok) ? WL_TIMESTAMPS : 0))
		return 0;
	wl_view_of(&arrival->view, tp);
	if (!wl_missing(&arrival->view, arrival->seen.seq) ||
	    (arrival->seen.seq != flow->expected && !wl_boundary(&arrival->view, arrival->seen.seq)) ||
	    arrival->seen.seq - tp->rcv_wup >= WL_COMPACT_OFFSETS)
		return 0;
	// The same limit as for the other reports.
	intact = tp->data_segs_in - flow->damaged - flow->segments;
	if ((s32)intact > 0) {
		flow->segments += intact;
		wl_budget_earn(&flow->budget, intact, WL_PENDING_BUDGET);
	}
	if (flow->tail - flow->head >= WL_SLOTS || !wl_budget_spend(&flow->budget))
		return 0;
	flow->expected = wl_arrival_end(arrival);
	// Another processor may have taken the last place meanwhile.
	if (!wl_queue(flow, &arrival->seen, &arrival->told, 1, &ticket))
		return 0;
	return wl_answer_header(arrival, tp, flow, ticket);
}

// What was read becomes the answer, on its way back.
static __always_inline int wl_answer_send(struct __sk_buff *skb, struct wl_arrival *arrival, u32 len)
{
	u32 size = WL_HEADER + len, i;
	u8 ethernet[2 * WL_ETHERNET_ADDRESS], swapped[2 * WL_ETHERNET_ADDRESS];

	if (bpf_skb_change_tail(skb, arrival->transport + size, 0))
		return WL_DROP;
	if (arrival->network) {
		if (bpf_skb_load_bytes(skb, 0, ethernet, sizeof(ethernet)))
			return WL_DROP;
		__builtin_memcpy(swapped, ethernet + WL_ETHERNET_ADDRESS, WL_ETHERNET_ADDRESS);
		__builtin_memcpy(swapped + WL_ETHERNET_ADDRESS, ethernet, WL_ETHERNET_ADDRESS);
		if (bpf_skb_store_bytes(skb, 0, swapped, sizeof(swapped), 0))
			return WL_DROP;
	}
	if (skb->protocol == bpf_htons(WL_IPV4_TYPE)) {
		struct wl_ipv4 *ip = &arrival->ip;
		__be32 from = ip->saddr;

		ip->saddr = ip->daddr;
		ip->daddr = from;
		ip->tos = 0;
		ip->tot_len = bpf_htons(sizeof(*ip) + size);
		ip->id = 0;
		ip->frag_off = bpf_htons(0x4000);
		ip->ttl = WL_HOPS;
		ip->check = 0;
		ip->check = ~wl_folded(bpf_csum_diff(NULL, 0, (__be32 *)ip, sizeof(*ip), 0));
		i = bpf_skb_store_bytes(skb, arrival->network, ip, sizeof(*ip), BPF_F_INVALIDATE_HASH);
	} else {
		struct wl_ipv6 *ip = &arrival->ip6;

		__builtin_memcpy(ip->saddr, arrival->seen.ends.local, sizeof(ip->saddr));
		__builtin_memcpy(ip->daddr, arrival->seen.ends.remote, sizeof(ip->daddr));
		ip->version_class = 0x60;
		ip->class_flow = 0;
		ip->flow = 0;
		ip->payload_len = bpf_htons(size);
		ip->hop_limit = WL_HOPS;
		i = bpf_skb_store_bytes(skb, arrival->network, ip, sizeof(*ip), BPF_F_INVALIDATE_HASH);
	}
	barrier_var(len);
	if (i || !len || len > WL_ANSWER_MOST || bpf_skb_store_bytes(skb, arrival->transport, &arrival->tcp, sizeof(arrival->tcp), 0) ||
	    bpf_skb_store_bytes(skb, arrival->transport + WL_HEADER, arrival->options, len, 0))
		return WL_DROP;
	wl_report_add(wl_reports_reported, 1);
	wl_report_add(wl_reports_answered, 1);
	return bpf_redirect(skb->ifindex, 0);
}

SEC("tcx/ingress")
int wl_answer(struct __sk_buff *skb)
{
	struct bpf_sock_tuple tuple = {};
	struct wl_arrival *arrival;
	struct wl_flow *flow;
	struct bpf_sock *sk;
	u32 zero = 0, len;

	if (skb->gso_segs > 1 || !wl_arrival_read(skb))
		return WL_GO_ON;
	arrival = bpf_map_lookup_elem(&wl_arrivals, &zero);
	if (!arrival)
		return WL_GO_ON;
	flow = bpf_map_lookup_elem(&wl_flows, &arrival->seen.ends);
	if (!flow)
		return WL_GO_ON;
	if (!wl_is_inside(flow, &arrival->seen))
		return WL_GO_ON;
	if (!wl_is_damaged(skb, arrival)) {
		flow->expected = wl_arrival_end(arrival);
		return WL_GO_ON;
	}
	if (!wl_arrival_options(skb))
		return WL_GO_ON;
	if (skb->protocol == bpf_htons(WL_IPV4_TYPE)) {
		tuple.ipv4.saddr = arrival->ip.saddr;
		tuple.ipv4.daddr = arrival->ip.daddr;
		tuple.ipv4.sport = arrival->tcp.source;
		tuple.ipv4.dport = arrival->tcp.dest;
		sk = bpf_sk_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		__builtin_memcpy(tuple.ipv6.saddr, arrival->ip6.saddr, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, arrival->ip6.daddr, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = arrival->tcp.source;
		tuple.ipv6.dport = arrival->tcp.dest;
		sk = bpf_sk_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return WL_GO_ON;
	len = wl_answer_make(arrival, flow, sk);
	bpf_sk_release(sk);
	if (!len)
		return WL_GO_ON;
	wl_report_add(wl_reports_damaged, 1);
	return wl_answer_send(skb, arrival, len);
}
