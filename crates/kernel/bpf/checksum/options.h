// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The options: agreed on by the SYNs, nonces on data, reports on what leaves with room for them. All of it runs with the socket locked.

#define WL_SYN 0x02
#define WL_ACK 0x10
// SYNs that were sent in vain, from which on they go without our option: something on the way may not like it.
#define WL_SYN_RETRIES 2

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

// Whether the peer's SYN or SYN-ACK carried *reports permitted*, or *words permitted* if `kind` is that one's.
static __always_inline int wl_permitted(struct bpf_sock_ops *ops, u8 kind, u64 flags)
{
	u8 option[WL_PERMITTED_LEN];

	wl_put_head_of(option, kind, WL_PERMITTED_LEN);
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
	if (!wl_permitted(ops, WL_OPTION_KIND, flags)) {
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
	agreed->words = wl_permitted(ops, WL_WORDS_KIND, flags);
	fresh->words = agreed->words;
	fresh->netns = bpf_get_netns_cookie(ops);
	fresh->owner = bpf_get_socket_cookie(ops);
	fresh->next = tp->rcv_nxt;
	fresh->window = tp->rcv_wnd;
	fresh->expected = tp->rcv_nxt;
	fresh->damaged = 0;
	fresh->segments = tp->data_segs_in;
	wl_budget_init(&fresh->budget);
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
	wl_flags(ops, 0, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
	return 0;
}

// A socket may connect again (RFC 9293, 3.10.5; AF_UNSPEC), to a peer that agrees on nothing.
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
	bpf_sk_storage_delete(&wl_agreements, sk);
	bpf_sk_storage_delete(&wl_receivers, sk);
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

	if (head == drain->flow->tail || wl_after(head + 1, slot->ticket))
		return 1;
	drain->flow->head = head + 1;
	if (slot->ticket != head + 1) {
		// Two processors found the last place free, and one of them has overwritten this.
		wl_report_add(wl_reports_overrun, 1);
		return 0;
	}
	damage.seq = slot->seq;
	damage.echo = slot->echo;
	damage.at = slot->at;
	damage.echoed = slot->echoed;
	damage.congested = slot->congested;
	damage.reports = slot->told;
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
	receiver->words = receiver->full = receiver->squeezed = 0;
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

// Whether SACK blocks are to give way to what was chosen.
static __always_inline int wl_is_urgent(struct wl_receiver *receiver)
{
	return wl_receiver_listed(receiver, 0)->reports < WL_URGENT;
}

// Reserves room for as many words as there is, behind `head` octets; returns for how many.
static __always_inline u32 wl_reserve_words(struct bpf_sock_ops *ops, u32 head, u32 most)
{
	u32 words;

	for (words = WL_LIST; words; words--)
		if (words <= most && !bpf_reserve_hdr_opt(ops, head + 4 * words, 0))
			return words;
	return 0;
}

// How much room a segment is to have for reports. With a nonce they are words behind it: the kernel takes no second option of our kind.
__noinline int wl_reserve_report(struct bpf_sock_ops *ops, int nonce)
{
	struct bpf_sock *sk = ops->sk;
	struct wl_receiver *receiver;
	struct wl_agreed *agreed;
	struct wl_damage *first;
	struct wl_flow *flow;
	struct tcp_sock *tp;
	struct wl_view view;
	int serves;

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
	if (!receiver || (nonce && !agreed->words) || !wl_receiver_choose(receiver, &view, agreed->words ? WL_LIST : 1))
		return 0;
	first = wl_receiver_listed(receiver, 0);
	serves = wl_damage_serves(first, view.next);
	if (nonce) {
		receiver->words = serves ? wl_reserve_words(ops, 0, receiver->listed) : 0;
		return 0;
	}
	if (receiver->listed > 1)
		receiver->words = wl_reserve_words(ops, WL_WORDS_LEN(0), receiver->listed);
	// One alone is told in full where there is room.
	if (receiver->words < 2)
		receiver->full = !receiver->words && !bpf_reserve_hdr_opt(ops, first->echoed ? WL_ECHO_LEN : WL_POSITION_LEN, 0);
	if (!receiver->words && !receiver->full && serves)
		receiver->words = wl_reserve_words(ops, WL_WORDS_LEN(0), 1);
	if (!receiver->words && !receiver->full) {
		wl_report_add(wl_reports_no_room, 1);
		// What was told before is told again where there is room.
		receiver->squeezed = !ops->skb_len && wl_is_urgent(receiver);
	}
	return 0;
}

// A report was put into what leaves.
static __always_inline void wl_did_report(struct wl_damage *damage, const struct tcp_sock *tp, u32 now)
{
	u32 waited = now - damage->at;

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

// Those that were chosen first were put into what leaves, as words.
static __always_inline void wl_did_list(struct wl_receiver *receiver, u32 words, const struct tcp_sock *tp, u32 now)
{
	u32 i;

	wl_report_add(wl_reports_compact, words);
	if (words > 1)
		wl_report_add(wl_reports_listed, words);
	for (i = 0; i < WL_LIST; i++)
		if (i < words)
			wl_did_report(wl_receiver_listed(receiver, i), tp, now);
}

// Writes the reports that room was reserved for, behind the word of a nonce if there is one.
__noinline int wl_store_report(struct bpf_sock_ops *ops, u32 nonce)
{
	u8 option[WL_WORDS_LEN(WL_LIST + 1)] = {};
	struct bpf_sock *sk = ops->sk;
	struct wl_receiver *receiver;
	struct wl_report report;
	struct wl_view view;
	struct tcp_sock *tp;
	u32 reports = 0, first = !!nonce, i;

	if (!sk)
		return 0;
	receiver = bpf_sk_storage_get(&wl_receivers, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (receiver && receiver->full && !nonce) {
		receiver->full = 0;
		wl_view_of(&view, tp);
		wl_receiver_report(receiver, &view, wl_receiver_listed(receiver, 0), &report);
		wl_report_write(option, &report);
		if (!bpf_store_hdr_opt(ops, option, sizeof(option), 0))
			wl_did_report(wl_receiver_listed(receiver, 0), tp, view.now);
		return 0;
	}
	if (receiver) {
		reports = receiver->words;
		receiver->words = 0;
	}
	if (!first && !reports)
		return 0;
	wl_put_head(option, WL_WORDS_LEN(first + reports));
	if (nonce)
		wl_word_write(option, 0, nonce);
	for (i = 0; i <= WL_LIST; i++)
		if (receiver && i >= first && i < first + reports)
			wl_word_write(option, i, wl_damage_word(wl_receiver_listed(receiver, i - first), tp->rcv_nxt));
	if (bpf_store_hdr_opt(ops, option, sizeof(option), 0))
		return 0;
	if (nonce)
		wl_report_add(wl_reports_nonces, 1);
	if (receiver && reports)
		wl_did_list(receiver, reports, tp, wl_clock());
	return 0;
}

// Makes room for *reports permitted*, and for *words permitted*, which needs the other.
static __always_inline void wl_reserve_permitted(struct bpf_sock_ops *ops, int words)
{
	struct wl_destination destination = {};

	wl_destination_of(ops, &destination);
	if (wl_is_avoided(&destination))
		wl_report_add(wl_reports_avoided, 1);
	else if (!words || bpf_reserve_hdr_opt(ops, 2 * WL_PERMITTED_LEN, 0))
		bpf_reserve_hdr_opt(ops, WL_PERMITTED_LEN, 0);
}

__noinline int wl_header_length(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk;
	struct wl_agreed *agreed;
	struct tcp_sock *tp;
	int of_full_segment = ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS, nonce = 0;

	if (!ops->is_fullsock) {
		// A SYN-ACK: answers the SYN. One with a cookie is for a SYN that nobody will remember.
		if (ops->args[0] != BPF_WRITE_HDR_TCP_SYNACK_COOKIE && wl_permitted(ops, WL_OPTION_KIND, BPF_LOAD_HDR_OPT_TCP_SYN))
			wl_reserve_permitted(ops, wl_permitted(ops, WL_WORDS_KIND, BPF_LOAD_HDR_OPT_TCP_SYN));
		return 0;
	}
	sk = ops->sk;
	if (!sk)
		return 0;
	if (ops->skb_tcp_flags & WL_SYN && !of_full_segment) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp && tp->inet_conn.icsk_retransmits < WL_SYN_RETRIES)
			wl_reserve_permitted(ops, 1);
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
			nonce = sender->accepted.nonces;
			bpf_reserve_hdr_opt(ops, !nonce ? WL_PERMITTED_LEN : agreed->words ? WL_WORDS_LEN(1) : WL_NONCE_LEN, 0);
		}
		// A full segment has no room for a report: one that is longer than what was told of its header would not fit the path.
		tp = bpf_skc_to_tcp_sock(sk);
		if (of_full_segment || !tp || ops->skb_len + WL_OPTIONS_MAX > tp->mss_cache)
			return 0;
	}
	return wl_reserve_report(ops, nonce);
}

// The nonce of a transmission that is about to leave, of `len` octets from `seq` on in segments of `mss`.
static __always_inline u32 wl_transmit(struct wl_sender *sender, const struct tcp_sock *tp, u32 seq, u32 len, u32 mss)
{
	int again = wl_after(tp->snd_nxt, seq);
	u32 explained = again ? wl_accepted_repair(&sender->accepted, seq, len) : 0, nonce;

	if (!again)
		wl_accepted_age(&sender->accepted, seq);
	nonce = wl_sent_nonce(&sender->sent, seq, len, mss, again);
	// A tail loss probe repairs nothing as far as is known, and after a timeout everything is sent again.
	if (again && BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Recovery)
		wl_repair_begin(&sender->sent, explained);
	return nonce;
}

__noinline int wl_header_write(struct bpf_sock_ops *ops)
{
	u8 option[WL_NONCE_LEN + 3] = {};
	struct wl_agreed *agreed;
	struct wl_sender *sender;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct wl_tcp *tcp;
	u32 header, nonce;

	if (ops->skb_tcp_flags & WL_SYN) {
		// By now its control is chosen, whatever program does that.
		if (!(ops->skb_tcp_flags & WL_ACK))
			wl_begin_timer(ops);
		wl_put_head(option, WL_PERMITTED_LEN);
		bpf_store_hdr_opt(ops, option, WL_PERMITTED_LEN, 0);
		wl_put_head_of(option, WL_WORDS_KIND, WL_PERMITTED_LEN);
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
	agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	if (!agreed)
		return 0;
	sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	if (!sender || ops->skb_len <= header)
		return wl_store_report(ops, 0);
	nonce = wl_transmit(sender, tp, bpf_ntohl(tcp->seq), ops->skb_len - header, tp->mss_cache + tp->tcp_header_len - header);
	if (!sender->accepted.nonces || agreed->words)
		return wl_store_report(ops, sender->accepted.nonces ? WL_WORD_NONCE | nonce : 0);
	wl_nonce_write(option, nonce);
	if (!bpf_store_hdr_opt(ops, option, WL_NONCE_LEN, 0))
		wl_report_add(wl_reports_nonces, 1);
	return 0;
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

// The reports of a header.
struct wl_parse {
	struct wl_scan scan;
	u32 ack;
	struct bpf_sock *sk;
	struct wl_sender *sender;
	struct wl_outstanding at;
};

WL_STEP wl_parse_step(u32 round, struct wl_parse *parse)
{
	struct wl_report report;

	if (!wl_report_at(&report, &parse->scan, round, parse->ack))
		return 1;
	wl_count_belief(parse->sk, wl_accept_report(&parse->sender->accepted, &parse->sender->sent, &report, &parse->at));
	return 0;
}

__noinline int wl_header_parse(struct bpf_sock_ops *ops)
{
	struct wl_parse parse = {};
	struct wl_options options;
	struct tcp_sock *tp;
	struct bpf_sock *sk = ops->sk;
	struct wl_tcp *tcp = ops->skb_data;
	void *end = ops->skb_data_end;
	u32 len, i;

	if (!sk || (void *)(tcp + 1) > end)
		return 0;
	len = (tcp->doff >> 4) * 4 - 20;
	parse.ack = bpf_ntohl(tcp->ack_seq);
	if (len > WL_OPTIONS_MAX)
		return 0;
	for (i = 0; i < WL_OPTIONS_MAX; i += 4) {
		u8 *from = (u8 *)(tcp + 1) + i;

		if (i >= len || from + 4 > (u8 *)end)
			break;
		__builtin_memcpy(parse.scan.octets + i, from, 4);
	}
	wl_options_read(&options, &parse.scan, len, parse.ack);
	if (!options.has_report)
		return 0;
	parse.sk = sk;
	parse.sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!parse.sender || !tp)
		return 0;
	parse.at.una = tp->snd_una;
	parse.at.nxt = tp->snd_nxt;
	WL_LOOP(WL_WORDS_MOST, wl_parse_step, &parse);
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
		wl_begin_timer(ops);
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
