// SPDX-License-Identifier: (MIT OR Apache-2.0)
// wl_auto: one control for any path (core/auto.h). It works with one end alone. Where the other end reports damage, a loss that it explains is
// corruption for certain; every other is judged by the delay around it.

#include "core/auto.h"

// Tenths of the window that are paced over a round trip: in slow start and where it goes by acknowledgements, and else.
#define WL_AUTO_FAST_PACE 20
#define WL_AUTO_PACE 11
// Defaults of the kernel: sk_pacing_shift, net.ipv4.tcp_tso_rtt_log, and the largest packet of several segments.
#define WL_PACING_SHIFT 10
#define WL_TSO_RTT_LOG 9
#define WL_GSO_MOST 65536
// Segments a millisecond from which on more than a pair leaves at once.
#define WL_AUTO_MORE_THAN_PAIRS 3

struct wl_auto_state {
	struct wl_auto control;
	struct wl_aware aware;
	struct wl_window before; // the latest reduction or timeout
	u32 una; // before this acknowledgement
	u32 probe; // end of what a tail loss probe was sent for, before this acknowledgement; 0 if none was
	u32 last_ack; // when the last acknowledgement came, or the first data after a pause left
	u32 delivered; // segments, until then
	u32 lost; // segments taken for lost, retransmitted, and the number of the latest retransmission that has one, until then
	u32 retransmitted;
	u32 numbered;
	u32 answered; // segments delivered when congestion was last answered
	u32 tried; // the latest retransmission whose losses were counted
	u32 cut_after; // retransmissions after this one repair what the latest reduction was for
	u32 cut_at; // when it was
	u32 margin; // of the retransmission timeout as it is set, and at most
	u32 most_margin;
	u8 owed; // and it can be taken back, should reports explain all of that
	u8 recovering; // a recovery goes on, through a smaller path MTU too
	u8 reduced; // since it began
	u8 collapsed; // since the first timeout of those that are being repaired
	u8 acking; // an acknowledgement is under way
	u8 marked; // and carries the ECN echo
	u8 opening; // the control began before the first sequence number
	u8 unsent; // and has not sent since that was acknowledged
};

// More than the kernel has room for beside a connection.
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wl_auto_state);
} wl_autos SEC(".maps");

static __always_inline struct wl_auto_state *wl_auto_of(struct sock *sk)
{
	return bpf_sk_storage_get(&wl_autos, sk, 0, 0);
}

// Where there is no memory for the rest: NewReno.
static __always_inline struct wl_newreno *wl_spare(struct sock *sk)
{
	return wl_private(sk);
}

// Where others are seen, and a millisecond holds no more than a pair, it sends as those that do not pace: in pairs, and by acknowledgements. Evenly paced
// single segments fill each gap of a full queue, and what it drops are the others' pairs.
static __always_inline int wl_auto_is_unpaced(const struct wl_auto_state *state, const struct tcp_sock *tp, u32 trip)
{
	u64 a_millisecond = (u64)tp->snd_cwnd * WL_AUTO_FAST_PACE / 10 * 1000;

	return state && state->control.others == WL_SEEN && a_millisecond < (u64)(trip >> 3) * WL_AUTO_MORE_THAN_PAIRS;
}

// SRTT remembers a queue for many acknowledgements after that became shorter. A window paced by it would leave the link idle; the latest delay tells at
// once, and is 0 or less if there is none.
static __always_inline void wl_auto_pace(struct sock *sk, const struct wl_auto_state *state, s32 delay)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 trip = delay > 0 ? wl_min(tp->srtt_us, (u32)delay << 3) : tp->srtt_us;
	int fast = tp->snd_cwnd < tp->snd_ssthresh || wl_auto_is_unpaced(state, tp, trip);

	wl_pace(sk, tp, trip, fast ? WL_AUTO_FAST_PACE : WL_AUTO_PACE);
}

static __always_inline struct wl_loss wl_auto_loss(const struct tcp_sock *tp, u32 cwnd)
{
	return (struct wl_loss){
		.now = wl_now(tp),
		.cwnd = cwnd,
		.flight = wl_min(cwnd, tp->packets_out),
		.srtt = tp->srtt_us >> 3,
	};
}

// Segments that leave at once at least.
static __always_inline u32 wl_auto_least_burst(const struct wl_auto_state *state)
{
	return state && state->control.others == WL_SEEN ? 2 : 1;
}

