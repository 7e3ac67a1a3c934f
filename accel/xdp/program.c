/* The packet program of the hot-key accelerator. docs/accelerator.md explains it.
 *
 * | file         | idea                                                       |
 * | ------------ | ---------------------------------------------------------- |
 * | kernel.h     | the kernel's interface                                     |
 * | settings.h   | what the loader tells the program                          |
 * | memory.h     | the maps                                                   |
 * | packet.h     | a packet, as an XDP or a tcx program sees it               |
 * | headers.h    | Ethernet, IP and UDP                                       |
 * | request.h    | which requests are answered                                |
 * | key.h        | hash and comparison of keys                                |
 * | lookup.h     | finds the slot of a key, and rechecks it                   |
 * | checksums.h  | the checksums of a request                                 |
 * | sums.h       | checksums from partial sums                                |
 * | reply.h      | the reply                                                  |
 * | grow.h       | gives a packet another length                              |
 * | answer.h     | all of it in order                                         |
 * | redirect.h   | which frames go to the server's own sockets                |
 *
 * An interface has one XDP program. Hits of the accelerator are answered, of the rest the
 * redirection takes what is the server's, and what remains is the kernel's. The settings say which
 * of the two parts there are; `glimmer_redirect` is the second part alone.
 */
#include "answer.h"
#include "redirect.h"

/* What the XDP program writes in front of a packet that the tcx program is to answer. */
#define MARK 0x676c696d6d657231ULL

INLINE int hand_over(struct xdp_md *context)
{
	__u64 *mark;

	if (xdp_adjust_meta(context, -(int)sizeof(*mark)) != 0)
		return 0;
	mark = (void *)(long)context->data_meta;
	if ((void *)(mark + 1) > (void *)(long)context->data)
		return 0;
	*mark = MARK;
	return 1;
}

/* The accelerator in a network driver, or in the kernel's receive path. */
SEC("xdp.frags") int glimmer_xdp(struct xdp_md *context)
{
	struct packet packet = {
		.context = context,
		.kind = XDP,
		.bytes = xdp_get_buff_len(context),
	};
	__u32 event = answer(&packet);

	if (event == HAND_OVER) {
		if (hand_over(context))
			return XDP_PASS;
		event = HOT_TALLY_PASSED_TOO_LONG;
	}
	tally(event);
	return event <= HOT_TALLY_HITS_BINARY ? XDP_TX : redirect_frame(context);
}

/* The redirection without the accelerator. */
SEC("xdp.frags") int glimmer_redirect(struct xdp_md *context)
{
	return redirect_frame(context);
}

INLINE int at_tcx(struct __sk_buff *context)
{
	struct packet packet = { .context = context, .kind = TCX, .bytes = context->len };
	__u32 event;

	if (context->vlan_present) {
		event = HOT_TALLY_PASSED_FOREIGN;
	} else if (context->gso_segs > 1) {
		/* Several datagrams in one. */
		event = HOT_TALLY_PASSED_MALFORMED;
	} else {
		__u32 headers = ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES;

		if (packet_data(&packet) + headers > packet_end(&packet))
			skb_pull_data(context, packet.bytes < headers ? packet.bytes : headers);
		event = answer(&packet);
	}
	tally(event);
	return event <= HOT_TALLY_HITS_BINARY ? redirect(context->ifindex, 0) : TCX_NEXT;
}

/* The accelerator beside somebody else's XDP program. */
SEC("classifier") int glimmer_tcx(struct __sk_buff *context)
{
	return at_tcx(context);
}

/* Answers what the XDP program has handed over. */
SEC("classifier") int glimmer_handed(struct __sk_buff *context)
{
	const __u64 *mark = (void *)(long)context->data_meta;

	if ((void *)(mark + 1) > (void *)(long)context->data)
		return TCX_NEXT;
	if (*mark != MARK) {
		/* Only our XDP program is expected to write there, so the packet has been marked, and
		 * does not begin where its mark ends: the kernel has forgotten the length of Ethernet's
		 * header. */
		tally(HOT_TALLY_PASSED_TOO_LONG);
		return TCX_NEXT;
	}
	return at_tcx(context);
}

char _license[] SEC("license") = "Apache-2.0";
