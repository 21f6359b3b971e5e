// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What the observer keeps for a connection, and how the differentiators listen to it: the connection has any congestion control and
// knows nothing of them.
//
// The tracepoint of arriving segments comes before the kernel looks at the segment. So what is read there is what the *previous* one
// did; what reveals a loss is read when the loss is declared, before it is judged.
#ifndef WHYLOSS_TOP_WATCHED_H
#define WHYLOSS_TOP_WATCHED_H

#include "top/row.h"

#include "core/jtcp.h"
#include "core/ldaeq.h"
#include "core/ncpld.h"
#include "core/spike.h"
#include "core/veno.h"

// At most this many acknowledgements a round trip are looked at, and none sooner after another than this many microseconds: at full speed the
// observer must cost next to nothing, and an estimate gains little from more.
#define WL_LOOKS_A_ROUND_TRIP 16
#define WL_LOOKS_APART 64

struct wl_watched {
	u64 since_ns;
	u32 last_ack; // when an acknowledgement was, in microseconds
	u64 rack; // when the newest segment delivered had left
	u32 delivered;
	u32 una;
	u32 pid;
	u32 timeouts; // for kernels that do not count them
	u32 probed; // losses that a tail loss probe repaired
	u64 reduced_at; // when the state CWR began
	char process[TASK_COMM_LEN];
	u8 whole; // seen from the beginning of the connection
	u8 ca_state;
	u8 stamped;
	u8 in_episode;
	u8 by_timeout;
	u8 cause; // of the episode
	u32 agreement;
	u32 score;
	u32 lost; // tp->lost where the episode began
	u32 lost_latest; // and at the latest acknowledgement
	struct wl_usage usage;
	struct wl_spike spike;
	struct wl_trips trips;
	struct wl_jtcp jtcp;
	struct wl_ncpld ncpld;
	struct wl_veno veno;
	struct wl_tally tallies[WL_CAUSES];
	struct wl_said said[WL_DIFFERENTIATORS];
};

static __always_inline void wl_watch_begin(struct wl_watched *watched, const struct tcp_sock *tp, u8 ca_state, u8 stamped)
{
	__builtin_memset(watched, 0, sizeof(*watched));
	watched->since_ns = bpf_ktime_get_ns();
	watched->rack = tp->rack.mstamp;
	watched->delivered = tp->delivered;
	watched->una = tp->snd_una;
	watched->lost = watched->lost_latest = tp->lost;
	watched->ca_state = ca_state;
	watched->stamped = stamped;
}

// Tells the differentiators what has been acknowledged since they were last told.
static __always_inline void wl_watch_ack(struct wl_watched *watched, const struct tcp_sock *tp)
{
	u32 delivered = tp->delivered - watched->delivered;
	u64 rack = tp->rack.mstamp;
	struct wl_ack ack = { 0 };

	watched->lost_latest = tp->lost;
	if (!delivered)
		return;
	ack.una = tp->snd_una;
	ack.nxt = tp->snd_nxt;
	ack.cwnd = tp->snd_cwnd;
	ack.delivered = delivered;
	ack.srtt = tp->srtt_us >> 3;
	ack.tsval = tp->rx_opt.rcv_tsval;
	ack.stamped = watched->stamped;
	ack.duplicate = ack.una == watched->una;
	ack.in_recovery = watched->ca_state == TCP_CA_Recovery || watched->ca_state == TCP_CA_CWR;
	ack.now = (u32)tp->tcp_mstamp;
	ack.delay = -1;
	if (rack != watched->rack) {
		// In recovery only what was first sent since it began is no retransmission.
		if (watched->ca_state < TCP_CA_Recovery || wl_after(tp->rack.end_seq, tp->high_seq))
			ack.delay = (s32)tp->rack.rtt_us;
		ack.now = (u32)rack + tp->rack.rtt_us;
	}
	watched->last_ack = (u32)tp->tcp_mstamp;
	watched->delivered += delivered;
	watched->una = ack.una;
	watched->rack = rack;

	wl_usage_ack(&watched->usage, &ack);
	wl_spike_ack(&watched->spike, &watched->trips, &ack);
	wl_jtcp_ack(&watched->jtcp, &ack);
	wl_ncpld_ack(&watched->ncpld, &ack);
	wl_veno_ack(&watched->veno, &ack);
}

// Whether enough time has passed to tell them what has been acknowledged.
static __always_inline int wl_watch_due(const struct wl_watched *watched, const struct tcp_sock *tp)
{
	u32 apart = tp->srtt_us / (8 * WL_LOOKS_A_ROUND_TRIP);

	return (u32)tp->tcp_mstamp - watched->last_ack >= wl_max(apart, WL_LOOKS_APART);
}

struct wl_panel {
	u32 judging; // differentiators that could tell
	u32 corruption; // of these
	u32 score; // sum
};

