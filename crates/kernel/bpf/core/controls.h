// SPDX-License-Identifier: (MIT OR Apache-2.0)
// What each control is made of: a way to grow, a differentiator, and what a loss that is judged corruption does to the window. The same
// parts make the scheme of that name in the transport engine.
#ifndef WHYLOSS_CORE_CONTROLS_H
#define WHYLOSS_CORE_CONTROLS_H

#include "core/cerl.h"
#include "core/cubic.h"
#include "core/jtcp.h"
#include "core/ldaeq.h"
#include "core/ncpld.h"
#include "core/newreno.h"
#include "core/spike.h"
#include "core/veno.h"
#include "core/westwood.h"

#define WL_CONTROLS(X) X(newreno) X(veno) X(westwood) X(ncpld) X(spike) X(ldaeq) X(jtcp) X(cerl) X(cubic_ld)

// newreno: takes every loss for congestion.
struct wl_newreno_core {
	struct wl_newreno growth;
};

// veno: growth, verdict and four fifths of the window.
struct wl_veno_core {
	struct wl_veno veno;
};

// westwood: does not ask why; falls to what the path was measured to hold.
struct wl_westwood_core {
	struct wl_westwood west;
};

struct wl_ncpld_core {
	struct wl_newreno growth;
	struct wl_ncpld ncpld;
};

struct wl_spike_core {
	struct wl_newreno growth;
	struct wl_spike spike;
	struct wl_trips trips;
};

struct wl_ldaeq_core {
	struct wl_newreno growth;
	struct wl_usage usage;
};

struct wl_jtcp_core {
	struct wl_newreno growth;
	struct wl_jtcp jtcp;
};

struct wl_cerl_core {
	struct wl_newreno growth;
	struct wl_usage usage;
};

// cubic_ld: CUBIC that keeps its window for what LDA_EQ judges corruption.
struct wl_cubic_ld_core {
	struct wl_cubic cubic;
	struct wl_usage usage;
};

