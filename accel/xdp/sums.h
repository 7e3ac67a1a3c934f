/* The Internet checksum (RFC 1071), put together from sums of pieces. A sum is that of 16-bit words
 * in the order of the machine.
 */
#ifndef GLIMMER_XDP_SUMS_H
#define GLIMMER_XDP_SUMS_H

#include "kernel.h"

/* Adds the carries back until 16 bits are left. A sum that is not zero does not become zero. */
INLINE __u32 fold(__u64 sum)
{
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 32) + (sum & 0xffffffff);
	sum = (sum >> 16) + (sum & 0xffff);
	sum = (sum >> 16) + (sum & 0xffff);
	return (sum >> 16) + (sum & 0xffff);
}

/* The sum of a piece at this offset: at an odd one, each byte falls on the other half of a word. */
INLINE __u32 sum_at(__u32 offset, __u32 sum)
{
	return offset & 1 ? BE16((__u16)sum) : sum;
}

/* The sum of a whole number of 32-bit words, few of them. */
INLINE __u64 sum_words(const __u8 *at, __u32 words)
{
	__u64 sum = 0;

#pragma unroll
	for (__u32 word = 0; word < words; word++)
		sum += U32(at + 4 * word);
	return sum;
}

#endif
