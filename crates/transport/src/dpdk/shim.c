/*
 * What of DPDK cannot be called from another language: functions that its headers define inline,
 * and structures whose layout depends on its version. Every function says what its caller holds
 * in shim.rs.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

/* The hardware has found the checksum of the datagram right. */
#define FRAME_IS_CHECKED 1u
/* It lies in several pieces, or something else may read it. */
#define FRAME_IS_UNUSABLE 2u
/* It is of a virtual network, and its tag has been taken off. */
#define FRAME_WAS_TAGGED 4u
/* The checksum of the datagram may have been left to hardware that it has not passed. */
#define FRAME_IS_PARTIAL 8u

/* Frames that one call receives or sends at most. */
#define BURST_MAX 64

/* The shortest frame on a wire, without its checksum. */
#define FRAME_BYTES_MIN 60

struct glimmer_frame {
	struct rte_mbuf *mbuf;
	uint8_t *data;
	uint32_t bytes;
	uint32_t flags;
};

struct glimmer_port {
	uint8_t mac[6];
	uint16_t mtu;
	uint16_t mtu_max;
	uint16_t queues_max;
	int32_t numa_node;
	uint8_t computes_sums;
	uint8_t spreads;
	char driver[32];
};

struct glimmer_counts {
	uint64_t missed;
	uint64_t no_frame;
};

int glimmer_dpdk_init(int argc, char **argv)
{
	/* EAL reports what it cannot parse itself. */
	opterr = 0;
	int begun = rte_eal_init(argc, argv);
	int reason = rte_errno ? rte_errno : EINVAL;

	/* What it printed goes to where the output goes now. */
	fflush(stdout);
	return begun < 0 ? reason : 0;
}

int glimmer_dpdk_is_port(uint16_t port)
{
	return rte_eth_dev_is_valid_port(port);
}

int glimmer_dpdk_describe(uint16_t port, struct glimmer_port *out)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	int failed = rte_eth_dev_info_get(port, &info);

	if (!failed)
		failed = rte_eth_macaddr_get(port, &mac);
	if (!failed)
		failed = rte_eth_dev_get_mtu(port, &out->mtu);
	if (failed)
		return failed;
	memcpy(out->mac, mac.addr_bytes, sizeof(out->mac));
	out->mtu_max = info.max_mtu;
	out->queues_max = RTE_MIN(info.max_rx_queues, info.max_tx_queues);
	out->numa_node = rte_eth_dev_socket_id(port);
	out->computes_sums = !!(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	out->spreads = !!(info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP));
	strncpy(out->driver, info.driver_name ? info.driver_name : "unknown",
		sizeof(out->driver) - 1);
	out->driver[sizeof(out->driver) - 1] = 0;
	return 0;
}

/*
 * Bytes for a frame behind the headroom. Some drivers use whole KiB of it alone, and they may count
 * the checksum of Ethernet and two tags of virtual networks, too.
 */
uint32_t glimmer_dpdk_data_bytes(uint32_t frame_bytes_max)
{
	uint32_t whole = frame_bytes_max + RTE_ETHER_CRC_LEN + 2 * RTE_VLAN_HLEN;

	return RTE_MAX((uint32_t)RTE_MBUF_DEFAULT_DATAROOM, RTE_ALIGN_CEIL(whole, 1024u));
}

/* Bytes of each frame's memory in a pool: its description, and room for it behind the headroom. */
uint32_t glimmer_dpdk_frame_bytes(uint32_t frame_bytes_max)
{
	uint32_t room = RTE_PKTMBUF_HEADROOM + glimmer_dpdk_data_bytes(frame_bytes_max);

	return rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + room, 0, NULL);
}

/* Bytes of the caches that a pool has for each thread that DPDK may know. */
uint32_t glimmer_dpdk_caches_bytes(void)
{
	return RTE_MAX_LCORE * sizeof(struct rte_mempool_cache);
}

