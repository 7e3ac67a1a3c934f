/* The memory that the hot-key accelerator and the server share, as C sees it.
 *
 * The same bytes are described in crates/hotset/src/layout/. tests/c_header.rs compares the numbers
 * here with those there, and the assertions below compare the structures with the numbers.
 */
#ifndef GLIMMER_HOTSET_H
#define GLIMMER_HOTSET_H

#ifndef __u64
#include <linux/types.h>
#endif

#define HOT_LAYOUT_VERSION 1
#define HOT_KEY_BYTES_MAX 250
#define HOT_VALUE_BYTES_MAX 1400

/* Bits of hot_slot.state. A slot is answered from if (state & 3) == HOT_STATE_LIVE. */
#define HOT_STATE_LIVE 1
#define HOT_STATE_WRITING 2

#define HOT_SLOT_BYTES 1792
#define HOT_SLOT_STATE 0
#define HOT_SLOT_EPOCH 8
#define HOT_SLOT_DEADLINE_NS 16
#define HOT_SLOT_KEYHASH 24
#define HOT_SLOT_CAS 32
#define HOT_SLOT_FLAGS 40
#define HOT_SLOT_VALUE_BYTES 44
#define HOT_SLOT_KEY_BYTES 46
#define HOT_SLOT_GET_LINE_BYTES 48
#define HOT_SLOT_GETS_LINE_BYTES 50
#define HOT_SLOT_SUM_KEY 52
#define HOT_SLOT_SUM_GET_LINE 56
#define HOT_SLOT_SUM_GETS_LINE 60
#define HOT_SLOT_SUM_VALUE 64
#define HOT_SLOT_SUM_BODY 68
#define HOT_SLOT_LINE 82
#define HOT_SLOT_KEY 88
#define HOT_SLOT_BODY 382
#define HOT_SLOT_VALUE 384

/* One slot. All fields are in the byte order of the machine. Sums are those of 16-bit words in that
 * order, with the carries added back, as if the piece began at an even offset. */
struct hot_slot {
	__u64 state;            /* generation << 2 | writing << 1 | live */
	__u64 epoch;            /* answered only if equal to hot_control.epoch */
	__u64 deadline_ns;      /* CLOCK_MONOTONIC; answered only before */
	__u64 keyhash;          /* the server's */
	__u64 cas;
	__u32 flags;
	__u16 value_bytes;
	__u8 key_bytes;
	__u8 zero;
	__u16 get_line_bytes;
	__u16 gets_line_bytes;
	__u32 sum_key;
	__u32 sum_get_line;
	__u32 sum_gets_line;
	__u32 sum_value;
	__u32 sum_body;
	__u64 reserved;
	__u8 line_padding[2];
	__u8 verb[6];           /* "VALUE ": the line begins here */
	__u8 key[288];          /* the key, then " FLAGS BYTES CAS" */
	__u8 body_padding[6];
	__u8 line_end[2];       /* "\r\n": the body begins here */
	__u8 value[1408];       /* the value, then "\r\nEND\r\n" */
} __attribute__((aligned(64)));

#define HOT_CONTROL_BYTES 128

struct hot_control {
	__u64 epoch;
	__u64 flush_at_ns;      /* load it before the epoch, in this order */
	__u64 paused;           /* nothing is answered unless it is zero */
	__u64 slots;
	__u64 seed;             /* of hot_hash() */
	__u64 readers;
	__u64 datagram_bytes_max; /* with memcached's header of 8 bytes */
	__u64 version;          /* HOT_LAYOUT_VERSION */
	__u64 fail_rechecks;    /* for tests: nonzero makes every recheck fail */
	__u64 reserved[7];
};

/* counts[reader * slots + slot], and tallies[reader * HOT_TALLIES + tally]; all of them __u64. */
#define HOT_TALLIES 16
#define HOT_TALLY_HITS_GET 0
#define HOT_TALLY_HITS_GETS 1
#define HOT_TALLY_HITS_BINARY 2
#define HOT_TALLY_MISSES 3
#define HOT_TALLY_TORN 4
#define HOT_TALLY_EXPIRED 5
#define HOT_TALLY_FLUSHED 6
#define HOT_TALLY_PASSED_PAUSED 7
#define HOT_TALLY_PASSED_FOREIGN 8
#define HOT_TALLY_PASSED_MALFORMED 9
#define HOT_TALLY_PASSED_SOURCE 10
#define HOT_TALLY_PASSED_REQUEST 11
#define HOT_TALLY_PASSED_TOO_LONG 12

#define HOT_ASSERT_FIELD(field, offset) \
	_Static_assert(__builtin_offsetof(struct hot_slot, field) == (offset), #field)

_Static_assert(sizeof(struct hot_slot) == HOT_SLOT_BYTES, "slot");
_Static_assert(sizeof(struct hot_control) == HOT_CONTROL_BYTES, "control");
HOT_ASSERT_FIELD(state, HOT_SLOT_STATE);
HOT_ASSERT_FIELD(epoch, HOT_SLOT_EPOCH);
HOT_ASSERT_FIELD(deadline_ns, HOT_SLOT_DEADLINE_NS);
HOT_ASSERT_FIELD(keyhash, HOT_SLOT_KEYHASH);
HOT_ASSERT_FIELD(cas, HOT_SLOT_CAS);
HOT_ASSERT_FIELD(flags, HOT_SLOT_FLAGS);
HOT_ASSERT_FIELD(value_bytes, HOT_SLOT_VALUE_BYTES);
HOT_ASSERT_FIELD(key_bytes, HOT_SLOT_KEY_BYTES);
HOT_ASSERT_FIELD(get_line_bytes, HOT_SLOT_GET_LINE_BYTES);
HOT_ASSERT_FIELD(gets_line_bytes, HOT_SLOT_GETS_LINE_BYTES);
HOT_ASSERT_FIELD(sum_key, HOT_SLOT_SUM_KEY);
HOT_ASSERT_FIELD(sum_get_line, HOT_SLOT_SUM_GET_LINE);
HOT_ASSERT_FIELD(sum_gets_line, HOT_SLOT_SUM_GETS_LINE);
HOT_ASSERT_FIELD(sum_value, HOT_SLOT_SUM_VALUE);
HOT_ASSERT_FIELD(sum_body, HOT_SLOT_SUM_BODY);
HOT_ASSERT_FIELD(verb, HOT_SLOT_LINE);
HOT_ASSERT_FIELD(key, HOT_SLOT_KEY);
HOT_ASSERT_FIELD(line_end, HOT_SLOT_BODY);
HOT_ASSERT_FIELD(value, HOT_SLOT_VALUE);

#endif
