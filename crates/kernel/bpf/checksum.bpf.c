// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Checksum-based loss differentiation: the receiver recognises damaged segments and reports them in a TCP option; the sender keeps its
// window for what was reported.
#include "counters.h"
#include "namespace.h"
#include "timer.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "checksum/state.h"
#include "checksum/damaged.h"
#include "checksum/timer.h"
#include "checksum/options.h"
#include "checksum/room.h"
#include "checksum/answer.h"
#include "checksum/control.h"
#include "checksum/auto.h"