struct rte_mempool *glimmer_dpdk_pool(const char *name, uint32_t frames, uint32_t cached,
				      uint32_t frame_bytes_max, int numa_node)
{
	uint32_t room = RTE_PKTMBUF_HEADROOM + glimmer_dpdk_data_bytes(frame_bytes_max);

	if (room > UINT16_MAX) {
		rte_errno = EINVAL;
		return NULL;
	}
	return rte_pktmbuf_pool_create(name, frames, cached, 0, (uint16_t)room, numa_node);
}

void glimmer_dpdk_pool_free(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

uint32_t glimmer_dpdk_pool_free_frames(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}

int glimmer_dpdk_errno(void)
{
	return rte_errno;
}

/* Configures a port with this many queues in either direction, and starts it. */
int glimmer_dpdk_start(uint16_t port, uint16_t queues, uint16_t mtu, int is_asked,
		       uint16_t waiting, struct rte_mempool *pool)
{
	struct rte_eth_conf conf;
	struct rte_eth_dev_info info;
	uint16_t rx = waiting, tx = waiting;
	int failed = rte_eth_dev_info_get(port, &info);

	if (failed)
		return failed;
	memset(&conf, 0, sizeof(conf));
	if (queues > 1) {
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
		if (conf.rx_adv_conf.rss_conf.rss_hf)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	}
	conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	conf.rxmode.mtu = mtu;
	failed = rte_eth_dev_configure(port, queues, queues, &conf);
	if (failed)
		return failed;
	if (is_asked) {
		/* Drivers without this option take what the other end has. */
		failed = rte_eth_dev_set_mtu(port, mtu);
		if (failed && failed != -ENOTSUP)
			return failed;
	}
	failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	for (uint16_t queue = 0; !failed && queue < queues; queue++) {
		int node = rte_eth_dev_socket_id(port);
		struct rte_eth_rxconf rx_conf = info.default_rxconf;
		struct rte_eth_txconf tx_conf = info.default_txconf;

		rx_conf.offloads = conf.rxmode.offloads;
		tx_conf.offloads = conf.txmode.offloads;
		failed = rte_eth_rx_queue_setup(port, queue, rx, node, &rx_conf, pool);
		if (!failed)
			failed = rte_eth_tx_queue_setup(port, queue, tx, node, &tx_conf);
	}
	if (failed)
		return failed;
	return rte_eth_dev_start(port);
}

/*
 * Has a port receive what is sent to groups, of which these are the hardware addresses. Virtual
 * functions may join groups, but not receive those of all. Drivers of ports that pass every frame
 * have neither request. Nothing is asked for that would stay with an interface of the kernel's.
 */
void glimmer_dpdk_join(uint16_t port, struct rte_ether_addr *groups, uint32_t count)
{
	if (rte_eth_dev_set_mc_addr_list(port, groups, count))
		(void)rte_eth_allmulticast_enable(port);
}

/* Stops a port, after which no frame of its pools is in its rings. */
void glimmer_dpdk_close(uint16_t port)
{
	(void)rte_eth_dev_stop(port);
	(void)rte_eth_dev_close(port);
}

int glimmer_dpdk_is_up(uint16_t port)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	return !rte_eth_link_get_nowait(port, &link) && link.link_status == RTE_ETH_LINK_UP;
}

/* What is counted is left as it is if the driver does not answer. */
int glimmer_dpdk_counts(uint16_t port, struct glimmer_counts *out)
{
	struct rte_eth_stats stats;
	int failed;

	memset(&stats, 0, sizeof(stats));
	failed = rte_eth_stats_get(port, &stats);
	if (failed)
		return failed;
	out->missed = stats.imissed;
	out->no_frame = stats.rx_nombuf;
	return 0;
}

/* Has what arrives for a port of UDP reach a queue. Returns no rule if the driver cannot. */
void *glimmer_dpdk_steer(uint16_t port, int is_v6, uint16_t udp_port, uint16_t queue)
{
	struct rte_flow_attr attr = { .ingress = 1 };
	struct rte_flow_item_udp udp = { .hdr.dst_port = rte_cpu_to_be_16(udp_port) };
	struct rte_flow_item_udp udp_mask = { .hdr.dst_port = 0xFFFF };
	struct rte_flow_action_queue to = { .index = queue };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = is_v6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4 },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_error error;

	if (rte_flow_validate(port, &attr, items, actions, &error))
		return NULL;
	return rte_flow_create(port, &attr, items, actions, &error);
}

