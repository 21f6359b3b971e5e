// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Congestion controls that differentiate losses at the sender.
#include "controls/flow.h"
#include "core/controls.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define WL_NAME newreno
#define WL_KERNEL_NAME "wl_newreno"
#include "controls/control.h"

#define WL_NAME veno
#define WL_KERNEL_NAME "wl_veno"
#include "controls/control.h"

#define WL_NAME westwood
#define WL_KERNEL_NAME "wl_westwood"
#include "controls/control.h"

#define WL_NAME ncpld
#define WL_KERNEL_NAME "wl_ncpld"
#include "controls/control.h"

#define WL_NAME spike
#define WL_KERNEL_NAME "wl_spike"
#include "controls/control.h"

#define WL_NAME ldaeq
#define WL_KERNEL_NAME "wl_ldaeq"
#include "controls/control.h"

#define WL_NAME jtcp
#define WL_KERNEL_NAME "wl_jtcp"
#include "controls/control.h"

#define WL_NAME cerl
#define WL_KERNEL_NAME "wl_cerl"
#include "controls/control.h"

#define WL_NAME cubic_ld
#define WL_KERNEL_NAME "wl_cubic_ld"
#include "controls/control.h"