// Segments that leave at once, as tcp_tso_autosize() makes them: what is paced in 2^-10 s, and more where the round trip is below some milliseconds.
static __always_inline u32 wl_auto_burst(const struct sock *sk, const struct wl_auto_state *state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 octets = sk->sk_pacing_rate >> WL_PACING_SHIFT;
	u32 near = tp->rtt_min.s[0].v >> WL_TSO_RTT_LOG, segments;

	if (near < 16)
		octets += WL_GSO_MOST >> near;
	segments = (octets < WL_GSO_MOST ? octets : WL_GSO_MOST) / wl_max(tp->mss_cache, 1);
	return wl_max(wl_min(wl_max(segments, wl_auto_least_burst(state)), tp->snd_cwnd / 2), 1);
}

// Returns whether the kernel took it.
static __always_inline int wl_auto_set_margin(struct sock *sk, struct wl_auto_state *state, u32 margin)
{
	if (bpf_setsockopt(sk, SOL_TCP, TCP_BPF_RTO_MIN, &margin, sizeof(margin)))
		return 0;
	state->margin = margin;
	return 1;
}

// Where the round trip becomes longer this keeps RTTVAR from coming down. The kernel lifts RTTVAR by variation alone.
static __always_inline void wl_auto_keep_margin(struct sock *sk, struct wl_auto_state *state)
{
	u32 srtt = tcp_sk(sk)->srtt_us >> 3, steps = (srtt + WL_AUTO_MARGIN_STEP - 1) / WL_AUTO_MARGIN_STEP;
	u32 margin = wl_min(wl_max(steps * WL_AUTO_MARGIN_STEP, WL_AUTO_MARGIN), state->most_margin);

	if (state->margin && margin != state->margin)
		wl_auto_set_margin(sk, state, margin);
}

static __always_inline void wl_auto_begin_margin(struct sock *sk, struct wl_auto_state *state)
{
	u32 before = inet_csk(sk)->icsk_rto_min, now;

	if (!wl_auto_set_margin(sk, state, WL_AUTO_MARGIN))
		return;
	now = inet_csk(sk)->icsk_rto_min;
	// The same if it was set before the first sample of the round trip.
	state->most_margin = before == now ? WL_AUTO_MARGIN_MOST : wl_rto_min_before(WL_AUTO_MARGIN, before, now);
	wl_auto_keep_margin(sk, state);
}

static __always_inline void wl_auto_start(struct wl_auto_state *state, const struct tcp_sock *tp)
{
	wl_auto_init(&state->control, WL_UNLIMITED, WL_UNLIMITED, tp->snd_nxt, tp->delivered, tp->snd_nxt + tp->snd_cwnd * tp->mss_cache);
	state->una = tp->snd_una;
	state->delivered = tp->delivered;
	state->lost = tp->lost;
	state->retransmitted = tp->total_retrans;
	state->last_ack = wl_now(tp);
}

static __always_inline void wl_auto_answered(struct wl_auto_state *state, const struct tcp_sock *tp)
{
	wl_auto_start(state, tp);
	state->unsent = 1;
}

SEC("struct_ops")
void BPF_PROG(auto_init, struct sock *sk)
{
	struct wl_auto_state *state = bpf_sk_storage_get(&wl_autos, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = tcp_sk(sk);

	wl_join(sk);
	wl_need_pacing(sk);
	wl_newreno_init(wl_spare(sk), WL_UNLIMITED, WL_UNLIMITED);
	if (!state)
		return;
	__builtin_memset(state, 0, sizeof(*state));
	wl_auto_start(state, tp);
	state->opening = wl_is_opening(sk);
	wl_auto_begin_margin(sk, state);
	wl_auto_pace(sk, state, 0);
}

SEC("struct_ops")
void BPF_PROG(auto_release, struct sock *sk)
{
	struct wl_connection *connection = bpf_sk_storage_get(&wl_connections, sk, 0, 0);

	if (connection)
		connection->takes_reports = 0;
	bpf_sk_storage_delete(&wl_senders, sk);
	bpf_sk_storage_delete(&wl_autos, sk);
}

SEC("struct_ops")
void BPF_PROG(auto_in_ack_event, struct sock *sk, u32 flags)
{
	struct wl_auto_state *state = wl_auto_of(sk);

	if (!state)
		return;
	state->probe = tcp_sk(sk)->tlp_high_seq;
	// The host's own queue may have marked it before.
	state->marked |= !!(flags & CA_ACK_ECE);
	state->acking = 1;
}

SEC("struct_ops")
void BPF_PROG(auto_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct wl_auto_state *state = wl_auto_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state || !wl_resumes(tp, event))
		return;
	// What came while nothing was outstanding was no acknowledgement of anything.
	state->acking = 0;
	state->marked = 0;
	if (state->unsent) {
		// By now the first window is that of the route.
		state->unsent = 0;
		wl_auto_start(state, tp);
	}
	wl_restart(sk, tp, state->last_ack);
	state->last_ack = wl_now(tp);
	wl_cubic_hold(&state->control.cubic, state->last_ack);
}

