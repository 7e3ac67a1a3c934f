/* Ethernet, IP and UDP: which frames are looked at any further. The checks and their order are
 * those of crates/hotset/src/twin/headers.rs.
 */
#ifndef GLIMMER_XDP_HEADERS_H
#define GLIMMER_XDP_HEADERS_H

#include "memory.h"
#include "packet.h"
#include "settings.h"

/* A shorter frame was padded to this length. */
#define FRAME_BYTES_MIN 60
#define ETHERTYPE_IPV4 BE16(0x0800)
#define ETHERTYPE_IPV6 BE16(0x86dd)
#define PROTOCOL_UDP 17
/* The bits of "more fragments" and of the fragment's offset. */
#define FRAGMENT BE16(0x3fff)

/* Headers that have passed all checks. */
struct headers {
	__u32 is_v4;
	/* Where the datagram's payload begins in the frame, and its length. */
	__u32 at;
	__u32 payload_bytes;
};

/* No tally: the headers have passed. */
#define PASSED HOT_TALLIES

INLINE int is_our_v4(__u32 address)
{
	for (__u32 i = 0; i < ADDRESSES_MAX && i < settings.v4_addresses; i++)
		if (settings.v4_address[i] == address)
			return 1;
	return 0;
}

INLINE int is_our_v6(struct v6 address)
{
	for (__u32 i = 0; i < ADDRESSES_MAX && i < settings.v6_addresses; i++)
		if (settings.v6_address[i].high == address.high &&
		    settings.v6_address[i].low == address.low)
			return 1;
	return 0;
}

INLINE int has_v4(const volatile struct v4_network *network, __u32 address)
{
	return ((address ^ network->address) & network->mask) == 0;
}

INLINE int has_v6(const volatile struct v6_network *network, struct v6 address)
{
	__u64 high = address.high ^ network->address.high;
	__u64 low = address.low ^ network->address.low;

	return ((high & network->mask.high) | (low & network->mask.low)) == 0;
}

/* Whether a source is one host that is not ours, and among those that are answered. */
INLINE int answers_v4(__u32 source)
{
	if ((source & BE32(0xf0000000)) == BE32(0xe0000000) || source == 0 ||
	    source == BE32(0xffffffff) || (source & BE32(0xff000000)) == BE32(0x7f000000))
		return 0;
	for (__u32 i = 0; i < NOT_HOSTS_MAX && i < settings.v4_not_hosts; i++)
		if (settings.v4_not_host[i] == source)
			return 0;
	for (__u32 i = 0; i < SOURCES_MAX && i < settings.v4_sources; i++)
		if (has_v4(&settings.v4_source[i], source))
			return 1;
	return 0;
}

INLINE int answers_v6(struct v6 source)
{
	/* A group, no address, or the sender itself. */
	if ((source.high & 0xff) == 0xff ||
	    (source.high == 0 && (source.low == 0 || source.low == BE64(1))))
		return 0;
	for (__u32 i = 0; i < NOT_HOSTS_MAX && i < settings.v6_not_hosts; i++)
		if (settings.v6_not_host[i].high == source.high &&
		    settings.v6_not_host[i].low == source.low)
			return 0;
	for (__u32 i = 0; i < SOURCES_MAX && i < settings.v6_sources; i++)
		if (has_v6(&settings.v6_source[i], source))
			return 1;
	return 0;
}

/* Whether the sender of a frame, whose bytes are here, is on one of the interface's links. */
INLINE int is_on_link(const __u8 *frame, const struct headers *headers)
{
	const __u8 *ip = frame + ETHERNET_BYTES;

	if (headers->is_v4) {
		for (__u32 i = 0; i < ADDRESSES_MAX && i < settings.v4_links; i++)
			if (has_v4(&settings.v4_link[i], U32(ip + 12)))
				return 1;
	} else {
		struct v6 source = { U64(ip + 8), U64(ip + 16) };

		for (__u32 i = 0; i < ADDRESSES_MAX && i < settings.v6_links; i++)
			if (has_v6(&settings.v6_link[i], source))
				return 1;
	}
	return 0;
}

