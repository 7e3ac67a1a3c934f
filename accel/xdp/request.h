/* Which requests are answered: memcached's datagram header, and a text `get K` or `gets K` or a
 * binary GET, GETQ, GETK or GETKQ, alone. The same checks as crates/hotset/src/request.rs.
 */
#ifndef GLIMMER_XDP_REQUEST_H
#define GLIMMER_XDP_REQUEST_H

#include "headers.h"

#define MAGIC_REQUEST 0x80
#define MAGIC_REPLY 0x81
#define GET 0x00
#define GETQ 0x09
#define GETK 0x0c
#define GETKQ 0x0d
#define TEXT_GET 0x20746567  /* "get " */
#define TEXT_GETS 0x73746567 /* "gets" */
#define LINE_END 0x0a0d

/* A request before its key has been looked at. */
struct request {
	/* What a hit is counted as, which is also the form of the reply. */
	__u32 form;
	/* Of a binary request. */
	__u8 opcode;
	__u32 key_at;
	__u32 key_bytes;
};

/* Parses the request in a scratch. Returns whether the program may answer it, if it is a text whose
 * key is plain. */
INLINE int parse_request(const struct scratch *scratch, const struct headers *headers,
			 struct request *request)
{
	const __u8 *frame = scratch->request + headers->at;
	const __u8 *start = frame + FRAME_BYTES;
	__u32 bytes = headers->payload_bytes - FRAME_BYTES;

	/* Sequence number 0 of 1 datagram. */
	if (U32(frame + 2) != BE32(1))
		return 0;
	if (start[0] == MAGIC_REQUEST) {
		__u32 key_bytes = BE16(U16(start + 2));

		request->opcode = start[1];
		if (request->opcode != GET && request->opcode != GETQ && request->opcode != GETK &&
		    request->opcode != GETKQ)
			return 0;
		/* No extras, no data type, no virtual bucket, no CAS unique. */
		if (U32(start + 4) != 0 || U64(start + 16) != 0)
			return 0;
		if (bytes != BINARY_BYTES + key_bytes || BE32(U32(start + 8)) != key_bytes)
			return 0;
		request->form = HOT_TALLY_HITS_BINARY;
		request->key_at = headers->at + FRAME_BYTES + BINARY_BYTES;
		request->key_bytes = key_bytes;
	} else {
		__u32 verb_bytes;

		if (U32(start) == TEXT_GET) {
			request->form = HOT_TALLY_HITS_GET;
			verb_bytes = 4;
		} else if (U32(start) == TEXT_GETS && start[4] == ' ') {
			request->form = HOT_TALLY_HITS_GETS;
			verb_bytes = 5;
		} else {
			return 0;
		}
		if (bytes <= verb_bytes + 2 || bytes > verb_bytes + HOT_KEY_BYTES_MAX + 2 ||
		    U16(start + bytes - 2) != LINE_END)
			return 0;
		request->key_at = headers->at + FRAME_BYTES + verb_bytes;
		request->key_bytes = bytes - verb_bytes - 2;
	}
	return request->key_bytes >= 1 && request->key_bytes <= HOT_KEY_BYTES_MAX;
}

#endif