// A loss changes nothing by itself: the window answers to what speaks for congestion.
SEC("struct_ops")
u32 BPF_PROG(auto_ssthresh, struct sock *sk)
{
	struct wl_auto_state *state = wl_auto_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!state)
		return wl_threshold(tp->snd_cwnd / 2);
	// What a reduction that may be taken back has saved is older.
	if (!state->owed)
		wl_auto_save(&state->control);
	state->before = wl_window_of(tp);
	return wl_max(tp->snd_ssthresh, 2);
}

// The timer expired. From here on `aware` decides: it takes everything for lost, which no report can explain.
static __always_inline void wl_auto_expired(struct sock *sk, struct wl_auto_state *state)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_loss loss = wl_auto_loss(tp, wl_max(state->before.cwnd, tp->prior_cwnd));
	int again = wl_ca_state(sk) == TCP_CA_Loss;

	if (sender)
		wl_vain_timeout(&sender->vain);
	wl_count(sk, wl_counts_timeouts);
	wl_expired(sk, &state->aware, state->last_ack, again, wl_head_reported(sender, tp->snd_una) ? WL_CORRUPTION : WL_CONGESTION);
	state->owed = 0;
	state->recovering = 0;
	state->tried = wl_number(sender);
	state->answered = tp->delivered;
	state->collapsed &= again;
	if (state->aware.forgivable)
		return;
	// RFC 5681, 3.1: what was sent again and is lost again leaves the threshold alone. The kernel asks for it anew after each advance.
	if (!state->collapsed)
		tp->snd_ssthresh = wl_auto_threshold(&state->control, &loss);
	state->collapsed = 1;
	wl_auto_timeout(&state->control, tp->snd_nxt);
}

// A router's mark is left to the acknowledgement that carries it. Without one it is the host's own queue, or a loss that a tail loss probe has
// repaired before anything else noticed.
static __always_inline void wl_auto_warned(struct sock *sk, struct wl_auto_state *state)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);

	if (state->marked && state->acking)
		return;
	if (!state->acking)
		state->marked = 1;
	else if (wl_is_believed(sender) && state->probe && wl_accepted_has(&sender->accepted, state->una, 0))
		wl_auto_excused(&state->control, 1);
	else if (wl_auto_is_beginning(&state->control, state->una))
		wl_auto_lost_first(&state->control, 1);
	else
		wl_auto_lost(&state->control, 1, wl_auto_place(&state->control, 1));
}

// Segments taken for lost since the latest acknowledgement: by the timer of RACK, too.
static __always_inline u32 wl_auto_newly_lost(struct wl_auto_state *state, const struct tcp_sock *tp)
{
	u32 lost = tp->lost - state->lost;

	state->lost = tp->lost;
	return lost;
}

// Segments retransmitted since the latest acknowledgement where none of that had room for a nonce, so that no report can explain what they repair. A tail
// loss probe repairs nothing as far as is known.
static __always_inline u32 wl_auto_unnumbered(struct wl_auto_state *state, const struct wl_sender *sender, const struct tcp_sock *tp)
{
	u32 segments = tp->total_retrans - state->retransmitted, number = wl_number(sender);
	int none = number == state->numbered;

	state->retransmitted = tp->total_retrans;
	state->numbered = number;
	return none && !state->probe ? segments : 0;
}

