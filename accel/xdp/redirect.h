/* The redirection: which frames go to the server's own sockets (AF_XDP), past the kernel's stack.
 *
 * Only what is plainly a whole datagram for one of the server's addresses and ports is redirected.
 * Everything else is the kernel's: ARP, neighbour discovery, ICMP, TCP, other ports, fragments, IP
 * options, virtual networks, groups, and frames that are too long for a buffer. The server looks at
 * the fields that this program does not (crates/transport/src/bypass/wire).
 */
#ifndef GLIMMER_XDP_REDIRECT_H
#define GLIMMER_XDP_REDIRECT_H

#include "headers.h"

/* What the loader tells the redirection; crates/transport/src/xdp/program.rs has the same. */
struct redirection {
	__u8 mac[6];
	/* Whether there are routes at all. */
	__u16 is_on;
	/* Longest frame that fits into a buffer. */
	__u32 frame_bytes_max;
	/* Whether the kernel takes datagrams whose checksum is left to hardware: in the generic mode
	 * such a frame may be several datagrams in one. */
	__u32 passes_partial;
};

_Static_assert(sizeof(struct redirection) == 16, "redirection");

const volatile struct redirection redirection SEC(".rodata");

/* An address and a port of the server, in the order of the wire. An address of IPv4 is mapped into
 * IPv6. */
struct route_key {
	struct v6 address;
	__u64 port;
};

/* The sockets of one address: `spread` of them for each of the first `queues` queues, from `first`
 * on in the map of sockets. */
struct route {
	__u32 first;
	__u32 queues;
	__u32 spread;
	__u32 reserved;
};

/* The loader sets the numbers of entries. */
struct bpf_map_def SEC("maps") routes = {
	.type = MAP_HASH,
	.key_size = sizeof(struct route_key),
	.value_size = sizeof(struct route),
	.max_entries = 1,
};

struct bpf_map_def SEC("maps") sockets = {
	.type = MAP_XSK,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u32),
	.max_entries = 1,
};

INLINE __u32 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Returns the verdict for a frame that the accelerator has left alone. */
INLINE int redirect_frame(struct xdp_md *context)
{
	const __u8 *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	const __u8 *ip = data + ETHERNET_BYTES, *udp;
	struct route_key key = {};
	struct route *route;
	__u64 pseudo;
	__u32 peer, spread, queue = context->rx_queue_index;

	if (!redirection.is_on || xdp_get_buff_len(context) > redirection.frame_bytes_max ||
	    ip + IPV4_BYTES + UDP_BYTES > end)
		return XDP_PASS;
	if (U32(data) != *(const volatile __u32 *)&redirection.mac[0] ||
	    U16(data + 4) != *(const volatile __u16 *)&redirection.mac[4])
		return XDP_PASS;
	if (U16(data + 12) == ETHERTYPE_IPV4) {
		if (ip[0] != 0x45 || (U16(ip + 6) & FRAGMENT) != 0 || ip[9] != PROTOCOL_UDP)
			return XDP_PASS;
		udp = ip + IPV4_BYTES;
		key.address.low = BE64(0xffff00000000ULL) | (__u64)U32(ip + 16) << 32;
		pseudo = (__u64)U32(ip + 12) + U32(ip + 16);
	} else if (U16(data + 12) == ETHERTYPE_IPV6) {
		if (ip + IPV6_BYTES + UDP_BYTES > end || ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP)
			return XDP_PASS;
		udp = ip + IPV6_BYTES;
		key.address.high = U64(ip + 24);
		key.address.low = U64(ip + 32);
		pseudo = (__u64)U32(ip + 8) + U32(ip + 12) + U32(ip + 16) + U32(ip + 20) +
			 U32(ip + 24) + U32(ip + 28) + U32(ip + 32) + U32(ip + 36);
	} else {
		return XDP_PASS;
	}
	key.port = U16(udp + 2);
	route = map_lookup(&routes, &key);
	if (!route || queue >= route->queues)
		return XDP_PASS;
	peer = (folded(pseudo) ^ U16(udp)) * 0x9e3779b1u;
	pseudo += BE16(PROTOCOL_UDP) + U16(udp + 4);
	if (redirection.passes_partial && folded(pseudo) == U16(udp + 6))
		return XDP_PASS;
	/* All datagrams of one peer that arrive at one queue reach one socket. */
	spread = route->spread;
	spread = spread > 1 ? (peer >> 16) % spread : 0;
	/* A queue without a socket is the kernel's. */
	return redirect_map(&sockets, route->first + queue * route->spread + spread, XDP_PASS);
}

#endif
