// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Where segments leave an interface: an acknowledgement that has no room for reports gets them in place of SACK blocks, and data that has none for its
// nonce gets that. Only those of this host's own sockets are looked at, which leave with the socket locked; what is forwarded, and what a tunnel has wrapped up, is left alone. Where interfaces
// stand upon each other the second finds a report behind the SACK blocks, and does nothing.

#define WL_NEXT (-1) // TCX_NEXT: on to the next program
// Flags that acknowledgements and data do not have, and those that only data has.
#define WL_OPENS 0x26 // SYN, RST, URG
#define WL_FIN 0x01
#define WL_PSH 0x08
#define WL_CHECK_AT 16
#define WL_HEADER 20

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;

// Puts the report that was chosen in place of SACK blocks, in the form that takes least: of one block, as a rule. Returns whether it did.
static __always_inline int wl_put_waiting(u8 *octets, u32 len, struct wl_receiver *receiver, const struct wl_view *view)
{
	struct wl_damage *first = wl_receiver_listed(receiver, 0);
	u8 option[WL_ROOM_MOST] = {};
	struct wl_report report;

	if (!wl_damage_serves(first, view->next)) {
		wl_receiver_report(receiver, view, first, &report);
		return wl_room_make(octets, len, option, wl_report_write(option, &report));
	}
	wl_put_head(option, WL_WORDS_LEN(1));
	wl_word_write(option, 0, wl_damage_word(first, view->next));
	return wl_room_make(octets, len, option, WL_WORDS_LEN(1));
}

// Puts what is waiting into an acknowledgement. Returns whether its options have changed.
static __always_inline int wl_room_report(struct bpf_sock *sk, struct tcp_sock *tp, struct wl_agreed *agreed, u8 *octets, u32 len, u32 ack)
{
	struct wl_receiver *receiver = bpf_sk_storage_get(&wl_receivers, sk, 0, 0);
	struct wl_flow *flow;
	struct wl_view view;

	// Where nothing is left the kernel asks `sockops` for nothing.
	if (len < WL_OPTIONS_MAX && !(receiver && receiver->squeezed))
		return 0;
	flow = bpf_map_lookup_elem(&wl_flows, &agreed->ends);
	if (!flow || !flow->tail)
		return 0;
	wl_view_of(&view, tp);
	if (ack != view.next)
		return 0;
	flow->next = view.next;
	flow->window = view.window;
	receiver = wl_receiver_of(sk, tp, agreed, flow, &view);
	if (!receiver || !wl_receiver_choose(receiver, &view, 1) || !wl_is_urgent(receiver))
		return 0;
	if (!wl_put_waiting(octets, len, receiver, &view))
		return 0;
	wl_report_add(wl_reports_made_room, 1);
	if (wl_damage_serves(wl_receiver_listed(receiver, 0), view.next))
		wl_report_add(wl_reports_compact, 1);
	wl_did_report(wl_receiver_listed(receiver, 0), tp, view.now);
	return 1;
}

// Puts the nonce into `data` octets from `seq` on, whose options had no room for it. Returns whether the options have changed.
static __always_inline int wl_room_nonce(struct bpf_sock *sk, struct tcp_sock *tp, struct wl_agreed *agreed, u8 *octets, u32 len, u32 seq, u32 data)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	u8 option[WL_ROOM_MOST] = {};

	if (!sender || !sender->accepted.nonces || !agreed->words || wl_vain_without(&sender->vain))
		return 0;
	// One block at least stays.
	if (wl_room_blocks(octets, len) + 2 * WL_SACK_BLOCK > len)
		return 0;
	wl_put_head(option, WL_WORDS_LEN(1));
	wl_word_write(option, 0,
		      WL_WORD_NONCE | wl_transmit(sender, tp, seq, data, tp->mss_cache + tp->tcp_header_len - WL_HEADER - len));
	wl_report_add(wl_reports_nonces, 1);
	return wl_room_make(octets, len, option, WL_WORDS_LEN(1));
}

SEC("tcx/egress")
int wl_make_room(struct __sk_buff *skb)
{
	u8 before[WL_OPTIONS_MAX] = {}, after[WL_OCTETS] = {};
	struct bpf_sock *sk = skb->sk;
	struct wl_agreed *agreed;
	struct sk_buff *buffer;
	struct tcp_sock *tp;
	struct wl_tcp tcp;
	u32 at, len, data;
	s64 change;

	if (!sk)
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
	if (skb->len < at + len || tcp.source != bpf_htons(sk->src_port) || tcp.dest != sk->dst_port)
		return WL_NEXT;
	data = skb->len - at - len;
	if (!(tcp.flags & WL_ACK) || tcp.flags & (data ? WL_OPENS : WL_OPENS | WL_FIN | WL_PSH))
		return WL_NEXT;
	len -= WL_HEADER;
	// The verifier is to see the bound in the variable that is used.
	barrier_var(len);
	if (!len || len > WL_OPTIONS_MAX || (data && len + WL_WORDS_LEN(1) <= WL_OPTIONS_MAX))
		return WL_NEXT;
	// Twice from the packet: verifiers up to 6.18 refuse a copy of octets that a loop then writes here and there.
	if (bpf_skb_load_bytes(skb, at + WL_HEADER, before, len) || !wl_room_blocks(before, len) ||
	    bpf_skb_load_bytes(skb, at + WL_HEADER, after, len))
		return WL_NEXT;
	if (!(data ? wl_room_nonce(sk, tp, agreed, after, len, bpf_ntohl(tcp.seq), data) :
		     wl_room_report(sk, tp, agreed, after, len, bpf_ntohl(tcp.ack_seq))))
		return WL_NEXT;
	// Nothing is to be done where the device computes the checksum: that of the addresses, which stands there, is as before.
	change = bpf_csum_diff((__be32 *)before, sizeof(before), (__be32 *)after, sizeof(before), 0);
	if (change >= 0 && !bpf_l4_csum_replace(skb, at + WL_CHECK_AT, 0, change, 0))
		bpf_skb_store_bytes(skb, at + WL_HEADER, after, len, 0);
	return WL_NEXT;
}
