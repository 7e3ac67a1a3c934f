/* What the loader tells the program. crates/xdp/src/settings.rs has the same structure.
 *
 * The kernel's verifier knows these values when it checks the program, and takes branches out that
 * they rule out.
 */
#ifndef GLIMMER_XDP_SETTINGS_H
#define GLIMMER_XDP_SETTINGS_H

#include "kernel.h"

#define ADDRESSES_MAX 16
#define SOURCES_MAX 32
#define NOT_HOSTS_MAX (4 * ADDRESSES_MAX)

/* Bits of settings.growth: the ways in which a frame may grow. */
#define GROW_TAIL 1
#define GROW_HEAD 2
#define GROW_HAND_OVER 4

/* All addresses, networks and the port are in the order of the wire. */
struct v6 {
	__u64 high;
	__u64 low;
};

struct v4_network {
	__u32 address;
	__u32 mask;
};

struct v6_network {
	struct v6 address;
	struct v6 mask;
};

struct settings {
	__u8 mac[6];
	__u16 port;
	__u32 frame_bytes_max;
	__u32 growth;
	/* Whether a checksum that the kernel has left to hardware may be answered. */
	__u32 partial_checksums;
	__u32 v4_addresses;
	__u32 v6_addresses;
	__u32 v4_sources;
	__u32 v6_sources;
	__u32 v4_not_hosts;
	__u32 v6_not_hosts;
	__u32 v4_links;
	__u32 v6_links;
	__u32 reserved;
	__u32 v4_address[ADDRESSES_MAX];
	/* Our own addresses, and those of all hosts on a link. */
	__u32 v4_not_host[NOT_HOSTS_MAX];
	struct v6 v6_address[ADDRESSES_MAX];
	struct v6 v6_not_host[NOT_HOSTS_MAX];
	struct v4_network v4_source[SOURCES_MAX];
	struct v6_network v6_source[SOURCES_MAX];
	/* The networks on the interface's links. */
	struct v4_network v4_link[ADDRESSES_MAX];
	struct v6_network v6_link[ADDRESSES_MAX];
};

_Static_assert(sizeof(struct settings) == 56 + 64 + 256 + 256 + 1024 + 256 + 1024 + 128 + 512,
	       "settings");

const volatile struct settings settings SEC(".rodata");

#endif
