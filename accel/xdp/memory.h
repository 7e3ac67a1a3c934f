/* The maps: the memory that the program shares with the server, and its own scratch. */
#ifndef GLIMMER_XDP_MEMORY_H
#define GLIMMER_XDP_MEMORY_H

#include "kernel.h"
#include "glimmer_hotset.h"

#define ETHERNET_BYTES 14
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
/* memcached's header of a datagram. */
#define FRAME_BYTES 8
#define BINARY_BYTES 24
#define EXTRAS_BYTES 4
/* The longest request: binary, over IPv6. */
#define REQUEST_BYTES_MAX                                                                          \
	(ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES + FRAME_BYTES + BINARY_BYTES + HOT_KEY_BYTES_MAX)

/* One to a core. A core runs one packet program at a time, because both kinds run in the network's
 * soft interrupt, which does not interrupt itself. */
struct scratch {
	/* The frame as it came, so that it can be restored. Words are loaded past its end. */
	__u8 request[REQUEST_BYTES_MAX + 40];
	/* The reply from the Ethernet header to the header of the binary protocol. */
	__u8 reply[128];
};

/* The loader sets the number of entries. */
struct bpf_map_def SEC("maps") slots = {
	.type = MAP_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct hot_slot),
	.max_entries = 1,
	.map_flags = MAP_MMAPABLE,
};

struct bpf_map_def SEC("maps") control = {
	.type = MAP_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct hot_control),
	.max_entries = 1,
	.map_flags = MAP_MMAPABLE,
};

/* counts[cpu * slots + slot] */
struct bpf_map_def SEC("maps") counts = {
	.type = MAP_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(__u64),
	.max_entries = 1,
	.map_flags = MAP_MMAPABLE,
};

/* tallies[cpu][tally] */
struct tallies {
	__u64 events[HOT_TALLIES];
};

struct bpf_map_def SEC("maps") tallies = {
	.type = MAP_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct tallies),
	.max_entries = 1,
	.map_flags = MAP_MMAPABLE,
};

struct bpf_map_def SEC("maps") scratches = {
	.type = MAP_PERCPU_ARRAY,
	.key_size = sizeof(__u32),
	.value_size = sizeof(struct scratch),
	.max_entries = 1,
};

INLINE void tally(__u32 event)
{
	__u32 cpu = get_smp_processor_id();
	struct tallies *row = map_lookup(&tallies, &cpu);

	if (row && event < HOT_TALLIES)
		row->events[event]++;
}

INLINE void count(const struct hot_control *all, __u32 slot)
{
	__u32 place = get_smp_processor_id() * (__u32)all->slots + slot;
	__u64 *hits = map_lookup(&counts, &place);

	if (hits)
		(*hits)++;
}

#endif
