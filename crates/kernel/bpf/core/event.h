// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What an integer core is told and what it answers. Plain C11: the same text is compiled for the kernel's BPF machine and for the host.
//
// Windows and amounts of data are counted in full segments, times in microseconds on a clock that wraps, and fractions in 1/65536.
#ifndef WHYLOSS_CORE_EVENT_H
#define WHYLOSS_CORE_EVENT_H

#ifndef WHYLOSS_KERNEL_H
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#define WL_CORE static inline __attribute__((always_inline, unused))
#define WL_ONE 65536U

// A function that the verifier looks at once, whoever calls it: for what has many ways through it. Its pointers are never NULL.
#ifdef __bpf__
#define WL_STAGE __attribute__((noinline))
#define WL_GIVEN __attribute__((btf_decl_tag("arg:nonnull")))
#else
#define WL_STAGE static inline __attribute__((unused))
#define WL_GIVEN
#endif

enum wl_cause { WL_UNKNOWN, WL_CONGESTION, WL_CORRUPTION };

// Congestion window and slow-start threshold in segments.
struct wl_window {
	u32 cwnd;
	u32 ssthresh;
};

// An acknowledgement, told before any loss that it reveals is judged.
struct wl_ack {
	u32 now;
	u32 una; // SND.UNA and SND.NXT after it
	u32 nxt;
	u32 cwnd; // window when it arrived
	u32 acked; // segments that it is to grow the window for
	u32 delivered; // segments newly delivered, cumulatively or selectively
	s32 delay; // round trip of the newest segment newly delivered; below 0 if retransmissions make it ambiguous
	u32 srtt; // 0 before the first sample
	u32 tsval; // timestamp of the receiver, if stamped
	u8 stamped;
	u8 duplicate; // advances nothing
	u8 in_recovery; // fast recovery holds the window
	u8 limited; // the window was what limited the sender
};

// A segment is taken for lost.
struct wl_loss {
	u32 now;
	u32 cwnd; // window before any reaction
	u32 flight; // segments outstanding, no more than the window
	u32 srtt;
	u8 timeout; // by the retransmission timer
	u8 first; // of its episode
};

struct wl_verdict {
	u32 cause;
	u32 score; // from certain congestion, 0, to certain corruption, WL_ONE; 0 without evidence
};

WL_CORE u32 wl_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

WL_CORE u32 wl_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

// Whether sequence number or time `a` comes after `b`.
WL_CORE int wl_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

// a / b in units of 1 / WL_ONE, no more than WL_ONE; 0 if b is.
WL_CORE u32 wl_share(u64 a, u64 b)
{
	if (!b)
		return 0;
	return a >= b ? WL_ONE : (u32)((a << 16) / b);
}

WL_CORE struct wl_verdict wl_decided(int corruption, u32 score)
{
	return (struct wl_verdict){ corruption ? WL_CORRUPTION : WL_CONGESTION, score };
}

// No threshold lies below two segments (RFC 5681, eq. 4).
WL_CORE u32 wl_threshold(u32 segments)
{
	return wl_max(segments, 2);
}

#endif
