/* What the program needs to know of the kernel: types, contexts, helpers and verdicts.
 *
 * They are part of the kernel's stable interface (include/uapi/linux/bpf.h). They are written down
 * here so that the object does not depend on the headers of the machine that compiles it.
 */
#ifndef GLIMMER_XDP_KERNEL_H
#define GLIMMER_XDP_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef long long __s64;
/* Tells glimmer_hotset.h that the types are here. */
#define __u64 __u64

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)

/* Loads once, and not before or after another such load. */
#define READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))
/* The compiler moves no access to memory across it. */
#define COMPILER_BARRIER() __asm__ volatile("" ::: "memory")

/* Loads and stores of words at any address. The machine allows them. */
#define U16(place) (*(__u16 *)(place))
#define U32(place) (*(__u32 *)(place))
#define U64(place) (*(__u64 *)(place))

/* The program is compiled for little-endian machines. */
#define BE16(value) ((__u16)__builtin_bswap16(value))
#define BE32(value) ((__u32)__builtin_bswap32(value))
#define BE64(value) ((__u64)__builtin_bswap64(value))

enum xdp_verdict { XDP_PASS = 2, XDP_TX = 3 };
enum tcx_verdict { TCX_NEXT = -1 };

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* The fields that come after those that the program reads are left out. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys;
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
};

enum map_type { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_XSK = 17 };
enum map_flag { MAP_MMAPABLE = 1 << 10 };

struct bpf_map_def {
	__u32 type;
	__u32 key_size;
	__u32 value_size;
	__u32 max_entries;
	__u32 map_flags;
};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static __u64 (*ktime_get_ns)(void) = (void *)5;
static __u32 (*get_smp_processor_id)(void) = (void *)8;
static long (*skb_store_bytes)(void *, __u32 at, const void *from, __u32 bytes,
			       __u64 flags) = (void *)9;
static long (*redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*skb_load_bytes)(const void *, __u32 at, void *to, __u32 bytes) = (void *)26;
static __s64 (*csum_diff)(const void *from, __u32 from_bytes, const void *to, __u32 to_bytes,
			  __u32 seed) = (void *)28;
static long (*skb_change_tail)(void *, __u32 bytes, __u64 flags) = (void *)38;
static long (*skb_pull_data)(void *, __u32 bytes) = (void *)39;
static long (*xdp_adjust_head)(void *, int delta) = (void *)44;
static long (*redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*xdp_adjust_meta)(void *, int delta) = (void *)54;
static long (*xdp_adjust_tail)(void *, int delta) = (void *)65;
static __u64 (*xdp_get_buff_len)(void *) = (void *)188;
static long (*xdp_load_bytes)(void *, __u32 at, void *to, __u32 bytes) = (void *)189;
static long (*xdp_store_bytes)(void *, __u32 at, const void *from, __u32 bytes) = (void *)190;

#endif
