/* Keys, eight bytes at a time: the hash that places them, whether they are plain, and whether they
 * are equal. crates/hotset/src/hash.rs says which hash it is.
 */
#ifndef GLIMMER_XDP_KEY_H
#define GLIMMER_XDP_KEY_H

#include "memory.h"

#define WHOLE_WORDS_MAX (HOT_KEY_BYTES_MAX / 8)
#define HASH_FACTOR 0xc6a4a7935bd1e995ULL
#define EACH_BYTE 0x0101010101010101ULL

/* The bytes that the last word of a key has, 1 to 7 of them. */
INLINE __u64 last_mask(__u32 bytes)
{
	return ~0ULL >> (64 - 8 * bytes);
}

INLINE __u64 hash_step(__u64 seed, __u64 hash, __u64 word)
{
	word ^= seed;
	word *= HASH_FACTOR;
	word ^= word >> 47;
	return (hash ^ word * HASH_FACTOR) * HASH_FACTOR;
}

/* Not zero if a byte of the word may not be in a text's key: up to a space, or 0x7f. See "Bit
 * Twiddling Hacks" by S. E. Anderson, "Determine if a word has a byte less than n". */
INLINE __u64 not_plain(__u64 word)
{
	__u64 is_delete = word ^ EACH_BYTE * 0x7f;
	__u64 below = (word - EACH_BYTE * 0x21) & ~word;
	__u64 equal = (is_delete - EACH_BYTE) & ~is_delete;

	return (below | equal) & EACH_BYTE * 0x80;
}

/* The hash of a key, and in `doubt` whether it is not plain. */
INLINE __u64 hash_key(__u64 seed, const __u8 *key, __u32 bytes, __u64 *doubt)
{
	__u64 hash = seed ^ bytes * HASH_FACTOR;
	__u64 doubts = 0;

	for (__u32 i = 0; i < WHOLE_WORDS_MAX; i++) {
		if (bytes < 8)
			break;
		doubts |= not_plain(U64(key));
		hash = hash_step(seed, hash, U64(key));
		key += 8;
		bytes -= 8;
	}
	if (bytes != 0) {
		__u64 mask = last_mask(bytes & 7);
		__u64 word = U64(key) & mask;

		/* Bytes after the key are replaced by plain ones. */
		doubts |= not_plain(word | (~mask & EACH_BYTE * 'x'));
		hash = hash_step(seed, hash, word);
	}
	*doubt = doubts;
	hash ^= hash >> 47;
	hash *= HASH_FACTOR;
	return hash ^ hash >> 47;
}

INLINE int keys_equal(const __u8 *one, const __u8 *other, __u32 bytes)
{
	for (__u32 i = 0; i < WHOLE_WORDS_MAX; i++) {
		if (bytes < 8)
			break;
		if (U64(one) != U64(other))
			return 0;
		one += 8;
		other += 8;
		bytes -= 8;
	}
	return bytes == 0 || ((U64(one) ^ U64(other)) & last_mask(bytes & 7)) == 0;
}

#endif
