// SPDX-License-Identifier: (MIT OR Apache-2.0)
// A loop that the verifier looks at once instead of round by round: for bodies with many ways through them.
#ifndef WHYLOSS_CORE_LOOP_H
#define WHYLOSS_CORE_LOOP_H

#include "core/event.h"

#define WL_STEP static __attribute__((unused)) long

// Calls `step(round, context)` up to `rounds` times, until it answers 1.
#ifdef __bpf__
#define WL_LOOP(rounds, step, context) bpf_loop(rounds, step, context, 0)
#else
#define WL_LOOP(rounds, step, context)                             \
	do {                                                       \
		u32 wl_round;                                      \
		for (wl_round = 0; wl_round < (rounds); wl_round++) \
			if (step(wl_round, context))               \
				break;                             \
	} while (0)
#endif

#endif
