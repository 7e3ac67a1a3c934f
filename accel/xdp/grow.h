/* Gives a packet another length, and takes that back. */
#ifndef GLIMMER_XDP_GROW_H
#define GLIMMER_XDP_GROW_H

#include "packet.h"
#include "settings.h"

/* What an XDP program may add in front of a frame: its driver's headroom of 256 bytes has a
 * structure of the kernel in it. */
#define HEAD_BYTES_MAX 192

enum grown { NOT_GROWN, AT_TAIL, AT_HEAD };

INLINE enum grown grow(const struct packet *packet, __u32 from, __u32 to)
{
	int delta = (int)to - (int)from;

	if (packet->kind == TCX) {
		/* A sum of the whole packet from the network card would be wrong afterwards. Growing
		 * makes the kernel forget it, and making the packet shorter does not. */
		if (delta <= 0 && skb_change_tail(packet->context, from + 1, 0) != 0)
			return NOT_GROWN;
		return skb_change_tail(packet->context, to, 0) == 0 ? AT_TAIL : NOT_GROWN;
	}
	if (delta == 0)
		return AT_TAIL;
	if ((delta < 0 || settings.growth & GROW_TAIL) &&
	    xdp_adjust_tail(packet->context, delta) == 0)
		return AT_TAIL;
	if ((settings.growth & GROW_HEAD) && delta > 0 && delta <= HEAD_BYTES_MAX &&
	    xdp_adjust_head(packet->context, -delta) == 0)
		return AT_HEAD;
	return NOT_GROWN;
}

INLINE void shrink_back(const struct packet *packet, __u32 from, __u32 to, enum grown grown)
{
	int delta = (int)to - (int)from;

	if (packet->kind == TCX)
		skb_change_tail(packet->context, from, 0);
	else if (grown == AT_HEAD)
		xdp_adjust_head(packet->context, delta);
	else if (delta != 0)
		xdp_adjust_tail(packet->context, -delta);
}

#endif
