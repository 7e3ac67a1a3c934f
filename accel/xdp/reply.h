/* The reply: its length, its checksum from partial sums, and its bytes. The same bytes as
 * crates/hotset/src/request.rs and twin/headers.rs write.
 */
#ifndef GLIMMER_XDP_REPLY_H
#define GLIMMER_XDP_REPLY_H

#include "lookup.h"
#include "sums.h"

#define HOP_LIMIT 64
#define DO_NOT_FRAGMENT BE16(0x4000)
/* The longest packet that every path takes whole: the least MTU of IPv6. */
#define PATH_BYTES_MAX 1280
/* Longest line, and what is around the value in the body. */
#define LINE_BYTES_MAX (sizeof(((struct hot_slot *)0)->key) + 6)
#define AROUND_VALUE 9

/* A reply is a head, from Ethernet to the header of the binary protocol, and one or two pieces of
 * the slot. */
struct reply {
	__u32 head_bytes;
	const __u8 *first;
	__u32 first_bytes;
	const __u8 *second;
	__u32 second_bytes;
	/* The sum of all that follows memcached's header. */
	__u64 sum;
	/* Length of the frame. */
	__u32 bytes;
};

/* Plans a reply from what a look shows, and writes the header of the binary protocol. */
INLINE void plan_reply(const struct hot_slot *slot, struct scratch *scratch,
		       const struct headers *headers, const struct request *request,
		       struct reply *reply)
{
	__u32 value_bytes = slot->value_bytes;
	__u32 at = headers->at + FRAME_BYTES;

	if (value_bytes > HOT_VALUE_BYTES_MAX)
		value_bytes = HOT_VALUE_BYTES_MAX;
	reply->head_bytes = at;
	if (request->form == HOT_TALLY_HITS_BINARY) {
		const __u8 *asked = scratch->request + at;
		__u8 *head = scratch->reply + at;
		__u32 key_bytes = 0;

		reply->sum = slot->sum_value;
		reply->first = slot->value;
		if (request->opcode == GETK || request->opcode == GETKQ) {
			key_bytes = request->key_bytes;
			reply->first = slot->key;
			reply->sum = slot->sum_key + sum_at(key_bytes, slot->sum_value);
		}
		U32(head) = MAGIC_REPLY | request->opcode << 8 | BE16(key_bytes) << 16;
		U32(head + 4) = EXTRAS_BYTES;
		U32(head + 8) = BE32(EXTRAS_BYTES + key_bytes + value_bytes);
		/* The opaque. */
		U32(head + 12) = U32(asked + 12);
		U64(head + 16) = BE64(slot->cas);
		U32(head + 24) = BE32(slot->flags);
		reply->sum += sum_words(head, (BINARY_BYTES + EXTRAS_BYTES) / 4);
		reply->head_bytes += BINARY_BYTES + EXTRAS_BYTES;
		reply->first_bytes = key_bytes;
		reply->second = slot->value;
		reply->second_bytes = value_bytes;
	} else {
		__u32 line_bytes, sum;

		if (request->form == HOT_TALLY_HITS_GET) {
			line_bytes = slot->get_line_bytes;
			sum = slot->sum_get_line;
		} else {
			line_bytes = slot->gets_line_bytes;
			sum = slot->sum_gets_line;
		}
		if (line_bytes > LINE_BYTES_MAX)
			line_bytes = LINE_BYTES_MAX;
		reply->sum = sum + sum_at(line_bytes, slot->sum_body);
		reply->first = slot->verb;
		reply->first_bytes = line_bytes;
		reply->second = slot->line_end;
		reply->second_bytes = value_bytes + AROUND_VALUE;
	}
	reply->bytes = reply->head_bytes + reply->first_bytes + reply->second_bytes;
}

/* Writes the head as far as memcached's header. Addresses and ports are those of the request, in
 * the other direction. */
INLINE void write_head(struct scratch *scratch, const struct headers *headers,
		       const struct reply *reply)
{
	const __u8 *asked = scratch->request;
	__u8 *head = scratch->reply;
	__u32 udp_bytes, checksum;
	__u64 sum;

	U32(head) = U32(asked + 6);
	U16(head + 4) = U16(asked + 10);
	U32(head + 6) = U32(asked);
	U16(head + 10) = U16(asked + 4);
	U16(head + 12) = U16(asked + 12);
	asked += ETHERNET_BYTES;
	head += ETHERNET_BYTES;
	if (headers->is_v4) {
		__u32 header_sum;

		udp_bytes = reply->bytes - ETHERNET_BYTES - IPV4_BYTES;
		U32(head) = 0x45 | BE16(IPV4_BYTES + udp_bytes) << 16;
		U32(head + 4) = DO_NOT_FRAGMENT << 16;
		U32(head + 8) = HOP_LIMIT | PROTOCOL_UDP << 8;
		U32(head + 12) = U32(asked + 16);
		U32(head + 16) = U32(asked + 12);
		sum = (__u64)U32(head + 12) + U32(head + 16);
		header_sum = fold(sum + U32(head) + U32(head + 4) + U32(head + 8));
		U16(head + 10) = ~header_sum;
		asked += IPV4_BYTES;
		head += IPV4_BYTES;
	} else {
		udp_bytes = reply->bytes - ETHERNET_BYTES - IPV6_BYTES;
		U32(head) = 0x60;
		U32(head + 4) = BE16(udp_bytes) | PROTOCOL_UDP << 16 | HOP_LIMIT << 24;
		U64(head + 8) = U64(asked + 24);
		U64(head + 16) = U64(asked + 32);
		U64(head + 24) = U64(asked + 8);
		U64(head + 32) = U64(asked + 16);
		sum = sum_words(head + 8, 8);
		asked += IPV6_BYTES;
		head += IPV6_BYTES;
	}
	/* Ports, length, and no checksum yet. */
	U32(head) = U16(asked + 2) | U16(asked) << 16;
	U32(head + 4) = BE16(udp_bytes);
	/* memcached's header: the request's number, sequence 0 of 1, and two bytes of zero. */
	U32(head + 8) = U16(asked + 8);
	U32(head + 12) = BE16(1);
	/* The pseudo-header has the length once more, and the protocol. */
	sum += sum_words(head, 4) + BE16(udp_bytes) + BE16(PROTOCOL_UDP);
	checksum = ~fold(sum + reply->sum) & 0xffff;
	/* Zero would say that there is no checksum. */
	U16(head + 6) = checksum == 0 ? 0xffff : checksum;
}

/* Writes the reply into a frame of its length. Returns zero if that has succeeded. */
INLINE long write_reply(const struct packet *packet, const struct scratch *scratch,
			const struct reply *reply)
{
	__u32 at = reply->head_bytes;
	__u32 first_bytes = reply->first_bytes, second_bytes = reply->second_bytes;
	long failed = packet_store(packet, 0, scratch->reply, reply->head_bytes);

	if (first_bytes != 0) {
		failed |= packet_store(packet, at, reply->first, first_bytes);
		at += first_bytes;
	}
	if (second_bytes != 0)
		failed |= packet_store(packet, at, reply->second, second_bytes);
	return failed;
}

#endif
