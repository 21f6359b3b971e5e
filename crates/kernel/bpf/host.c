// SPDX-License-Identifier: (MIT OR Apache-2.0)
// The integer cores for the host: each control's core behind one set of functions, so that Rust can run it beside its own.
#include <stddef.h>

#include "core/auto.h"
#include "core/aware.h"
#include "core/cerl.h"
#include "core/cubic.h"
#include "core/jtcp.h"
#include "core/ldaeq.h"
#include "core/ncpld.h"
#include "core/newreno.h"
#include "core/prr.h"
#include "core/spike.h"
#include "core/trust.h"
#include "core/veno.h"
#include "core/westwood.h"

struct wl_core {
	const char *name;
	size_t size;
	void (*init)(void *core, u8 limit, u8 limit_after_timeout);
	void (*ack)(void *core, const struct wl_ack *ack);
	void (*grow)(void *core, struct wl_window *window, const struct wl_ack *ack);
	struct wl_verdict (*judge)(void *core, const struct wl_loss *loss);
	void (*save)(void *core);
	// The threshold for congestion, and for corruption if that is not to keep the window: 0 if it is.
	u32 (*threshold)(void *core, const struct wl_loss *loss);
	u32 (*corrupted)(void *core, const struct wl_loss *loss);
	void (*episode)(void *core, u32 now);
	void (*timeout)(void *core);
	void (*undo)(void *core);
};

// A core: the state that core/controls.h gives to it, and the functions of that name.
#include "core/controls.h"

#define HOST(NAME)                                                                                                     \
	static void NAME##_host_init(void *core, u8 limit, u8 after) { wl_##NAME##_core_init(core, limit, after); }    \
	static void NAME##_host_ack(void *core, const struct wl_ack *ack) { wl_##NAME##_core_ack(core, ack); }         \
	static void NAME##_host_grow(void *core, struct wl_window *window, const struct wl_ack *ack)                   \
	{                                                                                                              \
		wl_##NAME##_core_grow(core, window, ack);                                                              \
	}                                                                                                              \
	static struct wl_verdict NAME##_host_judge(void *core, const struct wl_loss *loss)                             \
	{                                                                                                              \
		return wl_##NAME##_core_judge(core, loss);                                                             \
	}                                                                                                              \
	static void NAME##_host_save(void *core) { wl_##NAME##_core_save(core); }                                      \
	static u32 NAME##_host_threshold(void *core, const struct wl_loss *loss)                                       \
	{                                                                                                              \
		return wl_##NAME##_core_threshold(core, loss);                                                         \
	}                                                                                                              \
	static u32 NAME##_host_corrupted(void *core, const struct wl_loss *loss)                                       \
	{                                                                                                              \
		return wl_##NAME##_core_corrupted(core, loss);                                                         \
	}                                                                                                              \
	static void NAME##_host_episode(void *core, u32 now) { wl_##NAME##_core_episode(core, now); }                  \
	static void NAME##_host_timeout(void *core) { wl_##NAME##_core_timeout(core); }                                \
	static void NAME##_host_undo(void *core) { wl_##NAME##_core_undo(core); }
#define HOST_ROW(NAME)                                                                                                      \
	{ #NAME,		  sizeof(struct wl_##NAME##_core), NAME##_host_init,	  NAME##_host_ack,     NAME##_host_grow,    \
	  NAME##_host_judge,	  NAME##_host_save,		   NAME##_host_threshold, NAME##_host_corrupted, NAME##_host_episode, \
	  NAME##_host_timeout, NAME##_host_undo },

WL_CONTROLS(HOST)

const struct wl_core wl_host_cores[] = { WL_CONTROLS(HOST_ROW) };
const size_t wl_host_core_count = sizeof(wl_host_cores) / sizeof(wl_host_cores[0]);

const size_t wl_host_auto_size = sizeof(struct wl_auto);

void wl_host_auto_init(struct wl_auto *control, u8 limit, u8 after, u32 nxt, u32 total, u32 first)
{
	wl_auto_init(control, limit, after, nxt, total, first);
}

int wl_host_auto_ack(struct wl_auto *control, struct wl_window *window, const struct wl_ack *ack, const struct wl_news *news)
{
	return wl_auto_ack(control, window, ack, news);
}

u32 wl_host_auto_lost(struct wl_auto *control, u32 segments)
{
	u32 full = wl_auto_place(control, segments);

	wl_auto_lost(control, segments, full);
	return full;
}

void wl_host_auto_excused(struct wl_auto *control, u32 segments)
{
	wl_auto_excused(control, segments);
}

int wl_host_auto_is_answering(const struct wl_auto *control, u32 una)
{
	return wl_auto_is_answering(control, una);
}

void wl_host_auto_lost_first(struct wl_auto *control, u32 segments)
{
	wl_auto_lost_first(control, segments);
}

int wl_host_auto_is_beginning(const struct wl_auto *control, u32 una)
{
	return wl_auto_is_beginning(control, una);
}

u32 wl_host_auto_timeout(struct wl_auto *control, const struct wl_loss *loss, u32 nxt)
{
	u32 threshold = wl_auto_threshold(control, loss);

	wl_auto_timeout(control, nxt);
	return threshold;
}

void wl_host_auto_save(struct wl_auto *control)
{
	wl_auto_save(control);
}

void wl_host_auto_undo(struct wl_auto *control, struct wl_window *window)
{
	wl_auto_undo(control, window);
}

u32 wl_host_rate(u32 delivered, u32 micros)
{
	return wl_rate(delivered, micros);
}

void wl_host_spike_trip(struct wl_spike *spike, s32 trip)
{
	wl_spike_trip(spike, trip);
}

struct wl_verdict wl_host_spike_verdict(const struct wl_spike *spike, u32 least_range)
{
	return wl_spike_verdict(spike, least_range);
}

void wl_host_aware_timeout(struct wl_aware *aware, u32 now, u32 rto, u32 silence, u32 in_a_row, int repairing, u32 cause)
{
	wl_aware_timeout(aware, now, rto, silence, in_a_row, repairing, cause);
}

int wl_host_aware_ack(struct wl_aware *aware, u32 now, u32 rto, u32 silence, int advances, int genuine)
{
	return wl_aware_ack(aware, now, rto, silence, advances, genuine);
}

int wl_host_trust_look(struct wl_trust *trust, u32 delivered, u32 repeated)
{
	return wl_trust_look(trust, delivered, repeated);
}

u32 wl_host_prr_window(const struct wl_prr *prr)
{
	return wl_prr_window(prr);
}

_Static_assert(sizeof(struct wl_spike) <= 24 && sizeof(struct wl_aware) <= 8 && sizeof(struct wl_trust) <= 12,
	        "src/cores.rs gives them no more");
