// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The options: agreed on by the SYNs, nonces on data, reports on what leaves with room for them. All of it runs with the socket locked.

#define WL_SYN 0x02
#define WL_ACK 0x10
// SYNs that were sent in vain, from which on they go without our option: something on the way may not like it.
#define WL_SYN_RETRIES 2
// How often SACK blocks give way to a report: the acknowledgement that carries it can be lost.
#define WL_URGENT 2

static __always_inline void wl_remote_of(struct bpf_sock_ops *ops, __be32 *remote)
{
	if (ops->family == AF_INET) {
		wl_mapped(remote, ops->remote_ip4);
	} else {
		remote[0] = ops->remote_ip6[0];
		remote[1] = ops->remote_ip6[1];
		remote[2] = ops->remote_ip6[2];
		remote[3] = ops->remote_ip6[3];
	}
}

static __always_inline void wl_destination_of(struct bpf_sock_ops *ops, struct wl_destination *destination)
{
	destination->netns = bpf_get_netns_cookie(ops);
	wl_remote_of(ops, destination->remote);
}

static __always_inline void wl_ends_of(struct bpf_sock_ops *ops, struct wl_ends *ends)
{
	wl_remote_of(ops, ends->remote);
	if (ops->family == AF_INET) {
		wl_mapped(ends->local, ops->local_ip4);
	} else {
		ends->local[0] = ops->local_ip6[0];
		ends->local[1] = ops->local_ip6[1];
		ends->local[2] = ops->local_ip6[2];
		ends->local[3] = ops->local_ip6[3];
	}
	// In network order in the upper or in the lower half, whichever the machine makes of it.
	ends->remote_port = bpf_htons(bpf_ntohl(ops->remote_port));
	ends->local_port = bpf_htons(ops->local_port);
}

static __always_inline void wl_flags(struct bpf_sock_ops *ops, u32 set, u32 clear)
{
	bpf_sock_ops_cb_flags_set(ops, (ops->bpf_sock_ops_cb_flags | set) & ~clear);
}

// Whether the peer's SYN or SYN-ACK carried *reports permitted*.
static __always_inline int wl_permitted(struct bpf_sock_ops *ops, u64 flags)
{
	u8 option[WL_PERMITTED_LEN];

	wl_put_head(option, WL_PERMITTED_LEN);
	return bpf_load_hdr_opt(ops, option, sizeof(option), flags) == WL_PERMITTED_LEN;
}

// These are functions of their own, so that each has a stack of its own and the verifier looks at each once.

// The connection is established: agree or be left alone from now on.
__noinline int wl_established(struct bpf_sock_ops *ops, u32 flags)
{
	struct wl_destination destination = {};
	struct wl_connection *connection;
	struct bpf_sock *sk = ops->sk;
	struct wl_flow *fresh;
	struct wl_agreed *agreed;
	struct tcp_sock *tp;
	u32 zero = 0;

	if (!sk)
		return 0;
	fresh = bpf_map_lookup_elem(&wl_fresh, &zero);
	if (!fresh)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		goto plain;
	wl_destination_of(ops, &destination);
	if (!wl_permitted(ops, flags)) {
		// The first SYN to be answered was one without the option.
		if (!flags && tp->total_retrans >= WL_SYN_RETRIES)
			wl_did_vanish(&destination, WL_SYNS);
		goto plain;
	}
	// An offer that was not answered.
	if (flags && wl_is_avoided(&destination))
		goto plain;
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!agreed)
		goto plain;
	wl_ends_of(ops, &agreed->ends);
	fresh->netns = bpf_get_netns_cookie(ops);
	fresh->owner = bpf_get_socket_cookie(ops);
	fresh->next = tp->rcv_nxt;
	fresh->window = tp->rcv_wnd;
	fresh->damaged = 0;
	if (bpf_map_update_elem(&wl_flows, &agreed->ends, fresh, BPF_NOEXIST)) {
		bpf_sk_storage_delete(&wl_agreements, sk);
		wl_report_add(wl_reports_no_flow, 1);
		goto plain;
	}
	wl_report_add(wl_reports_agreed, 1);
	if (!flags)
		wl_did_arrive(&destination, WL_SYNS);
	connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);
	if (connection && connection->takes_reports)
		wl_take_reports(sk);
	wl_flags(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG, 0);
	return 0;
