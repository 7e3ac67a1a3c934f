/* What becomes of a packet. The order of the checks is that of crates/hotset/src/twin/mod.rs.
 *
 * Any doubt passes the packet on unchanged. A reply is written over the request before the slot is
 * rechecked; if the slot has changed, the request is restored.
 */
#ifndef GLIMMER_XDP_ANSWER_H
#define GLIMMER_XDP_ANSWER_H

#include "checksums.h"
#include "grow.h"
#include "reply.h"

/* The reply is too long for this program, and the one at tcx may be able to send it. */
#define HAND_OVER (HOT_TALLIES + 1)

/* Answers a packet in place. Returns the event, which is a hit if it has become the reply. */
INLINE __u32 answer(const struct packet *packet)
{
	const __u32 first = 0;
	struct headers headers;
	struct request request;
	struct reply reply;
	struct look look;
	struct scratch *scratch;
	const struct hot_control *all;
	__u32 event, bytes = packet->bytes;
	enum grown grown;

	event = check_headers(packet, &headers);
	if (event != PASSED)
		return event;
	if (headers.payload_bytes < FRAME_BYTES + 1 || bytes > REQUEST_BYTES_MAX)
		return HOT_TALLY_PASSED_REQUEST;
	scratch = map_lookup(&scratches, &first);
	all = map_lookup(&control, &first);
	if (!scratch || !all || packet_load(packet, scratch->request, bytes) != 0)
		return HOT_TALLY_PASSED_REQUEST;
	if (!parse_request(scratch, &headers, &request))
		return HOT_TALLY_PASSED_REQUEST;
	event = find(all, scratch, &request, &look);
	if (event != PASSED)
		return event;
	if (!checksums_hold(scratch, &headers))
		return HOT_TALLY_PASSED_MALFORMED;
	plan_reply(look.slot, scratch, &headers, &request, &reply);
	if (reply.bytes - headers.at > READ_ONCE(all->datagram_bytes_max) ||
	    reply.bytes > settings.frame_bytes_max)
		return HOT_TALLY_PASSED_TOO_LONG;
	/* The kernel knows which packets the path takes. */
	if (reply.bytes > ETHERNET_BYTES + PATH_BYTES_MAX &&
	    !is_on_link(scratch->request, &headers))
		return HOT_TALLY_PASSED_TOO_LONG;
	grown = grow(packet, bytes, reply.bytes);
	if (grown == NOT_GROWN)
		return packet->kind == XDP && (settings.growth & GROW_HAND_OVER) ?
			       HAND_OVER :
			       HOT_TALLY_PASSED_TOO_LONG;
	write_head(scratch, &headers, &reply);
	if (write_reply(packet, scratch, &reply) == 0 && is_unchanged(all, &look)) {
		count(all, look.place);
		return request.form;
	}
	shrink_back(packet, bytes, reply.bytes, grown);
	packet_store(packet, 0, scratch->request, bytes);
	return HOT_TALLY_TORN;
}

#endif
