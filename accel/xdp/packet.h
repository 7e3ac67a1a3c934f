/* A packet, as an XDP program or a tcx program sees it. Functions that are given the kind as a
 * constant compile to the code of that kind.
 */
#ifndef GLIMMER_XDP_PACKET_H
#define GLIMMER_XDP_PACKET_H

#include "kernel.h"

enum kind { XDP, TCX };

struct packet {
	void *context;
	enum kind kind;
	/* All bytes of the frame, also those that cannot be accessed directly. */
	__u32 bytes;
};

INLINE __u8 *packet_data(const struct packet *packet)
{
	if (packet->kind == XDP)
		return (void *)(long)((struct xdp_md *)packet->context)->data;
	return (void *)(long)((struct __sk_buff *)packet->context)->data;
}

INLINE __u8 *packet_end(const struct packet *packet)
{
	if (packet->kind == XDP)
		return (void *)(long)((struct xdp_md *)packet->context)->data_end;
	return (void *)(long)((struct __sk_buff *)packet->context)->data_end;
}

INLINE long packet_load(const struct packet *packet, void *to, __u32 bytes)
{
	if (packet->kind == XDP)
		return xdp_load_bytes(packet->context, 0, to, bytes);
	return skb_load_bytes(packet->context, 0, to, bytes);
}

INLINE long packet_store(const struct packet *packet, __u32 at, const void *from, __u32 bytes)
{
	if (packet->kind == XDP)
		return xdp_store_bytes(packet->context, at, from, bytes);
	return skb_store_bytes(packet->context, at, from, bytes, 0);
}

#endif
