// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Tickets for the places of a queue that several processors fill and one socket empties.
#ifndef WHYLOSS_CORE_TICKETS_H
#define WHYLOSS_CORE_TICKETS_H

#include "core/event.h"

// Takes the next ticket of a queue with so many places. Returns whether there was one; every number, 0 too, is a ticket.
WL_CORE int wl_ticket_take(u32 *tail, u32 head, u32 places, u32 *ticket)
{
	if (*tail - head >= places)
		return 0;
	*ticket = __sync_fetch_and_add(tail, 1);
	return 1;
}

#endif