plain:
	wl_flags(ops, 0, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	return 0;
}

static __always_inline void wl_closed(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct wl_agreed *agreed;
	struct wl_flow *flow;

	if (!sk)
		return;
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	if (!agreed)
		return;
	flow = bpf_map_lookup_elem(&wl_flows, &agreed->ends);
	if (flow && flow->owner == bpf_get_socket_cookie(ops) && !bpf_map_delete_elem(&wl_flows, &agreed->ends))
		wl_report_add(wl_reports_ended, 1);
}

static __always_inline void wl_view_of(struct wl_view *view, struct tcp_sock *tp)
{
	u32 i;

	view->now = wl_clock();
	view->next = tp->rcv_nxt;
	view->window = tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt;
	view->full = tp->inet_conn.icsk_ack.rcv_mss;
	view->blocks = tp->rx_opt.num_sacks;
	for (i = 0; i < WL_BLOCKS; i++) {
		view->block[i].start = tp->selective_acks[i].start_seq;
		view->block[i].end = tp->selective_acks[i].end_seq;
	}
	wl_view_sort(view);
}

struct wl_drain {
	struct wl_flow *flow;
	struct wl_receiver *receiver;
	const struct wl_view *view;
};

WL_STEP wl_drain_step(u32 round, struct wl_drain *drain)
{
	u32 head = drain->flow->head;
	struct wl_slot *slot = &drain->flow->slot[head % WL_SLOTS];
	struct wl_damage damage = {};

	if (head == drain->flow->tail || slot->ticket != head + 1)
		return 1;
	damage.seq = slot->seq;
	damage.echo = slot->echo;
	damage.at = slot->at;
	damage.echoed = slot->echoed;
	damage.congested = slot->congested;
	drain->flow->head = head + 1;
	if (!wl_receiver_damage(drain->receiver, drain->view, &damage))
		wl_report_add(wl_reports_overrun, 1);
	return 0;
}

// What the connection has to report, with what the tracepoint has queued since; NULL if nothing was ever damaged.
static __always_inline struct wl_receiver *wl_receiver_of(struct bpf_sock *sk, struct tcp_sock *tp, struct wl_agreed *agreed,
							   struct wl_flow *flow, const struct wl_view *view)
{
	struct wl_receiver *receiver;
	s32 intact;

	if (!flow->tail)
		return NULL;
	receiver = bpf_sk_storage_get(&wl_receivers, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!receiver)
		return NULL;
	if (!receiver->begun)
		wl_receiver_begin(receiver);
	receiver->reserved = receiver->squeezed = 0;
	// The kernel counts most segments before it looks at their checksums.
	intact = tp->data_segs_in - flow->damaged - agreed->segments;
	if (intact > 0) {
		wl_budget_earn(&receiver->budget, intact, WL_PENDING_BUDGET);
		agreed->segments += intact;
	}
	if (flow->head != flow->tail) {
		struct wl_drain drain = { flow, receiver, view };

		WL_LOOP(WL_SLOTS, wl_drain_step, &drain);
	}
	return receiver;
}

// Whether SACK blocks are to give way to the report that was chosen.
static __always_inline int wl_is_urgent(const struct wl_receiver *receiver)
{
	return receiver->damage[receiver->chosen % WL_PENDING].reports < WL_URGENT;
}

// How much room a segment is to have for a report.
__noinline int wl_reserve_report(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct wl_receiver *receiver;
	struct wl_agreed *agreed;
	struct wl_report report;
	struct wl_flow *flow;
	struct tcp_sock *tp;
	struct wl_view view;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	if (!tp || !agreed)
		return 0;
	flow = bpf_map_lookup_elem(&wl_flows, &agreed->ends);
	if (!flow)
		return 0;
	wl_view_of(&view, tp);
	flow->next = view.next;
	flow->window = view.window;
	receiver = wl_receiver_of(sk, tp, agreed, flow, &view);
	if (!receiver || !wl_receiver_choose(receiver, &view))
		return 0;
	wl_receiver_report(receiver, &view, receiver->chosen, &report);
	receiver->compact = 0;
	if (!bpf_reserve_hdr_opt(ops, report.echoed ? WL_ECHO_LEN : WL_POSITION_LEN, 0)) {
		receiver->reserved = 1;
	} else if ((report.echoed || wl_is_plain()) && wl_compact_fits(&report, view.next) &&
		   // Without the nonce its ten bits would be a guess.
		   !bpf_reserve_hdr_opt(ops, WL_COMPACT_LEN, 0)) {
		receiver->reserved = 1;
		receiver->compact = 1;
	} else {
		wl_report_add(wl_reports_no_room, 1);
		// What was told before is told again where there is room.
		receiver->squeezed = !ops->skb_len && wl_is_urgent(receiver);
	}
	return 0;
}