// `lost` segments were noticed, and `unnumbered` repair losses that nobody can explain. Those that somebody can are waited for. `prior` segments had been
// delivered when the latest one delivered left.
static __always_inline void wl_auto_learn(struct wl_auto_state *state, struct wl_sender *sender, const struct tcp_sock *tp, u32 lost, u32 unnumbered,
					  u32 prior)
{
	int answered = wl_auto_is_answering(&state->control, state->una) && wl_after(state->answered, prior);
	int first = wl_auto_is_beginning(&state->control, state->una), before = answered || first;
	u32 srtt = tp->srtt_us >> 3, full = lost && !before ? wl_auto_place(&state->control, lost) : 0;
	struct wl_trial trial = { .tried = state->tried };

	if (first)
		wl_auto_lost_first(&state->control, lost);
	if (!wl_is_believed(sender)) {
		if (!before)
			wl_auto_lost(&state->control, lost, full);
		return;
	}
	if (unnumbered && sender->sent.occasion != WL_LOST_BEFORE)
		wl_auto_lost(&state->control, unnumbered, sender->sent.occasion == WL_LOST_FULL ? unnumbered : 0);
	if (lost || !tp->lost_out)
		sender->sent.occasion = before ? WL_LOST_BEFORE : full ? WL_LOST_FULL : WL_LOST;
	// Where no damage was reported lately there is nothing to wait for.
	trial.patience = wl_accepted_lately(&sender->accepted) ? srtt / 2 + WL_PATIENCE_SLACK : 0;
	wl_repair_try(&trial, &sender->sent);
	if (!state->owed)
		state->cut_after = state->tried;
	state->tried = trial.tried;
	if (trial.explained)
		wl_auto_excused(&state->control, trial.explained);
	if (trial.lost)
		wl_auto_lost(&state->control, trial.lost, trial.full);
}

// What a timeout, or a smaller path MTU, has made be sent again is repaired. Nobody judges that, not even if one acknowledgement tells of all.
static __always_inline void wl_auto_repaired(struct wl_auto_state *state, const struct tcp_sock *tp)
{
	state->lost = tp->lost;
	state->retransmitted = tp->total_retrans;
}

SEC("struct_ops")
void BPF_PROG(auto_set_state, struct sock *sk, u8 new_state)
{
	struct wl_auto_state *state = wl_auto_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u8 before = wl_ca_state(sk);

	if (!state)
		return;
	if (state->recovering && new_state != TCP_CA_Loss) {
		state->recovering = 0;
		if (!state->reduced)
			wl_count(sk, wl_counts_kept);
	}
	if (before == TCP_CA_Loss)
		wl_auto_repaired(state, tp);
	if (new_state == TCP_CA_Recovery) {
		wl_count(sk, wl_counts_losses);
		state->recovering = 1;
		state->reduced = 0;
		// The timer of RACK: what is lost is sent again before the next acknowledgement.
		if (!state->acking)
			wl_auto_learn(state, bpf_sk_storage_get(&wl_senders, sk, 0, 0), tp, wl_auto_newly_lost(state, tp), 0, tp->delivered);
	} else if (new_state == TCP_CA_Loss && !wl_is_refit(tp, before)) {
		wl_auto_expired(sk, state);
	} else if (new_state == TCP_CA_CWR) {
		wl_auto_warned(sk, state);
	}
}

// Takes the latest reduction back once reports explain all losses since.
static __always_inline void wl_auto_restore(struct sock *sk, struct wl_auto_state *state, const struct wl_sender *sender, struct wl_window *window)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_open open;

	if (!state->owed)
		return;
	if (!wl_is_believed(sender) || wl_now(tp) - state->cut_at > WL_KEPT_LATE * (tp->srtt_us >> 3) + WL_PATIENCE_SLACK) {
		state->owed = 0;
		return;
	}
	wl_repair_open(&open, &sender->sent, state->cut_after, sender->sent.number);
	if (open.count || tp->lost_out > tp->retrans_out)
		return;
	wl_auto_undo(&state->control, window);
	window->ssthresh = wl_max(window->ssthresh, window->cwnd);
	state->owed = 0;
	state->reduced = 0;
}

