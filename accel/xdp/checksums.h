/* The checksums of a request. A packet that was damaged on its way would be dropped by the kernel,
 * so it must not be answered: its key may be another one. crates/hotset/src/twin/checksums.rs does
 * the same.
 */
#ifndef GLIMMER_XDP_CHECKSUMS_H
#define GLIMMER_XDP_CHECKSUMS_H

#include "headers.h"
#include "sums.h"

/* Whether the checksums of the request in a scratch hold. */
INLINE int checksums_hold(struct scratch *scratch, const struct headers *headers)
{
	__u8 *udp = scratch->request + headers->at - UDP_BYTES;
	__u32 bytes = UDP_BYTES + headers->payload_bytes;
	__u32 checksum = U16(udp + 6), pseudo, sum;
	__u64 after;

	if (headers->is_v4) {
		const __u8 *ip = scratch->request + ETHERNET_BYTES;

		if (fold(sum_words(ip, 5)) != 0xffff)
			return 0;
		/* The sender has computed none. */
		if (checksum == 0)
			return 1;
		pseudo = fold(sum_words(ip + 12, 2) + U16(udp + 4) + BE16(PROTOCOL_UDP));
	} else {
		if (checksum == 0)
			return 0;
		pseudo = fold(sum_words(udp - 32, 8) + U16(udp + 4) + BE16(PROTOCOL_UDP));
	}
	/* Left to hardware, on its way between two hosts on one machine. */
	if (settings.partial_checksums && checksum == pseudo)
		return 1;
	if (bytes > REQUEST_BYTES_MAX - ETHERNET_BYTES - IPV4_BYTES)
		return 0;
	/* The helper takes whole words, so zeros have to follow. A frame that was padded has bytes
	 * of its own there. */
	after = U64(udp + bytes);
	U64(udp + bytes) = 0;
	sum = csum_diff(0, 0, udp, (bytes + 3) & ~3u, pseudo);
	U64(udp + bytes) = after;
	return fold(sum) == 0xffff;
}

#endif