/* Checks a frame as far as the datagram. Returns PASSED or the first doubt. */
INLINE __u32 check_headers(const struct packet *packet, struct headers *headers)
{
	const __u8 *data = packet_data(packet), *end = packet_end(packet);
	const __u8 *udp;
	__u32 ip_bytes, payload_bytes, packet_bytes;
	int is_ours, answers;

	if (data + ETHERNET_BYTES > end)
		return HOT_TALLY_PASSED_MALFORMED;
	if (U16(data + 12) == ETHERTYPE_IPV4)
		headers->is_v4 = 1;
	else if (U16(data + 12) == ETHERTYPE_IPV6)
		headers->is_v4 = 0;
	else
		return HOT_TALLY_PASSED_FOREIGN;
	if (U32(data) != *(const volatile __u32 *)&settings.mac[0] ||
	    U16(data + 4) != *(const volatile __u16 *)&settings.mac[4])
		return HOT_TALLY_PASSED_FOREIGN;

	if (headers->is_v4) {
		const __u8 *ip = data + ETHERNET_BYTES;

		if (ip + IPV4_BYTES > end)
			return HOT_TALLY_PASSED_MALFORMED;
		if (ip[0] != 0x45 || (U16(ip + 6) & FRAGMENT) != 0)
			return HOT_TALLY_PASSED_MALFORMED;
		if (ip[9] != PROTOCOL_UDP)
			return HOT_TALLY_PASSED_FOREIGN;
		payload_bytes = BE16(U16(ip + 2));
		if (payload_bytes < IPV4_BYTES)
			return HOT_TALLY_PASSED_MALFORMED;
		payload_bytes -= IPV4_BYTES;
		ip_bytes = IPV4_BYTES;
		udp = ip + IPV4_BYTES;
	} else {
		const __u8 *ip = data + ETHERNET_BYTES;

		if (ip + IPV6_BYTES > end)
			return HOT_TALLY_PASSED_MALFORMED;
		if (ip[0] >> 4 != 6)
			return HOT_TALLY_PASSED_MALFORMED;
		if (ip[6] != PROTOCOL_UDP)
			return HOT_TALLY_PASSED_FOREIGN;
		payload_bytes = BE16(U16(ip + 4));
		ip_bytes = IPV6_BYTES;
		udp = ip + IPV6_BYTES;
	}
	packet_bytes = ETHERNET_BYTES + ip_bytes + payload_bytes;
	if (packet->bytes != packet_bytes &&
	    (packet->bytes < packet_bytes || packet->bytes != FRAME_BYTES_MIN))
		return HOT_TALLY_PASSED_MALFORMED;
	if (payload_bytes < UDP_BYTES || udp + UDP_BYTES > end)
		return HOT_TALLY_PASSED_MALFORMED;
	if (U16(udp + 2) != settings.port)
		return HOT_TALLY_PASSED_FOREIGN;
	if (headers->is_v4) {
		is_ours = is_our_v4(U32(udp - 4));
		answers = answers_v4(U32(udp - 8));
	} else {
		struct v6 ours = { U64(udp - 16), U64(udp - 8) };
		struct v6 theirs = { U64(udp - 32), U64(udp - 24) };

		is_ours = is_our_v6(ours);
		answers = answers_v6(theirs);
	}
	if (!is_ours)
		return HOT_TALLY_PASSED_FOREIGN;
	if (BE16(U16(udp + 4)) != payload_bytes)
		return HOT_TALLY_PASSED_MALFORMED;
	/* A group's hardware address, or no port to answer to. */
	if ((data[6] & 1) != 0 || U16(udp) == 0 || !answers)
		return HOT_TALLY_PASSED_SOURCE;
	headers->at = ETHERNET_BYTES + ip_bytes + UDP_BYTES;
	headers->payload_bytes = payload_bytes - UDP_BYTES;
	return PASSED;
}

#endif
