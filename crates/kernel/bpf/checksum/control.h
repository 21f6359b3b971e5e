// SPDX-License-Identifier: (MIT OR Apache-2.0)
// wl_checksum: NewReno's window that the receiver's reports keep (Garcia & Brunstrom 2004). It grows in recovery too, as long as every loss is
// explained: at a high rate of damage a connection is hardly ever out of it. Timeouts follow the policy `aware`.

#include "socket.h"

#include "core/delay.h"

// Losses are waited for as long as a report can be late: a round trip and a half, and the receiver's delayed acknowledgement.
#define WL_PATIENCE_SLACK 5000
#define WL_NO_ROOM 4
// FLAG_ECE of net/ipv4/tcp_input.c.
#define WL_FLAG_ECE 0x40
// Windows of data for which the send buffer has room; the kernel's own controls take 2, BBR 3.
#define WL_WINDOWS_KEPT 5

struct wl_checksum_state {
	struct wl_newreno reno;
	struct wl_aware aware;
	struct wl_kept kept;
	u32 una; // before this acknowledgement
	u32 probe; // end of what a tail loss probe was sent for, before this acknowledgement; 0 if none was
	u32 last_ack; // when the last acknowledgement came
	u32 delivered; // cumulatively, until then
	struct wl_delay delay; // of wl_checksum_delay
	u8 delays;
	u8 opening;
};

_Static_assert(sizeof(struct wl_checksum_state) <= WL_PRIVATE_SIZE, "the kernel has no more");

static __always_inline struct wl_checksum_state *wl_state(struct sock *sk)
{
	return wl_private(sk);
}

static __always_inline u32 wl_number(const struct wl_sender *sender)
{
	return sender ? sender->sent.number : 0;
}

// Whether the latest acknowledgement had room for a report: SACK blocks come first.
static __always_inline int wl_had_room(struct tcp_sock *tp)
{
	u32 most = BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok) ? 3 : 4;

	return !tp->sacked_out || !tp->recv_sack_cache[most - 1].end_seq;
}

// The clock of a loss that waits for its report. Where reports find no room, it goes slower.
static __always_inline void wl_pass(struct wl_sender *sender, struct tcp_sock *tp, u32 elapsed)
{
	sender->sent.clock += wl_had_room(tp) ? elapsed : elapsed / WL_NO_ROOM;
}

static __always_inline int wl_is_believed(const struct wl_sender *sender)
{
	return sender && !wl_accepted_distrusted(&sender->accepted);
}

// Whether the latest transmission of the first segment outstanding was reported.
static __always_inline int wl_head_reported(const struct wl_sender *sender, u32 una)
{
	struct wl_transmission latest;

	if (!wl_is_believed(sender))
		return 0;
	latest = wl_sent_latest(&sender->sent, una);
	return wl_accepted_has(&sender->accepted, una, latest.found ? latest.nonce : 0);
}

// The connection takes a control that takes reports.
static __always_inline void wl_join(struct sock *sk)
{
	struct wl_connection *connection = wl_begin(sk);

	if (connection)
		connection->takes_reports = 1;
	if (bpf_sk_storage_get(&wl_agreements, sk, 0, 0))
		wl_take_reports(sk);
}

// Whether a control begins before the kernel has chosen the first sequence number, as one does that a rule chooses.
static __always_inline int wl_is_opening(const struct sock *sk)
{
	return sk->__sk_common.skc_state == TCP_SYN_SENT;
}

// Whether this acknowledgement is that of the SYN. Where both ends connect at once it comes after the other end's SYN.
static __always_inline int wl_is_answered(u8 *opening)
{
	u8 answered = *opening;

	*opening = 0;
	return answered;
}

// Whether the window of which `used` segments were in flight limits the sender. While losses are repaired the kernel does not say. In slow start a window
// of which half is used grows, later it has to have been full.
static __always_inline int wl_was_limited(const struct tcp_sock *tp, u8 ca_state, u32 used)
{
	if (ca_state == TCP_CA_Open)
		return wl_is_limited(tp);
	return tp->snd_cwnd < tp->snd_ssthresh ? 2 * used > tp->snd_cwnd : used + 2 >= tp->snd_cwnd;
}

