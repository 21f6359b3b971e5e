// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The retransmission timer of wl_auto, before its connections are established. The kernel takes its least timeout, 200 ms, for RTTVAR at the first sample
// of the round trip, and lets that come down by a quarter a round trip. Short transfers end before it has.

// It is set in such steps, and to no more than it was, or than the kernel's default.
#define WL_AUTO_MARGIN_STEP 20000
#define WL_AUTO_MARGIN_MOST WL_RTO_MIN

// Connections that a listener accepts have its least timeout, and its control unless a rule chooses another.
__noinline int wl_begin_timer(struct bpf_sock_ops *ops)
{
	char name[TCP_CA_NAME_MAX] = {};
	struct bpf_sock *sk = ops->sk;
	struct wl_control *control;
	struct tcp_sock *tp;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	wl_control_of((struct sock *)tp, name);
	control = bpf_map_lookup_elem(&wl_controls, name);
	if (control && control->sets_rto_min)
		wl_shorten_rto_min(ops, inet_csk((struct sock *)tp));
	return 0;
}
