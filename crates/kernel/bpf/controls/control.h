// SPDX-License-Identifier: (MIT OR Apache-2.0)
// One control: the core WL_NAME on the kernel's events. Included once for each.
//
// Order of the kernel's calls for an acknowledgement: in_ack_event and pkts_acked, then ssthresh and set_state if it reveals a loss,
// then cong_control. With cong_control the window is the control's alone: the kernel neither reduces it in recovery nor restores it.

#define WL_PASTE_(a, b, c) a##b##c
#define WL_PASTE(a, b, c) WL_PASTE_(a, b, c)
#define WL_PROGRAM(function) WL_PASTE(WL_NAME, _, function)
#define WL_THE_CORE(function) WL_PASTE(wl_, WL_NAME, _core##function)
#define WL_STATE WL_PASTE(wl_, WL_NAME, _state)

struct WL_STATE {
	struct wl_flow flow;
	struct WL_THE_CORE() core;
};
_Static_assert(sizeof(struct WL_STATE) <= WL_PRIVATE_SIZE, "icsk_ca_priv has no more");

static __always_inline u32 WL_PROGRAM(judge)(struct sock *sk, struct WL_STATE *state, const struct wl_loss *loss)
{
	int trusted = wl_is_trusted(sk);
	u32 cause = WL_THE_CORE(_judge)(&state->core, loss).cause;

	// What a router says of congestion counts more than what we suspect.
	if (state->flow.marked)
		return WL_CONGESTION;
	if (cause == WL_CORRUPTION && !trusted) {
		wl_count(sk, wl_counts_overruled);
		return WL_CONGESTION;
	}
	return cause;
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(init), struct sock *sk)
{
	struct WL_STATE *state = wl_private(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	wl_begin(sk);
	state->flow = (struct wl_flow){ 0 };
	state->flow.delivered = tp->delivered;
	state->flow.lost = tp->lost;
	state->flow.last_ack = wl_now(tp);
	WL_THE_CORE(_init)(&state->core, WL_UNLIMITED, WL_UNLIMITED);
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(in_ack_event), struct sock *sk, u32 flags)
{
	struct WL_STATE *state = wl_private(sk);

	state->flow.marked = !!(flags & CA_ACK_ECE);
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(pkts_acked), struct sock *sk, const struct ack_sample *sample)
{
	struct WL_STATE *state = wl_private(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_ack ack = wl_ack_now(tp);
	u8 ca_state = wl_ca_state(sk);

	ack.delivered = tp->delivered - state->flow.delivered;
	ack.acked = sample->pkts_acked;
	ack.delay = wl_delay_sample(ca_state, sample->rtt_us);
	ack.stamped = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp);
	ack.tsval = tp->rx_opt.rcv_tsval;
	ack.duplicate = !sample->pkts_acked;
	ack.in_recovery = ca_state == TCP_CA_Recovery || ca_state == TCP_CA_CWR;
	state->flow.delivered = tp->delivered;
	state->flow.advanced = !!sample->pkts_acked;
	state->flow.acking = 1;
	WL_THE_CORE(_ack)(&state->core, &ack);
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(cwnd_event), struct sock *sk, enum tcp_ca_event event)
{
	struct WL_STATE *state = wl_private(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!wl_resumes(tp, event))
		return;
	wl_restart(sk, tp, state->flow.last_ack);
	state->flow.last_ack = wl_now(tp);
	WL_THE_CORE(_resume)(&state->core, state->flow.last_ack);
}

SEC("struct_ops")
u32 WL_BPF_PROG(WL_PROGRAM(ssthresh), struct sock *sk)
{
	struct WL_STATE *state = wl_private(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_loss loss = wl_loss_now(tp, tp->snd_cwnd);
	u32 threshold = 0;

	loss.first = 1;
	state->flow.cause = WL_PROGRAM(judge)(sk, state, &loss);
	state->flow.since = tp->delivered;
	state->flow.asked = 1;
	state->flow.climbing = tp->snd_cwnd < tp->snd_ssthresh;
	WL_THE_CORE(_save)(&state->core);
	if (state->flow.cause == WL_CORRUPTION)
		threshold = WL_THE_CORE(_corrupted)(&state->core, &loss);
	else
		threshold = WL_THE_CORE(_threshold)(&state->core, &loss);
	state->flow.reduced = !!threshold;
	return threshold ? threshold : wl_max(tp->snd_ssthresh, 2);
}

// The retransmission timer expired; the kernel has collapsed the window. It comes back when an acknowledgement shows that the path lives.
static __always_inline void WL_PROGRAM(time_out)(struct sock *sk, struct WL_STATE *state, u8 before)
{
	struct wl_flow *flow = &state->flow;
	struct tcp_sock *tp = tcp_sk(sk);
	int repairing = before == TCP_CA_Loss && !flow->asked;
	u32 cwnd = flow->reduced && !flow->asked ? wl_target(tp) : tp->prior_cwnd;
	struct wl_loss loss = wl_loss_now(tp, cwnd);

	loss.timeout = 1;
	loss.first = 1;
	flow->cause = WL_PROGRAM(judge)(sk, state, &loss);
	wl_expired(sk, &flow->aware, flow->last_ack, repairing, flow->cause);
	wl_count(sk, wl_counts_timeouts);
	if (repairing)
		return;
	flow->since = cwnd;
	flow->climbing = flow->climbing && flow->asked;
	if (!flow->reduced) {
		if (!flow->asked)
			WL_THE_CORE(_save)(&state->core);
		tp->snd_ssthresh = WL_THE_CORE(_threshold)(&state->core, &loss);
		flow->reduced = 1;
	}
	WL_THE_CORE(_timeout)(&state->core);
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(set_state), struct sock *sk, u8 new_state)
{
	struct WL_STATE *state = wl_private(sk);
	struct wl_flow *flow = &state->flow;
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_loss loss;
	u8 before = wl_ca_state(sk);

	if (new_state == TCP_CA_Loss && !wl_is_refit(tp, before)) {
		WL_PROGRAM(time_out)(sk, state, before);
		flow->holding = 0;
	} else if (new_state == TCP_CA_Recovery || (new_state == TCP_CA_CWR && flow->acking && !flow->marked)) {
		// The kernel passes through CWR when a tail loss probe has repaired a loss before anything else noticed.
		wl_count(sk, wl_counts_losses);
		WL_THE_CORE(_episode)(&state->core, wl_now(tp));
		// The timer of RACK: ssthresh() has judged what it found.
		if (flow->asked && !flow->acking)
			flow->lost = tp->lost;
		if (flow->asked) {
			flow->judged = flow->acking;
			flow->holding = flow->reduced;
			if (flow->cause == WL_CORRUPTION)
				wl_count(sk, wl_counts_kept);
		}
	} else if (new_state == TCP_CA_CWR) {
		// A router's mark, or the host's own queue.
		if (!flow->reduced || flow->cause == WL_CORRUPTION) {
			loss = wl_loss_now(tp, tp->snd_cwnd);
			tp->snd_ssthresh = WL_THE_CORE(_threshold)(&state->core, &loss);
		}
		flow->cause = WL_CONGESTION;
		flow->reduced = 1;
		flow->holding = 1;
	} else if (flow->holding) {
		if (!flow->undone)
			wl_set_cwnd(tp, wl_target(tp));
		flow->holding = 0;
	}
	flow->asked = 0;
	flow->undone = 0;
}

// In recovery: how far the window may be; `lost` says how many segments were taken for lost since the latest acknowledgement. Returns whether it
// may grow.
static __always_inline int WL_PROGRAM(recover)(struct sock *sk, struct WL_STATE *state, u32 newly, u16 lost)
{
	struct wl_flow *flow = &state->flow;
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_loss loss = wl_loss_now(tp, tp->snd_cwnd);

	// A loss after others that were forgiven is judged by itself; one that is congestion reduces the window.
	if (!flow->reduced && (lost > flow->judged || flow->marked)) {
		u32 cause = WL_PROGRAM(judge)(sk, state, &loss);

		if (cause != WL_CORRUPTION) {
			WL_THE_CORE(_save)(&state->core);
			tp->snd_ssthresh = WL_THE_CORE(_threshold)(&state->core, &loss);
			flow->cause = cause;
			flow->reduced = 1;
			flow->holding = 1;
			wl_count(sk, wl_counts_cut_later);
		}
	}
	if (flow->holding && wl_hold(tp, flow, newly, lost) && flow->cause == WL_CORRUPTION) {
		// Nothing speaks for congestion: the window that was arrived at grows while the repair goes on.
		wl_set_cwnd(tp, wl_target(tp));
		flow->holding = 0;
	}
	return !flow->holding;
}

SEC("struct_ops")
void WL_BPF_PROG(WL_PROGRAM(cong_control), struct sock *sk, u32 acknowledged, int flag, const struct rate_sample *sample)
{
	struct WL_STATE *state = wl_private(sk);
	struct wl_flow *flow = &state->flow;
	struct tcp_sock *tp = tcp_sk(sk);
	struct wl_ack ack = wl_ack_now(tp);
	struct wl_window window;
	u8 ca_state = wl_ca_state(sk);
	u16 lost = wl_newly_lost(flow, tp);

	ack.acked = sample->acked_sacked;
	if (ca_state == TCP_CA_Recovery || ca_state == TCP_CA_CWR) {
		ack.in_recovery = !WL_PROGRAM(recover)(sk, state, sample->acked_sacked, lost);
		ack.limited = wl_is_limited(tp);
	} else if (ca_state == TCP_CA_Loss) {
		window = (struct wl_window){ flow->since, flow->climbing ? tp->prior_ssthresh : flow->since };
		if (wl_forgive(tp, &flow->aware, flow->last_ack, flow->advanced, window)) {
			WL_THE_CORE(_undo)(&state->core);
			wl_count(sk, wl_counts_timeouts_kept);
		}
		ack.limited = 1;
	} else {
		ack.limited = wl_is_limited(tp);
		if (!flow->advanced)
			ack.acked = 0;
	}
	window = wl_window_of(tp);
	WL_THE_CORE(_grow)(&state->core, &window, &ack);
	if (window.cwnd != tp->snd_cwnd)
		wl_set_cwnd(tp, window.cwnd);
	wl_set_rate(sk, tp);
	flow->last_ack = ack.now;
	flow->advanced = 0;
	flow->acking = 0;
	flow->judged = 0;
}

SEC("struct_ops")
u32 WL_BPF_PROG(WL_PROGRAM(undo_cwnd), struct sock *sk)
{
	struct WL_STATE *state = wl_private(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	state->flow.undone = 1;
	if (state->flow.reduced) {
		WL_THE_CORE(_undo)(&state->core);
		wl_count(sk, wl_counts_undone);
	}
	state->flow.reduced = 0;
	return wl_undone(tp);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops WL_PASTE(wl_, WL_NAME, ) = {
	.name = WL_KERNEL_NAME,
	.init = (void *)WL_PROGRAM(init),
	.in_ack_event = (void *)WL_PROGRAM(in_ack_event),
	.pkts_acked = (void *)WL_PROGRAM(pkts_acked),
	.cwnd_event = (void *)WL_PROGRAM(cwnd_event),
	.ssthresh = (void *)WL_PROGRAM(ssthresh),
	.set_state = (void *)WL_PROGRAM(set_state),
	.cong_control = (void *)WL_PROGRAM(cong_control),
	.undo_cwnd = (void *)WL_PROGRAM(undo_cwnd),
};

#undef WL_PASTE_
#undef WL_PASTE
#undef WL_PROGRAM
#undef WL_THE_CORE
#undef WL_STATE
#undef WL_NAME
#undef WL_KERNEL_NAME
