// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The retransmission timer of wl_auto, before its connections are established. The kernel takes its least timeout, 200 ms, for RTTVAR at the first sample
// of the round trip, and lets that come down by a quarter a round trip. Short transfers end before it has.

// What the retransmission timeout exceeds SRTT by at least, in microseconds, unless SRTT is more: a lone segment may be acknowledged 40 ms late, and a
// timer of the receiver's may tick every 10 ms. It is set in such steps, and to no more than it was, or than the kernel's default.
#define WL_AUTO_MARGIN 60000
#define WL_AUTO_MARGIN_STEP 20000
#define WL_AUTO_MARGIN_MOST 200000

// The name of wl_auto in the kernel, behind its prefix, which may be another.
#define WL_AUTO_NAME_LEN 6
static __always_inline int wl_is_auto(const char *name)
{
	return name[0] == '_' && name[1] == 'a' && name[2] == 'u' && name[3] == 't' && name[4] == 'o' && !name[5];
}

// Connections that a listener accepts have its least timeout, and its control unless a rule chooses another.
__noinline int wl_begin_timer(struct bpf_sock_ops *ops)
{
	char name[TCP_CA_NAME_MAX] = {};
	u32 margin = WL_AUTO_MARGIN, i;

	if (bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
#pragma unroll
	for (i = 0; i + WL_AUTO_NAME_LEN <= sizeof(name); i++)
		if (wl_is_auto(name + i))
			bpf_setsockopt(ops, SOL_TCP, TCP_BPF_RTO_MIN, &margin, sizeof(margin));
	return 0;
}