// It paces itself: a burst of the whole window would look like a queue.
static __always_inline void wl_need_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

static __always_inline void wl_take(struct sock *sk, struct wl_checksum_state *state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	wl_join(sk);
	wl_newreno_init(&state->reno, WL_UNLIMITED, WL_UNLIMITED);
	state->delivered = tp->delivered;
	state->una = tp->snd_una;
	state->last_ack = wl_now(tp);
	state->opening = wl_is_opening(sk);
}

SEC("struct_ops")
void BPF_PROG(checksum_init, struct sock *sk)
{
	wl_take(sk, wl_state(sk));
}

SEC("struct_ops")
void BPF_PROG(checksum_delay_init, struct sock *sk)
{
	struct wl_checksum_state *state = wl_state(sk);

	wl_take(sk, state);
	state->delays = 1;
	state->delay.end = tcp_sk(sk)->snd_nxt;
	wl_need_pacing(sk);
}

SEC("struct_ops")
void BPF_PROG(checksum_release, struct sock *sk)
{
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);

	if (connection)
		connection->takes_reports = 0;
	bpf_sk_storage_delete(&wl_senders, sk);
}

SEC("struct_ops")
u32 BPF_PROG(checksum_min_tso_segs, struct sock *sk)
{
	return 1;
}

// What is sent waits to be acknowledged until a lost segment has come, and its retransmission can be lost as well: windows for some round trips.
SEC("struct_ops")
u32 BPF_PROG(checksum_sndbuf_expand, struct sock *sk)
{
	return WL_WINDOWS_KEPT;
}

// Before the acknowledgement ends a tail loss probe: what it was for.
SEC("struct_ops")
void BPF_PROG(checksum_in_ack_event, struct sock *sk, u32 flags)
{
	wl_state(sk)->probe = tcp_sk(sk)->tlp_high_seq;
}

// The first data after a pause.
SEC("struct_ops")
void BPF_PROG(checksum_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct wl_checksum_state *state = wl_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!wl_resumes(tp, event))
		return;
	wl_restart(sk, tp, state->last_ack);
	state->last_ack = wl_now(tp);
}

SEC("struct_ops")
u32 BPF_PROG(checksum_ssthresh, struct sock *sk)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	struct wl_checksum_state *state = wl_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt = tp->srtt_us >> 3, base = tp->rtt_min.s[0].v;
	int reported = 0, lately = wl_is_believed(sender) && wl_accepted_lately(&sender->accepted);
	int deep = wl_delay_long(tp->snd_cwnd, srtt, base);

	if (wl_is_believed(sender) && !deep) {
		if (tp->lost_out)
			reported = lately || wl_head_reported(sender, tp->snd_una);
		else if (state->probe)
			// A tail loss probe has repaired what was lost and was never taken for lost.
			reported = wl_accepted_has(&sender->accepted, state->una, 0);
	}
	wl_newreno_save(&state->reno);
	state->reno.acked = 0;
	return wl_kept_begin(&state->kept, wl_window_of(tp), lately ? wl_delay_path(tp->snd_cwnd, srtt, base) : 0, wl_number(sender), reported,
			     deep || (!tp->lost_out && !reported));
}

SEC("struct_ops")
void BPF_PROG(checksum_set_state, struct sock *sk, u8 new_state)
{
	struct wl_checksum_state *state = wl_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_sender *sender;

	if (new_state == TCP_CA_Recovery) {
		wl_count(sk, wl_counts_losses);
		if (!state->kept.reduced)
			wl_count(sk, wl_counts_kept);
		return;
	}
	if (new_state != TCP_CA_Loss || wl_is_refit(tp, wl_ca_state(sk)))
		return;
	sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	if (sender)
		wl_vain_timeout(&sender->vain);
	wl_count(sk, wl_counts_timeouts);
	wl_expired(sk, &state->aware, state->last_ack, wl_ca_state(sk) == TCP_CA_Loss,
		   wl_head_reported(sender, tp->snd_una) ? WL_CORRUPTION : WL_CONGESTION);
	// From here on `aware` decides: the timer takes everything for lost, which no report can explain.
	wl_kept_forget(&state->kept, wl_number(sender));
	if (!state->aware.forgivable) {
		state->kept.reduced = 1;
		tp->snd_ssthresh = wl_min(tp->snd_ssthresh, wl_kept_threshold(&state->kept));
		wl_newreno_timeout(&state->reno);
	}
	wl_kept_end(&state->kept);
}

