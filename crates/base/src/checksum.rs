//! The checksum of stored bytes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The checksum of these bytes under a seed: XXH3 with 64 bits. It finds damage. It finds forgery
/// only as far as the seed is a secret.
pub fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}