// A report was put into what leaves.
static __always_inline void wl_did_report(struct wl_damage *damage, const struct tcp_sock *tp, u32 now, int compact)
{
	u32 waited = now - damage->at;

	if (compact)
		wl_report_add(wl_reports_compact, 1);
	if (damage->reports) {
		wl_report_add(wl_reports_repeated, 1);
	} else {
		wl_report_add(wl_reports_reported, 1);
		wl_report_add(wl_reports_late_us, waited);
		if (waited > tp->rcv_rtt_est.rtt_us >> 3)
			wl_report_add(wl_reports_late, 1);
	}
	if (damage->reports < 255)
		damage->reports++;
}

__noinline int wl_store_report(struct bpf_sock_ops *ops)
{
	u8 option[WL_ECHO_LEN + 1] = {};
	struct wl_receiver *receiver;
	struct wl_report report;
	struct wl_view view;
	struct tcp_sock *tp;
	struct bpf_sock *sk = ops->sk;
	u32 len = WL_COMPACT_LEN;

	if (!sk)
		return 0;
	receiver = bpf_sk_storage_get(&wl_receivers, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!receiver || !tp || !receiver->reserved)
		return 0;
	receiver->reserved = 0;
	wl_view_of(&view, tp);
	wl_receiver_report(receiver, &view, receiver->chosen, &report);
	if (receiver->compact)
		wl_compact_write(option, &report, view.next);
	else
		len = wl_report_write(option, &report);
	if (!bpf_store_hdr_opt(ops, option, len, 0))
		wl_did_report(&receiver->damage[receiver->chosen % WL_PENDING], tp, view.now, receiver->compact);
	return 0;
}

// Makes room for *reports permitted*.
static __always_inline void wl_reserve_permitted(struct bpf_sock_ops *ops)
{
	struct wl_destination destination = {};

	wl_destination_of(ops, &destination);
	if (wl_is_avoided(&destination))
		wl_report_add(wl_reports_avoided, 1);
	else
		bpf_reserve_hdr_opt(ops, WL_PERMITTED_LEN, 0);
}

__noinline int wl_header_length(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk;
	struct wl_agreed *agreed;
	struct tcp_sock *tp;
	int of_full_segment = ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS;

	if (!ops->is_fullsock) {
		// A SYN-ACK: answers the SYN. One with a cookie is for a SYN that nobody will remember.
		if (ops->args[0] != BPF_WRITE_HDR_TCP_SYNACK_COOKIE && wl_permitted(ops, BPF_LOAD_HDR_OPT_TCP_SYN))
			wl_reserve_permitted(ops);
		return 0;
	}
	sk = ops->sk;
	if (!sk)
		return 0;
	if (ops->skb_tcp_flags & WL_SYN && !of_full_segment) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp && tp->inet_conn.icsk_retransmits < WL_SYN_RETRIES)
			wl_reserve_permitted(ops);
		return 0;
	}
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	if (!agreed)
		return 0;
	if (of_full_segment || ops->skb_len) {
		struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);

		if (sender && !wl_vain_without(&sender->vain)) {
			if (!(ops->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG))
				wl_flags(ops, BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG, 0);
			// Without nonces it is filled with no-operations: only who writes headers sees what is sent again.
			bpf_reserve_hdr_opt(ops, sender->accepted.nonces ? WL_NONCE_LEN : WL_PERMITTED_LEN, 0);
		}
		// A full segment has no room for a report: one that is longer than what was told of its header would not fit the path.
		tp = bpf_skc_to_tcp_sock(sk);
		if (of_full_segment || !tp || ops->skb_len + WL_OPTIONS_MAX > tp->mss_cache)
			return 0;
	}
	return wl_reserve_report(ops);
}

