/* Finds the slot of a key, and knows afterwards whether it was valid. The order of the loads is
 * that of crates/hotset/src/layout/slot.rs and control.rs; x86-64 executes loads in their order.
 */
#ifndef GLIMMER_XDP_LOOKUP_H
#define GLIMMER_XDP_LOOKUP_H

#include "key.h"
#include "request.h"

#define NEVER_NS (~0ULL)

/* A look at a slot. What it shows is valid only if is_unchanged() says so afterwards. */
struct look {
	struct hot_slot *slot;
	__u32 place;
	__u64 state;
};

INLINE int look_at(struct look *look, __u32 place, const __u8 *key, __u32 key_bytes)
{
	struct hot_slot *slot = map_lookup(&slots, &place);

	if (!slot)
		return 0;
	look->slot = slot;
	look->place = place;
	look->state = READ_ONCE(slot->state);
	if ((look->state & (HOT_STATE_LIVE | HOT_STATE_WRITING)) != HOT_STATE_LIVE)
		return 0;
	COMPILER_BARRIER();
	return slot->key_bytes == key_bytes && keys_equal(slot->key, key, key_bytes);
}

/* Finds a key that may be answered now. Returns PASSED or the reason why not. */
INLINE __u32 find(const struct hot_control *all, const struct scratch *scratch,
		  const struct request *request, struct look *look)
{
	const __u8 *key = scratch->request + request->key_at;
	__u64 hash, doubt, flush_at_ns, deadline_ns;

	hash = hash_key(all->seed, key, request->key_bytes, &doubt);
	if (doubt != 0 && request->form != HOT_TALLY_HITS_BINARY)
		return HOT_TALLY_PASSED_REQUEST;
	if (READ_ONCE(all->paused) != 0)
		return HOT_TALLY_PASSED_PAUSED;
	if (!look_at(look, (hash & 0xffffffff) * all->slots >> 32, key, request->key_bytes) &&
	    !look_at(look, (hash >> 32) * all->slots >> 32, key, request->key_bytes))
		return HOT_TALLY_MISSES;
	/* The time first, then the epoch. */
	flush_at_ns = READ_ONCE(all->flush_at_ns);
	if (READ_ONCE(all->epoch) != look->slot->epoch)
		return HOT_TALLY_FLUSHED;
	deadline_ns = look->slot->deadline_ns;
	/* Most items never expire, and reading the clock takes a while. */
	if ((flush_at_ns & deadline_ns) != NEVER_NS) {
		__u64 now_ns = ktime_get_ns();

		if (now_ns >= flush_at_ns)
			return HOT_TALLY_FLUSHED;
		if (now_ns >= deadline_ns)
			return HOT_TALLY_EXPIRED;
	}
	return PASSED;
}

/* The recheck, at which a hit takes place. */
INLINE int is_unchanged(const struct hot_control *all, const struct look *look)
{
	COMPILER_BARRIER();
	return READ_ONCE(look->slot->state) == look->state && READ_ONCE(all->fail_rechecks) == 0;
}

#endif