// In recovery the window grows no faster than in congestion avoidance, beyond what it was before: acknowledgements do not advance and end no round.
static __always_inline void wl_grow(struct wl_checksum_state *state, struct tcp_sock *tp, const struct wl_ack *ack, int recovering)
{
	struct wl_window window = wl_window_of(tp);
	u32 ssthresh = window.ssthresh;

	if (recovering)
		window.ssthresh = wl_min(ssthresh, state->kept.before.cwnd);
	if (state->delays)
		wl_delay_ack(&state->delay, &state->reno, &window, ack, tp->rtt_min.s[0].v);
	else
		wl_newreno_grow(&state->reno, &window, ack);
	if (recovering)
		window.ssthresh = ssthresh;
	wl_set_window(tp, window);
}

// The window falls to the threshold in proportion to what is delivered.
static __always_inline void wl_fall(struct wl_checksum_state *state, struct tcp_sock *tp, u32 delivered, int safe)
{
	struct wl_prr prr = {};

	if (!state->kept.delivered)
		state->kept.out = tp->prr_out;
	state->kept.delivered += delivered;
	prr.before = state->kept.before.cwnd;
	prr.target = tp->snd_ssthresh;
	prr.delivered = state->kept.delivered;
	prr.out = tp->prr_out - state->kept.out;
	prr.pipe = wl_in_flight(tp);
	prr.newly = delivered;
	prr.safe = safe;
	wl_set_cwnd(tp, wl_prr_window(&prr));
}

// A mark in recovery: the kernel takes the window for reduced then and asks nobody.
static __always_inline void wl_heed(struct sock *sk, struct wl_checksum_state *state, const struct wl_sender *sender)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (wl_kept_mark(&state->kept, wl_number(sender)) == WL_SAME)
		return;
	tp->snd_ssthresh = wl_kept_threshold(&state->kept);
	wl_count(sk, wl_counts_cut_later);
}

// Reduces the window for losses that stay unexplained, and brings it back when they are explained after all.
static __always_inline void wl_judge(struct sock *sk, struct wl_checksum_state *state, const struct wl_sender *sender)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 srtt = tp->srtt_us >> 3;

	if (!sender)
		return;
	switch (wl_kept_ack(&state->kept, &sender->sent, srtt + srtt / 2 + WL_PATIENCE_SLACK, tp->lost_out <= tp->retrans_out)) {
	case WL_REDUCED:
		tp->snd_ssthresh = wl_kept_threshold(&state->kept);
		wl_count(sk, wl_counts_cut_later);
		break;
	case WL_RESTORED:
		tp->snd_ssthresh = wl_max(wl_kept_threshold(&state->kept), tp->snd_ssthresh);
		wl_count(sk, wl_counts_kept);
		break;
	default:
		break;
	}
}

// What connections after this one are to know of its destination.
static __always_inline void wl_remember(struct sock *sk, int arrived)
{
	struct wl_agreed *agreed = bpf_sk_storage_get(&wl_agreements, sk, 0, 0);
	struct wl_destination destination = {};

	if (!agreed)
		return;
	destination.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
	__builtin_memcpy(destination.remote, agreed->ends.remote, sizeof(destination.remote));
	if (arrived)
		wl_did_arrive(&destination, WL_DATA);
	else
		wl_did_vanish(&destination, WL_DATA);
}

