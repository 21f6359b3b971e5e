// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Where acknowledgements leave an interface: one that has no room for a report gets it in place of SACK blocks. Only those of this host's own
// sockets are looked at, which leave with the socket locked; what is forwarded, and what a tunnel has wrapped up, is left alone. Where interfaces
// stand upon each other the second finds a report behind the SACK blocks, and does nothing.

#define WL_NEXT (-1) // TCX_NEXT: on to the next program
#define WL_FLAGS 0x3F // without those of ECN
#define WL_CHECK_AT 16
#define WL_HEADER 20

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

// The report that waits, in the form that takes least; returns its length.
static __always_inline u32 wl_write_waiting(u8 *option, const struct wl_receiver *receiver, const struct wl_view *view)
{
	struct wl_report report;

	wl_receiver_report(receiver, view, receiver->chosen, &report);
	if (!wl_compact_serves(&report, view->next))
		return wl_report_write(option, &report);
	wl_compact_write(option, &report, view->next);
	return WL_COMPACT_LEN;
}

SEC("tcx/egress")
int wl_make_room(struct __sk_buff *skb)
{
	u8 before[WL_OPTIONS_MAX] = {}, after[WL_OCTETS] = {}, option[WL_ROOM_MOST] = {};
	struct bpf_sock *sk = skb->sk;
	struct wl_receiver *receiver;
	struct wl_agreed *agreed;
	struct sk_buff *buffer;
	struct wl_flow *flow;
	struct tcp_sock *tp;
	struct wl_view view;
	struct wl_tcp tcp;
	u32 at, len, size;
	s64 change;

	if (!sk || skb->gso_segs > 1)
		return WL_NEXT;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return WL_NEXT;
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!agreed || !tp)
		return WL_NEXT;
	buffer = bpf_cast_to_kern_ctx(skb);
	at = (u64)BPF_CORE_READ(buffer, head) + buffer->transport_header - (u64)BPF_CORE_READ(buffer, data);
	if (at > 0xFFFF || bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)))
		return WL_NEXT;
	len = (tcp.doff >> 4) * 4;
	if (skb->len != at + len || (tcp.flags & WL_FLAGS) != WL_ACK || tcp.source != bpf_htons(sk->src_port) || tcp.dest != sk->dst_port)
		return WL_NEXT;
	len -= WL_HEADER;
	// The verifier is to see the bound in the variable that is used.
	barrier_var(len);
	if (!len || len > WL_OPTIONS_MAX)
		return WL_NEXT;
	// Where nothing is left the kernel asks `sockops` for nothing.
	receiver = bpf_sk_storage_get(&wl_receivers, sk, 0, 0);
	if (len < WL_OPTIONS_MAX && !(receiver && receiver->squeezed))
		return WL_NEXT;
	flow = bpf_map_lookup_elem(&wl_flows, &agreed->ends);
	// Twice from the packet: verifiers up to 6.18 refuse a copy of octets that a loop then writes here and there.
	if (!flow || !flow->tail || bpf_skb_load_bytes(skb, at + WL_HEADER, before, len) || !wl_room_blocks(before, len) ||
	    bpf_skb_load_bytes(skb, at + WL_HEADER, after, len))
		return WL_NEXT;
	wl_view_of(&view, tp);
	if (bpf_ntohl(tcp.ack_seq) != view.next)
		return WL_NEXT;
	flow->next = view.next;
	flow->window = view.window;
	receiver = wl_receiver_of(sk, tp, agreed, flow, &view);
	if (!receiver || !wl_receiver_choose(receiver, &view) || !wl_is_urgent(receiver))
		return WL_NEXT;
	size = wl_write_waiting(option, receiver, &view);
	if (!wl_room_make(after, len, option, size))
		return WL_NEXT;
	// Nothing is to be done where the device computes the checksum: that of the addresses, which stands there, is as before.
	change = bpf_csum_diff((__be32 *)before, sizeof(before), (__be32 *)after, sizeof(before), 0);
	if (change < 0 || bpf_l4_csum_replace(skb, at + WL_CHECK_AT, 0, change, 0) ||
	    bpf_skb_store_bytes(skb, at + WL_HEADER, after, len, 0))
		return WL_NEXT;
	wl_report_add(wl_reports_made_room, 1);
	wl_did_report(&receiver->damage[receiver->chosen % WL_PENDING], tp, view.now, size == WL_COMPACT_LEN);
	return WL_NEXT;
}