__noinline int wl_header_write(struct bpf_sock_ops *ops)
{
	u8 option[WL_NONCE_LEN + 3] = {};
	struct wl_agreed *agreed;
	struct wl_sender *sender;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct wl_tcp *tcp;
	u32 seq, header, len, mss, nonce, explained = 0;
	int again;

	if (ops->skb_tcp_flags & WL_SYN) {
		wl_put_head(option, WL_PERMITTED_LEN);
		bpf_store_hdr_opt(ops, option, WL_PERMITTED_LEN, 0);
		return 0;
	}
	sk = ops->sk;
	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	tcp = ops->skb_data;
	if (!tp || (void *)(tcp + 1) > ops->skb_data_end)
		return 0;
	header = (tcp->doff >> 4) * 4;
	seq = bpf_ntohl(tcp->seq);
	len = ops->skb_len - header;
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	if (!agreed)
		return 0;
	sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	if (!sender || ops->skb_len <= header)
		return wl_store_report(ops);
	mss = tp->mss_cache + tp->tcp_header_len - header;
	again = wl_after(tp->snd_nxt, seq);
	if (again)
		explained = wl_accepted_repair(&sender->accepted, seq, len);
	nonce = wl_sent_nonce(&sender->sent, seq, len, mss, again);
	// A tail loss probe repairs nothing as far as is known, and after a timeout everything is sent again.
	if (again && BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Recovery)
		wl_repair_begin(&sender->sent, explained);
	if (sender->accepted.nonces) {
		wl_nonce_write(option, nonce);
		if (!bpf_store_hdr_opt(ops, option, WL_NONCE_LEN, 0))
			wl_report_add(wl_reports_nonces, 1);
	}
	return wl_store_report(ops);
}

static __always_inline void wl_count_belief(struct bpf_sock *sk, enum wl_belief belief)
{
	// Counters stand in the order of enum wl_belief.
	_Static_assert(wl_reports_stale == wl_reports_believed + WL_STALE, "the same order");
	_Static_assert(wl_reports_distrusted == wl_reports_believed + WL_DISTRUSTED, "the same order");
	wl_report_add(wl_reports_believed + belief, 1);
	if (belief == WL_BELIEVED)
		wl_count((struct sock *)sk, wl_counts_heard);
	else if (belief > WL_STALE)
		wl_count((struct sock *)sk, wl_counts_refused);
}

__noinline int wl_header_parse(struct bpf_sock_ops *ops)
{
	struct wl_scan scan = {};
	struct wl_outstanding at;
	struct wl_options options;
	struct wl_sender *sender;
	struct tcp_sock *tp;
	struct bpf_sock *sk = ops->sk;
	struct wl_tcp *tcp = ops->skb_data;
	void *end = ops->skb_data_end;
	u32 len, i, ack;

	if (!sk || (void *)(tcp + 1) > end)
		return 0;
	len = (tcp->doff >> 4) * 4 - 20;
	ack = bpf_ntohl(tcp->ack_seq);
	if (len > WL_OPTIONS_MAX)
		return 0;
	for (i = 0; i < WL_OPTIONS_MAX; i += 4) {
		u8 *from = (u8 *)(tcp + 1) + i;

		if (i >= len || from + 4 > (u8 *)end)
			break;
		__builtin_memcpy(scan.octets + i, from, 4);
	}
	wl_options_read(&options, &scan, len, ack);
	if (!options.has_report)
		return 0;
	sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!sender || !tp)
		return 0;
	at.una = tp->snd_una;
	at.nxt = tp->snd_nxt;
	wl_count_belief(sk, wl_accept_report(&sender->accepted, &sender->sent, &options.report, &at));
	return 0;
}

SEC("sockops")
int wl_options(struct bpf_sock_ops *ops)
{
	int one = 1;

	if (ops->family != AF_INET && ops->family != AF_INET6)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		// The SYN is kept so that its options can be seen when the connection is established.
		if (!bpf_setsockopt(ops, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one)))
			wl_flags(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG, 0);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		wl_flags(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG, 0);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		wl_established(ops, 0);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		wl_established(ops, BPF_LOAD_HDR_OPT_TCP_SYN);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == BPF_TCP_CLOSE)
			wl_closed(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		wl_header_length(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		wl_header_write(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		wl_header_parse(ops);
		break;
	}
	return 1;
}