// Something was delivered. Returns whether the connection goes on with nonces, or has given them up because segments with them vanish.
static __always_inline int wl_deliver(struct sock *sk, struct wl_sender *sender)
{
	struct wl_connection *connection;
	int proven = sender->vain.proven;

	if (!wl_vain_delivered(&sender->vain)) {
		if (!proven && sender->vain.proven)
			wl_remember(sk, 1);
		return 1;
	}
	connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);
	if (connection)
		connection->takes_reports = 0;
	wl_remember(sk, 0);
	bpf_sk_storage_delete(&wl_senders, sk);
	wl_report_add(wl_reports_vanished, 1);
	return 0;
}

SEC("struct_ops")
void BPF_PROG(checksum_cong_control, struct sock *sk, u32 una, int flag, const struct rate_sample *sample)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	struct wl_checksum_state *state = wl_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 last_ack = state->last_ack, delivered = tp->delivered - state->delivered;
	u8 ca_state = wl_ca_state(sk);
	int advances = wl_after(tp->snd_una, state->una);
	struct wl_ack ack = wl_ack_now(tp);

	state->last_ack = ack.now;
	state->delivered = tp->delivered;
	state->una = tp->snd_una;
	if (wl_is_answered(&state->opening)) {
		state->delay.end = tp->snd_nxt;
		return;
	}
	if (sender && delivered && !wl_deliver(sk, sender))
		sender = NULL;
	if (sender) {
		wl_accepted_delivered(&sender->accepted, delivered, tp->snd_cwnd);
		wl_pass(sender, tp, ack.now - last_ack);
	}
	ack.acked = delivered;
	ack.delay = sample->rtt_us;
	ack.limited = wl_was_limited(tp, ca_state, sample->prior_in_flight + delivered);
	switch (ca_state) {
	case TCP_CA_Loss:
		if (wl_forgive(tp, &state->aware, last_ack, advances, state->kept.before))
			wl_count(sk, wl_counts_timeouts_kept);
		wl_kept_forget(&state->kept, wl_number(sender));
		ack.limited = 1;
		wl_grow(state, tp, &ack, 0);
		break;
	case TCP_CA_Recovery:
		if (flag & WL_FLAG_ECE)
			wl_heed(sk, state, sender);
		wl_judge(sk, state, sender);
		if (state->kept.reduced)
			wl_fall(state, tp, delivered, advances && !sample->losses);
		else
			wl_grow(state, tp, &ack, 1);
		break;
	case TCP_CA_CWR:
		if (state->kept.reduced)
			wl_fall(state, tp, delivered, advances);
		break;
	default:
		wl_judge(sk, state, sender);
		if (state->kept.reduced)
			wl_set_cwnd(tp, wl_max(wl_min(tp->snd_cwnd, tp->snd_ssthresh), 2));
		wl_kept_end(&state->kept);
		wl_grow(state, tp, &ack, 0);
	}
	wl_set_rate(sk, tp);
}

SEC("struct_ops")
u32 BPF_PROG(checksum_undo_cwnd, struct sock *sk)
{
	struct wl_checksum_state *state = wl_state(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	wl_count(sk, wl_counts_undone);
	wl_newreno_undo(&state->reno);
	wl_kept_forget(&state->kept, wl_number(bpf_sk_storage_get(&wl_senders, sk, 0, 0)));
	wl_kept_end(&state->kept);
	return wl_undone(tp);
}

#define WL_CONTROL(control, kernel_name, begin)                        \
	SEC(".struct_ops.link")                                        \
	struct tcp_congestion_ops control = {                          \
		.name = kernel_name,                                   \
		.init = (void *)begin,                                 \
		.release = (void *)checksum_release,                   \
		.ssthresh = (void *)checksum_ssthresh,                 \
		.set_state = (void *)checksum_set_state,               \
		.in_ack_event = (void *)checksum_in_ack_event,         \
		.cwnd_event = (void *)checksum_cwnd_event,             \
		.cong_control = (void *)checksum_cong_control,         \
		.undo_cwnd = (void *)checksum_undo_cwnd,               \
		.min_tso_segs = (void *)checksum_min_tso_segs,         \
		.sndbuf_expand = (void *)checksum_sndbuf_expand,       \
	}

WL_CONTROL(wl_checksum, "wl_checksum", checksum_init);
WL_CONTROL(wl_checksum_delay, "wl_checksum_del", checksum_delay_init);