// The functions of a control's core; an argument that says nothing to it is not looked at.
#define WL_CORE_FUNCTIONS(NAME, INIT, ACK, GROW, JUDGE, SAVE, THRESHOLD, CORRUPTED, EPISODE, TIMEOUT, UNDO, RESUME)                             \
	WL_CORE void wl_##NAME##_core_init(struct wl_##NAME##_core *core, u8 limit, u8 after)                                           \
	{                                                                                                                               \
		*core = (struct wl_##NAME##_core){ 0 };                                                                                 \
		INIT;                                                                                                                   \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_ack(struct wl_##NAME##_core *core, const struct wl_ack *ack)                                      \
	{                                                                                                                               \
		ACK;                                                                                                                    \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_grow(struct wl_##NAME##_core *core, struct wl_window *window, const struct wl_ack *ack)           \
	{                                                                                                                               \
		GROW;                                                                                                                   \
	}                                                                                                                               \
	WL_CORE struct wl_verdict wl_##NAME##_core_judge(struct wl_##NAME##_core *core, const struct wl_loss *loss)                     \
	{                                                                                                                               \
		return JUDGE;                                                                                                           \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_save(struct wl_##NAME##_core *core)                                                               \
	{                                                                                                                               \
		SAVE;                                                                                                                   \
	}                                                                                                                               \
	WL_CORE u32 wl_##NAME##_core_threshold(struct wl_##NAME##_core *core, const struct wl_loss *loss)                               \
	{                                                                                                                               \
		return THRESHOLD;                                                                                                       \
	}                                                                                                                               \
	WL_CORE u32 wl_##NAME##_core_corrupted(struct wl_##NAME##_core *core, const struct wl_loss *loss)                               \
	{                                                                                                                               \
		return CORRUPTED;                                                                                                       \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_episode(struct wl_##NAME##_core *core, u32 now)                                                   \
	{                                                                                                                               \
		EPISODE;                                                                                                                \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_timeout(struct wl_##NAME##_core *core)                                                            \
	{                                                                                                                               \
		TIMEOUT;                                                                                                                \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_undo(struct wl_##NAME##_core *core)                                                               \
	{                                                                                                                               \
		UNDO;                                                                                                                   \
	}                                                                                                                               \
	WL_CORE void wl_##NAME##_core_resume(struct wl_##NAME##_core *core, u32 now)                                                    \
	{                                                                                                                               \
		RESUME;                                                                                                                 \
	}

#define WL_NOTHING ((void)core)
#define WL_NO_VERDICT ((void)core, (struct wl_verdict){ WL_CONGESTION, 0 })
#define WL_KEEP ((void)core, 0)

// What grows as NewReno and keeps its window for corruption.
#define WL_KEEPING_RENO(NAME, ACK, JUDGE, EPISODE)                                                                                      \
	WL_CORE_FUNCTIONS(NAME, wl_newreno_init(&core->growth, limit, after), ACK, wl_newreno_grow(&core->growth, window, ack), JUDGE,  \
			  wl_newreno_save(&core->growth), wl_newreno_threshold(&core->growth, loss), WL_KEEP, EPISODE,                  \
			  wl_newreno_timeout(&core->growth), wl_newreno_undo(&core->growth), WL_NOTHING)

WL_KEEPING_RENO(newreno, WL_NOTHING, WL_NO_VERDICT, WL_NOTHING)
WL_KEEPING_RENO(ncpld, wl_ncpld_ack(&core->ncpld, ack), wl_ncpld_judge(&core->ncpld), WL_NOTHING)
WL_KEEPING_RENO(spike, wl_spike_ack(&core->spike, &core->trips, ack), wl_spike_judge(&core->spike, &core->trips), WL_NOTHING)
WL_KEEPING_RENO(ldaeq, wl_usage_ack(&core->usage, ack), wl_ldaeq_judge(&core->usage), WL_NOTHING)
WL_KEEPING_RENO(jtcp, wl_jtcp_ack(&core->jtcp, ack), wl_jtcp_judge(&core->jtcp, loss), wl_jtcp_episode(&core->jtcp, now))
WL_KEEPING_RENO(cerl, wl_usage_ack(&core->usage, ack), wl_cerl_judge(&core->usage), WL_NOTHING)

WL_CORE_FUNCTIONS(veno, wl_veno_init(&core->veno, limit, after), wl_veno_ack(&core->veno, ack), wl_veno_grow(&core->veno, window, ack),
		  wl_veno_judge(&core->veno), wl_veno_save(&core->veno), wl_veno_threshold(&core->veno, loss),
		  wl_veno_scaled(&core->veno, loss), WL_NOTHING, wl_veno_timeout(&core->veno), wl_veno_undo(&core->veno), WL_NOTHING)

WL_CORE_FUNCTIONS(westwood, wl_westwood_init(&core->west, limit, after), wl_westwood_ack(&core->west, ack),
		  wl_westwood_grow(&core->west, window, ack), WL_NO_VERDICT, wl_newreno_save(&core->west.growth),
		  wl_westwood_threshold(&core->west, loss), WL_KEEP, WL_NOTHING, wl_newreno_timeout(&core->west.growth),
		  wl_newreno_undo(&core->west.growth), WL_NOTHING)

WL_CORE_FUNCTIONS(cubic_ld, wl_cubic_init(&core->cubic, limit, after), wl_usage_ack(&core->usage, ack),
		  wl_cubic_grow(&core->cubic, window, ack), wl_ldaeq_judge(&core->usage), wl_cubic_save(&core->cubic),
		  wl_cubic_threshold(&core->cubic, loss), WL_KEEP, WL_NOTHING, wl_cubic_timeout(&core->cubic), wl_cubic_undo(&core->cubic),
		  wl_cubic_hold(&core->cubic, now))

#endif
