// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What every control reads and writes of the kernel's own fields: one place for the limits that users set (SO_MAX_PACING_RATE, the clamp of
// a route's window), for the kernel's rules that a control with cong_control has to keep itself, and for timeouts.
#ifndef WHYLOSS_SOCKET_H
#define WHYLOSS_SOCKET_H

#include "counters.h"

#include "core/aware.h"
#include "core/event.h"

// As BPF_PROG, for a name that is a macro.
#define WL_BPF_PROG(name, args...) BPF_PROG(name, args)

// The timeout before the first sample, in microseconds (RFC 6298, 2.1).
#define WL_RTO_INITIAL 1000000

// The time of the event that is being handled, in microseconds.
static __always_inline u32 wl_now(const struct tcp_sock *tp)
{
	return (u32)tp->tcp_mstamp;
}

static __always_inline u8 wl_ca_state(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state);
}

// Segments in the network (`pipe` of RFC 6675, as tcp_packets_in_flight() counts it).
static __always_inline u32 wl_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

// The retransmission timeout without back-off, in microseconds. rttvar_us has the least timeout in it.
static __always_inline u32 wl_rto(const struct tcp_sock *tp)
{
	return tp->srtt_us ? (tp->srtt_us >> 3) + tp->rttvar_us : WL_RTO_INITIAL;
}

// Whether the window is what limits the sender (RFC 7661). In slow start it may grow to twice what was used of it.
static __always_inline int wl_is_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline struct wl_ack wl_ack_now(const struct tcp_sock *tp)
{
	return (struct wl_ack){
		.now = wl_now(tp),
		.una = tp->snd_una,
		.nxt = tp->snd_nxt,
		.cwnd = tp->snd_cwnd,
		.srtt = tp->srtt_us >> 3,
		.delay = -1,
	};
}

static __always_inline struct wl_window wl_window_of(const struct tcp_sock *tp)
{
	return (struct wl_window){ tp->snd_cwnd, tp->snd_ssthresh };
}

// Sets the window, no larger than the route allows (`ip route … cwnd lock`).
static __always_inline void wl_set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = wl_max(wl_min(cwnd, tp->snd_cwnd_clamp), 1);
}

static __always_inline void wl_set_window(struct tcp_sock *tp, struct wl_window window)
{
	wl_set_cwnd(tp, window.cwnd);
	tp->snd_ssthresh = window.ssthresh;
}

// The window when the kernel takes a reduction back.
static __always_inline u32 wl_undone(const struct tcp_sock *tp)
{
	return wl_max(tp->snd_cwnd, tp->prior_cwnd);
}

// Whether the first data after a pause leaves. The kernel says TX_START also when all that is outstanding is taken for lost and the first of it
// is sent again.
static __always_inline int wl_resumes(const struct tcp_sock *tp, enum tcp_ca_event event)
{
	return event == CA_EVENT_TX_START && !tp->packets_out;
}

// After a pause of more than a timeout since `last_ack` nothing is known of the path (RFC 5681, 4.1). The kernel leaves that, too, to controls
// that have cong_control.
static __always_inline void wl_restart(const struct sock *sk, struct tcp_sock *tp, u32 last_ack)
{
	if (wl_now(tp) - last_ack <= wl_rto(tp) || tp->snd_cwnd <= WL_AWARE_INITIAL)
		return;
	if (BPF_CORE_READ(sk, __sk_common.skc_net.net, ipv4.sysctl_tcp_slow_start_after_idle))
		wl_set_cwnd(tp, WL_AWARE_INITIAL);
}

// Paces by `tenths` of the window a round trip of `trip` eighths of a microsecond, as srtt_us counts, within the limit of the application
// (SO_MAX_PACING_RATE). Even if nothing paces, the rate decides how much leaves at once. What is outstanding would be too much of a window: where
// losses never end, most of it has arrived.
static __always_inline void wl_pace(struct sock *sk, const struct tcp_sock *tp, u32 trip, u32 tenths)
{
	u64 window = (u64)wl_max(tp->snd_cwnd, wl_in_flight(tp)) * tp->mss_cache, rate, most = sk->sk_max_pacing_rate;

	if (!trip)
		return;
	rate = window * tenths * 800000 / trip;
	sk->sk_pacing_rate = rate < most ? rate : most;
}

// As tcp_update_pacing_rate(), which the kernel does not call for a control with cong_control: twice the window a round trip in slow start,
// 6/5 of it else.
static __always_inline void wl_set_rate(struct sock *sk, const struct tcp_sock *tp)
{
	wl_pace(sk, tp, tp->srtt_us, tp->snd_cwnd < tp->snd_ssthresh / 2 ? 20 : 12);
}

// The retransmission timer expired for a loss of this cause; `last_ack` is when the latest acknowledgement came.
static __always_inline void wl_expired(const struct sock *sk, struct wl_aware *aware, u32 last_ack, int repairing, u32 cause)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 now = wl_now(tp);

	wl_aware_timeout(aware, now, wl_rto(tp), now - last_ack, inet_csk(sk)->icsk_retransmits + 1, repairing, cause);
}

// An acknowledgement after a timeout: gives the window of before back if the timeout is forgiven now, and says whether it was. F-RTO says
// first whether it was spurious.
static __always_inline int wl_forgive(struct tcp_sock *tp, struct wl_aware *aware, u32 last_ack, int advances, struct wl_window before)
{
	u32 now = wl_now(tp);

	if (!wl_aware_ack(aware, now, wl_rto(tp), now - last_ack, advances, !BPF_CORE_READ_BITFIELD(tp, frto)))
		return 0;
	wl_set_window(tp, wl_aware_window(wl_window_of(tp), before.cwnd, before.ssthresh, wl_in_flight(tp)));
	return 1;
}

#endif