void glimmer_dpdk_unsteer(uint16_t port, void *rule)
{
	struct rte_flow_error error;

	(void)rte_flow_destroy(port, rule, &error);
}

/* What a driver says of a datagram's checksum. */
uint32_t glimmer_dpdk_sum_flags(uint64_t ol_flags)
{
	switch (ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) {
	case RTE_MBUF_F_RX_L4_CKSUM_GOOD:
		return FRAME_IS_CHECKED;
	case RTE_MBUF_F_RX_L4_CKSUM_NONE:
		/* From this machine, it is not computed. Some drivers say so of wrong ones, too. */
		return FRAME_IS_PARTIAL;
	default:
		return 0;
	}
}

uint16_t glimmer_dpdk_receive(uint16_t port, uint16_t queue, struct glimmer_frame *frames,
			      uint16_t most)
{
	struct rte_mbuf *mbufs[BURST_MAX];
	uint16_t count = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(most, (uint16_t)BURST_MAX));

	for (uint16_t at = 0; at < count; at++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[at], void *));
	for (uint16_t at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = mbufs[at];
		uint32_t flags = glimmer_dpdk_sum_flags(mbuf->ol_flags);

		if (mbuf->nb_segs != 1 || rte_mbuf_refcnt_read(mbuf) != 1)
			flags |= FRAME_IS_UNUSABLE;
		if (mbuf->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED))
			flags |= FRAME_WAS_TAGGED;
		frames[at].mbuf = mbuf;
		frames[at].data = rte_pktmbuf_mtod(mbuf, uint8_t *);
		frames[at].bytes = mbuf->data_len;
		frames[at].flags = flags;
	}
	return count;
}

/* Sends what the driver takes: frames[0..n] are its own then. */
uint16_t glimmer_dpdk_send(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t count,
			   int leaves_sums)
{
	if (leaves_sums)
		count = rte_eth_tx_prepare(port, queue, frames, count);
	return count ? rte_eth_tx_burst(port, queue, frames, count) : 0;
}

struct rte_mbuf *glimmer_dpdk_take(struct rte_mempool *pool)
{
	return rte_pktmbuf_alloc(pool);
}

void glimmer_dpdk_give_back(struct rte_mbuf **frames, uint32_t count)
{
	rte_pktmbuf_free_bulk(frames, count);
}

uint8_t *glimmer_dpdk_data(struct rte_mbuf *frame)
{
	return rte_pktmbuf_mtod(frame, uint8_t *);
}

/* Bytes from where its data begins to the end of its memory. */
uint32_t glimmer_dpdk_room(const struct rte_mbuf *frame)
{
	return frame->buf_len - frame->data_off;
}

/*
 * Makes a frame one of this length that is ready to be sent, with its checksum computed or left to
 * the port. A frame that is shorter than Ethernet allows is padded with zeros.
 */
void glimmer_dpdk_finish(struct rte_mbuf *frame, uint16_t bytes, int leaves_sums, int is_v6)
{
	frame->data_len = bytes;
	if (bytes < FRAME_BYTES_MIN && rte_pktmbuf_tailroom(frame) >= FRAME_BYTES_MIN - bytes) {
		memset(rte_pktmbuf_mtod_offset(frame, uint8_t *, bytes), 0, FRAME_BYTES_MIN - bytes);
		frame->data_len = FRAME_BYTES_MIN;
	}
	frame->pkt_len = frame->data_len;
	/* What was found out when it was received is over. Whose memory it has is not. */
	frame->ol_flags &= RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL;
	frame->tx_offload = 0;
	if (leaves_sums) {
		frame->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM |
				   (is_v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
		frame->l2_len = 14;
		frame->l3_len = is_v6 ? 40 : 20;
	}
}
