// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What iterators over TCP sockets share. `iter/tcp` sees the sockets of one network namespace, and locks each meanwhile; `iter/task_file` sees
// those that a process holds, in whatever namespace, and a socket as often as there are descriptors that lead to it.
#ifndef WHYLOSS_SOCKETS_H
#define WHYLOSS_SOCKETS_H

#include "kernel.h"

// NULL for a socket that waits for its end (TIME_WAIT) or for the handshake's end, and when the iterator ends.
static __always_inline struct tcp_sock *wl_tcp_of_namespace(const struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;

	return common ? bpf_skc_to_tcp_sock(common) : NULL;
}

// NULL for a file that is no TCP socket, and when the iterator ends.
static __always_inline struct tcp_sock *wl_tcp_of_file(const struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = socket ? socket->sk : NULL;

	return sk ? bpf_skc_to_tcp_sock(sk) : NULL;
}

#endif
