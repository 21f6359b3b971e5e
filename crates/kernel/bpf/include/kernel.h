// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What the programs read and write of the kernel's own structures. Offsets are those of the running kernel (CO-RE): a structure here
// has only the members that are used, in any order.
#ifndef WHYLOSS_KERNEL_H
#define WHYLOSS_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

enum { AF_INET = 2, AF_INET6 = 10, SOL_TCP = 6, TCP_CONGESTION = 13, TCP_SAVE_SYN = 27, TCP_CA_NAME_MAX = 16, TASK_COMM_LEN = 16 };

enum tcp_state { TCP_ESTABLISHED = 1, TCP_SYN_SENT, TCP_SYN_RECV, TCP_CLOSE = 7, TCP_LISTEN = 10 };

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

// Of in_ack_event: the acknowledgement carries the ECN echo.
#define CA_ACK_ECE 4

enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

// The octets of icsk_ca_priv: what a control may keep for each connection.
#define WL_PRIVATE_SIZE 104

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	u8 sysctl_tcp_slow_start_after_idle;
	int sysctl_tcp_rto_min_us; // from 6.11 on
	const struct tcp_congestion_ops *tcp_congestion_control;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
	u64 net_cookie;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct {
		struct net *net;
	} skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct request_sock {
	struct sock_common __req_common;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	u32 sk_pacing_status;
	unsigned long sk_max_pacing_rate;
	struct sock_cgroup_data sk_cgrp_data;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct {
		u16 rcv_mss;
	} icsk_ack;
	u32 icsk_rto;
	u32 icsk_rto_min;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state : 5;
	u8 icsk_ca_initialized : 1;
	u8 icsk_ca_setsockopt : 1;
	u8 icsk_ca_dst_locked : 1;
	u8 icsk_retransmits;
	u8 icsk_pending;
	u8 icsk_backoff;
	u64 icsk_ca_priv[WL_PRIVATE_SIZE / 8];
};

struct tcp_options_received {
	u32 ts_recent;
	u32 rcv_tsval;
	u32 rcv_tsecr;
	u16 saw_tstamp : 1;
	u16 tstamp_ok : 1;
	u16 dsack : 1;
	u16 wscale_ok : 1;
	u16 sack_ok : 3;
	u16 smc_ok : 1;
	u16 snd_wscale : 4;
	u16 rcv_wscale : 4;
	u8 num_sacks;
	u16 mss_clamp;
};

struct tcp_sack_block {
	u32 start_seq;
	u32 end_seq;
};

struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	u64 mstamp;
	u32 rtt_us;
	u32 end_seq;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_rack rack;
	u16 total_rto;
	u64 bytes_received;
	u32 tlp_high_seq;
	u8 tcp_usec_ts : 1;
	u32 tsoffset;
	u16 tcp_header_len;
	struct minmax rtt_min;
	u32 data_segs_in;
	u32 rcv_wup;
	struct tcp_sack_block selective_acks[4];
	struct tcp_sack_block recv_sack_cache[4];
	u32 reordering;
	u32 snd_wnd;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 prr_out;
	u32 lost_out;
	u32 sacked_out;
	u8 is_cwnd_limited : 1;
	u32 retrans_out;
	u32 lost;
	u32 snd_ssthresh;
	u64 bytes_sent;
	u32 data_segs_out;
	u32 mdev_us;
	u32 rttvar_us;
	u8 frto : 1;
	u8 ecn_flags;
	u64 tcp_mstamp;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_una;
	u32 srtt_us;
	u32 packets_out;
	u32 delivered;
	u32 delivered_ce;
	u32 app_limited;
	u32 rcv_wnd;
	struct {
		u32 rtt_us;
	} rcv_rtt_est;
	struct tcp_options_received rx_opt;
	u32 max_packets_out;
	u64 bytes_acked;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_cwnd_stamp;
	u32 prior_cwnd;
	u32 prr_delivered;
	u32 prior_ssthresh;
	u32 high_seq;
	u32 undo_marker;
	int undo_retrans;
	u64 bytes_retrans;
	u32 total_retrans;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	u32 snd_interval_us;
	u32 rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_retrans;
	bool is_ack_delayed;
};

struct net_device {
	struct {
		struct net *net;
	} nd_net;
};

struct dst_entry {
	struct net_device *dev;
};

struct sk_buff {
	unsigned char *head;
	unsigned char *data;
	struct sock *sk;
	struct net_device *dev;
	unsigned long _skb_refdst;
	unsigned int len;
	u16 transport_header;
	u16 network_header;
	u8 ip_summed : 2;
};

struct socket {
	struct sock *sk;
};

struct task_struct {
	int tgid;
	struct task_struct *group_leader;
	char comm[TASK_COMM_LEN];
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};

#pragma clang attribute pop

// A control as it is registered. Members go to their places by name; the loader finds `name` because it stands first.
struct tcp_congestion_ops {
	char name[TCP_CA_NAME_MAX];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *sample);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

// The verifier knows the type of the `sk` that a struct_ops program gets and lets it be seen as what it stands at the start of.
static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

// Whether the kernel enters TCP_CA_Loss from `before` because a smaller path MTU makes segments to be sent again, which were not lost. Then it begins
// no episode that could be taken back. Nor does a timeout that continues a reduction, but there no timer is pending any more.
static __always_inline int wl_is_refit(const struct tcp_sock *tp, u8 before)
{
	return !tp->undo_marker && (before <= TCP_CA_Disorder || tp->inet_conn.icsk_pending);
}

// Where a control keeps its state for one connection: at most WL_PRIVATE_SIZE octets, zeroed when the connection begins.
static __always_inline void *wl_private(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_priv;
}

#endif