static __always_inline void wl_add_verdict(struct wl_panel *panel, struct wl_said *said, struct wl_verdict verdict)
{
	said->verdicts[verdict.cause]++;
	if (verdict.cause == WL_UNKNOWN)
		return;
	said->score += verdict.score;
	panel->judging++;
	panel->corruption += verdict.cause == WL_CORRUPTION;
	panel->score += verdict.score;
}

// An episode of losses begins. The cause is what most differentiators say; the mean of the scores decides between equals.
static __always_inline void wl_watch_loss(struct wl_watched *watched, const struct tcp_sock *tp, u32 cwnd, u8 timeout)
{
	struct wl_panel panel = { 0 };
	struct wl_loss loss = {
		.now = (u32)tp->tcp_mstamp,
		.cwnd = cwnd,
		.srtt = tp->srtt_us >> 3,
		.timeout = timeout,
		.first = 1,
	};
	int corruption;
	u32 agreeing;

	loss.flight = wl_min(tp->packets_out, loss.cwnd);
	wl_add_verdict(&panel, &watched->said[WL_LDA_EQ], wl_ldaeq_judge(&watched->usage));
	wl_add_verdict(&panel, &watched->said[WL_SPIKE], wl_spike_judge(&watched->spike, &watched->trips));
	wl_add_verdict(&panel, &watched->said[WL_JTCP], wl_jtcp_judge(&watched->jtcp, &loss));
	wl_add_verdict(&panel, &watched->said[WL_NCPLD], wl_ncpld_judge(&watched->ncpld));
	wl_add_verdict(&panel, &watched->said[WL_VENO], wl_veno_judge(&watched->veno));
	if (!timeout)
		wl_jtcp_episode(&watched->jtcp, loss.now);

	watched->in_episode = 1;
	watched->by_timeout = timeout;
	watched->cause = WL_UNKNOWN;
	watched->agreement = watched->score = 0;
	if (!panel.judging)
		return;
	corruption = 2 * panel.corruption == panel.judging ? 2 * panel.score >= panel.judging * WL_ONE : 2 * panel.corruption > panel.judging;
	agreeing = corruption ? panel.corruption : panel.judging - panel.corruption;
	watched->cause = corruption ? WL_CORRUPTION : WL_CONGESTION;
	watched->agreement = wl_share(agreeing, panel.judging);
	watched->score = panel.score / panel.judging;
}

// The episode is over: what was taken for lost in it, up to `lost`, has its cause.
static __always_inline void wl_watch_end(struct wl_watched *watched, u32 lost, int spurious)
{
	struct wl_tally *tally = &watched->tallies[(spurious ? WL_SPURIOUS : watched->cause) & (WL_CAUSES - 1)];

	if (watched->in_episode) {
		tally->episodes++;
		tally->losses += lost - watched->lost;
		tally->agreement += watched->agreement;
		tally->score += watched->score;
	}
	watched->in_episode = 0;
	watched->lost = lost;
}

// A tail loss probe has repaired a loss before anything else noticed: the kernel answers it, but does not count it among the lost.
static __always_inline void wl_watch_probe(struct wl_watched *watched, const struct tcp_sock *tp)
{
	wl_watch_loss(watched, tp, tp->prior_cwnd, 0);
	watched->lost = tp->lost - 1;
	watched->probed++;
	wl_watch_end(watched, tp->lost, 0);
}

// The kernel is about to set the state of congestion avoidance.
static __always_inline void wl_watch_state(struct wl_watched *watched, const struct tcp_sock *tp, u8 ca_state)
{
	u8 before = watched->ca_state;

	if (ca_state == TCP_CA_Loss) {
		int timeout = !wl_is_refit(tp, before);

		watched->timeouts += timeout;
		if (before != TCP_CA_Loss && timeout) {
			wl_watch_end(watched, watched->lost_latest, 0);
			wl_watch_ack(watched, tp);
			wl_watch_loss(watched, tp, tp->prior_cwnd, 1);
		} else if (!timeout) {
			// The kernel takes the mark away here, too, and counts what it sends again among the lost.
			wl_watch_end(watched, watched->lost_latest, 0);
		}
	} else if (ca_state == TCP_CA_Recovery) {
		wl_watch_ack(watched, tp);
		if (before != TCP_CA_Recovery) {
			wl_watch_end(watched, watched->lost, 0);
			wl_watch_loss(watched, tp, tp->snd_cwnd, 0);
		}
	} else {
		wl_watch_ack(watched, tp);
		// The kernel takes the mark away when it takes a reduction back.
		wl_watch_end(watched, tp->lost, !tp->undo_marker);
		// A reduction for a mark or a full queue of the host lasts a round trip, that for a probe begins and ends with one segment.
		if (ca_state == TCP_CA_CWR)
			watched->reduced_at = tp->tcp_mstamp;
		else if (before == TCP_CA_CWR && watched->reduced_at == tp->tcp_mstamp)
			wl_watch_probe(watched, tp);
	}
	watched->ca_state = ca_state;
}

#endif
