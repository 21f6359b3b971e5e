// SPDX-License-Identifier: (MIT OR Apache-2.0)
// Room for a report in an acknowledgement that has none: its last SACK blocks give way. The first ones are the latest (RFC 2018, 4), and each block is
// told in several acknowledgements; a report may be told only here.
#ifndef WHYLOSS_CORE_ROOM_H
#define WHYLOSS_CORE_ROOM_H

#include "core/option.h"

#define WL_SACK_BLOCK 8
#define WL_ROOM_MOST 16
// Two no-operations and the head of the option, as Linux writes it; and the timestamps that can stand before it.
#define WL_SACK_HEAD 4
#define WL_TIMESTAMPS 12

// Where the SACK blocks begin in `len` octets of options, if they end them; 0 if not.
WL_CORE u32 wl_room_blocks(const u8 *octets, u32 len)
{
	u32 at = octets[0] == 1 && octets[1] == 1 && octets[2] == 8 ? WL_TIMESTAMPS : 0;

	if (wl_octet(octets, at) != 1 || wl_octet(octets, at + 1) != 1 || wl_octet(octets, at + 2) != 5)
		return 0;
	return at + 2 + wl_octet(octets, at + 3) == len ? at + WL_SACK_HEAD : 0;
}

// Puts a report of `size` octets, no more than WL_ROOM_MOST, in place of the last SACK blocks. One block at least is left. Returns whether it did;
// the options are as long as before.
WL_CORE int wl_room_make(u8 *octets, u32 len, const u8 *report, u32 size)
{
	u32 blocks = wl_room_blocks(octets, len), give = (size + WL_SACK_BLOCK - 1) / WL_SACK_BLOCK * WL_SACK_BLOCK, at, i;

	if (!blocks || len > WL_OPTIONS_MAX || blocks + WL_SACK_BLOCK + give > len)
		return 0;
	at = len - give;
	octets[(blocks - 1) & (WL_OCTETS - 1)] = at - blocks + 2;
	for (i = 0; i < WL_ROOM_MOST; i++)
		if (i < give)
			octets[(at + i) & (WL_OCTETS - 1)] = i < size ? report[i] : 1;
	return 1;
}

#endif