static __always_inline void wl_auto_cong_control(struct sock *sk, struct wl_auto_state *state, int flag, const struct rate_sample *sample)
{
	struct wl_sender *sender = bpf_sk_storage_get(&wl_senders, sk, 0, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 last_ack = state->last_ack, delivered = tp->delivered - state->delivered, lost, unnumbered;
	u8 ca_state = wl_ca_state(sk);
	int advances = wl_after(tp->snd_una, state->una), marked = state->marked || flag & WL_FLAG_ECE;
	struct wl_window window;
	struct wl_ack ack = wl_ack_now(tp);
	struct wl_news news = { 0 };

	state->last_ack = ack.now;
	state->delivered = tp->delivered;
	state->una = tp->snd_una;
	state->marked = 0;
	state->acking = 0;
	state->unsent = 0;
	if (sender && delivered && !wl_deliver(sk, sender))
		sender = NULL;
	if (sender) {
		wl_accepted_delivered(&sender->accepted, delivered, tp->snd_cwnd);
		wl_pass(sender, tp, ack.now - last_ack);
	}
	lost = wl_auto_newly_lost(state, tp);
	unnumbered = wl_auto_unnumbered(state, sender, tp);
	ack.acked = delivered;
	ack.delivered = delivered;
	ack.delay = sample->rtt_us;
	ack.limited = wl_was_limited(tp, ca_state, sample->prior_in_flight + delivered);
	if (ca_state == TCP_CA_Loss) {
		if (wl_forgive(tp, &state->aware, last_ack, advances, state->before))
			wl_count(sk, wl_counts_timeouts_kept);
		state->tried = wl_number(sender);
		ack.limited = 1;
	} else {
		wl_auto_learn(state, sender, tp, lost, unnumbered, sample->prior_delivered);
	}
	news.rate = sample->delivered > 0 && sample->interval_us > 0 ? wl_rate(sample->delivered, sample->interval_us) : 0;
	news.total = tp->delivered;
	news.prior = sample->prior_delivered;
	news.app_limited = sample->is_app_limited;
	news.flight = wl_min(tp->snd_cwnd, tp->packets_out + delivered);
	news.burst = wl_auto_burst(sk, state);
	news.marked = marked;
	window = wl_window_of(tp);
	if (!state->owed && ca_state != TCP_CA_Loss)
		state->before = window;
	if (wl_auto_ack(&state->control, &window, &ack, &news)) {
		state->answered = tp->delivered;
		// Reports explain what has numbers.
		state->owed = !marked && !unnumbered && wl_number(sender) != state->cut_after;
		state->cut_at = ack.now;
		state->reduced = 1;
	}
	wl_auto_restore(sk, state, sender, &window);
	wl_set_window(tp, window);
	wl_auto_keep_margin(sk, state);
	wl_auto_pace(sk, state, ack.delay);
}

// Without memory, by NewReno's rules.
static __always_inline void wl_spare_cong_control(struct sock *sk, const struct rate_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_window window = wl_window_of(tp);
	struct wl_ack ack = wl_ack_now(tp);

	ack.acked = sample->acked_sacked;
	ack.limited = wl_is_limited(tp);
	ack.in_recovery = wl_ca_state(sk) == TCP_CA_Recovery || wl_ca_state(sk) == TCP_CA_CWR;
	if (ack.in_recovery)
		window.cwnd = wl_min(window.cwnd, window.ssthresh);
	wl_newreno_grow(wl_spare(sk), &window, &ack);
	wl_set_window(tp, window);
	wl_auto_pace(sk, NULL, 0);
}

SEC("struct_ops")
void BPF_PROG(auto_cong_control, struct sock *sk, u32 una, int flag, const struct rate_sample *sample)
{
	struct wl_auto_state *state = wl_auto_of(sk);

	if (!state)
		wl_spare_cong_control(sk, sample);
	else if (wl_is_answered(&state->opening))
		wl_auto_answered(state, tcp_sk(sk));
	else
		wl_auto_cong_control(sk, state, flag, sample);
}

SEC("struct_ops")
u32 BPF_PROG(auto_undo_cwnd, struct sock *sk)
{
	struct wl_auto_state *state = wl_auto_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (state) {
		wl_count(sk, wl_counts_undone);
		wl_cubic_undo(&state->control.cubic);
		state->owed = 0;
	}
	return wl_undone(tp);
}

SEC("struct_ops")
u32 BPF_PROG(auto_min_tso_segs, struct sock *sk)
{
	return wl_auto_least_burst(wl_auto_of(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops wl_auto = {
	.name = "wl_auto",
	.init = (void *)auto_init,
	.release = (void *)auto_release,
	.ssthresh = (void *)auto_ssthresh,
	.set_state = (void *)auto_set_state,
	.in_ack_event = (void *)auto_in_ack_event,
	.cwnd_event = (void *)auto_cwnd_event,
	.cong_control = (void *)auto_cong_control,
	.undo_cwnd = (void *)auto_undo_cwnd,
	.min_tso_segs = (void *)auto_min_tso_segs,
	.sndbuf_expand = (void *)checksum_sndbuf_expand,
};
