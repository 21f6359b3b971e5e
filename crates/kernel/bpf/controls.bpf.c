// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Congestion controls that differentiate losses at the sender.
#include "counters.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#include "controls/newreno.h"
