// SPDX-License-Identifier: (MIT OR Apache-2.0)
// wl_newreno: RFC 5681's window on the kernel's own recovery. It takes every loss for congestion: the baseline that goes through the
// same hooks as the controls that do not.

SEC("struct_ops")
void BPF_PROG(newreno_init, struct sock *sk)
{
	wl_begin(sk);
}

SEC("struct_ops")
u32 BPF_PROG(newreno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(newreno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(newreno_set_state, struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Recovery)
		wl_count(sk, wl_counts_losses);
	else if (new_state == TCP_CA_Loss)
		wl_count(sk, wl_counts_timeouts);
}

SEC("struct_ops")
u32 BPF_PROG(newreno_undo_cwnd, struct sock *sk)
{
	wl_count(sk, wl_counts_undone);
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops wl_newreno = {
	.name = "wl_newreno",
	.init = (void *)newreno_init,
	.ssthresh = (void *)newreno_ssthresh,
	.cong_avoid = (void *)newreno_cong_avoid,
	.set_state = (void *)newreno_set_state,
	.undo_cwnd = (void *)newreno_undo_cwnd,
};
