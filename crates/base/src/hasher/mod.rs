//! The server's own hash of keys: what clients may know of a keyhash, and what they must not.

mod aes;

use crate::limits::KEY_BYTES_MAX;
use crate::{Keyhash, Seed};
use aes::RoundKeys;
use std::fmt;
use std::sync::Arc;

/// Bytes of a block.
const BLOCK: usize = 16;
/// Blocks of the longest key.
const BLOCKS_MAX: usize = KEY_BYTES_MAX.div_ceil(BLOCK);
/// More than there are lengths of keys.
const LENGTHS: usize = 256;
const _: () = assert!(KEY_BYTES_MAX < LENGTHS);

/// Hashes keys for the tables of a server.
///
/// Where native clients are served, a keyhash has two sources: they have to know the owner of a
/// key, and nothing else.
///
/// ```text
///  63          48 47                            16 15            0
/// +--------------+--------------------------------+---------------+
/// |  partition   |             bucket             |      tag      |
/// +--------------+--------------------------------+---------------+
///  XXH3, the seed         a function of the key that is chosen by
///  is public              a secret which never leaves the process
/// ```
///
/// Where none are served, all of it is secret.
///
/// # The secret function
///
/// A key of up to 16 bytes becomes a block of 16: its first and its last bytes, which together are
/// all of it. A longer key becomes a block by NH (Black et al., UMAC, CRYPTO'99): the sum modulo
/// 2^128 of the products of its words of 64 bits, to each of which a secret word is added. The
/// block, exclusive-or a secret block for each length, is encrypted by AES-128 under a secret key.
/// 64 bits of the result are the hash.
///
/// *Why nobody can compute keys that collide.* Two keys come to the same encryption with a
/// probability of at most 2^-64 over the secret: keys of one length never do up to 16 bytes, and
/// beyond that by NH's theorem; keys of different lengths do with 2^-128. AES under an unknown key
/// is a pseudo-random permutation, so the hashes of all others are those of a random function, as
/// long as far fewer than 2^64 keys are hashed. So no key says anything about another one's bucket
/// or tag: even who knew the hashes of all keys but one would know no more of that one's than its
/// partition. XXH3 in contrast is inverted by who knows the seed, and nothing is claimed of it for
/// those who do not.
///
/// *What a client can observe* is therefore no more than which of the keys that it has happened to
/// choose share a bucket:
///
/// - Listings (`lru_crawler metadump`, `stats cachedump`) are in the order of the index. So who may
///   list, and stores keys of its own, can see which of them lie in a chain with another key: one
///   in as many as there are buckets. To displace that key from its chain takes more than a hundred
///   of them. To find those, the client has to store several times as many bytes as the memory
///   holds, which evicts what is not read anyway.
/// - Evictions, a hit or miss of the accelerator and how long a request takes say the same more
///   slowly.
///
/// What was found so about one key helps with no other key, and not after a restart. In store mode
/// it helps with nothing: see `Heap::OVERFLOWS` in the store.
///
/// *Partitions* are another matter. A native client that fills one partition, by keys of it alone,
/// has that partition's items evicted while others have room. It needs to store as much as a
/// partition holds.
///
/// The function is the same on every machine, so that it can be kept in a file with its secret.
#[derive(Clone)]
pub struct KeyHasher(Arc<Inner>);

struct Inner {
    keyhash: Function,
    /// What computes the secret function: the two halves of its result.
    halves: [Function; 2],
    /// The seed that native clients know.
    public: Seed,
    keys: Keys,
    known: Known,
}

/// Code that computes 64 bits. It may need instructions that not every processor has.
type Function = unsafe fn(&Inner, &[u8]) -> u64;

/// What stands for the secret where nothing is kept from anybody.
enum Known {
    Nothing,
    Seed(Seed),
    Chosen(fn(&[u8]) -> [u64; 2]),
}

/// What a secret is expanded to.
struct Keys {
    rounds: RoundKeys,
    /// For the words of each block of a long key; the last is for its last block.
    pairs: [[u64; 2]; BLOCKS_MAX],
    /// By the length of the key.
    whitening: [u128; LENGTHS],
}

impl KeyHasher {
    /// A hasher with this secret: numbers that cannot be predicted. `public` is the seed that
    /// native clients know, if there are any.
    pub fn secret(secret: [u64; 2], public: Option<Seed>) -> KeyHasher {
        let [halves, [with_public, _]]: [[Function; 2]; 2] = match aes::has_fast() {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            true => [[fast::<0>, fast::<1>], [fast_with_public, fast::<1>]],
            _ => [[plain::<0>, plain::<1>], [plain_with_public, plain::<1>]],
        };
        KeyHasher(Arc::new(Inner {
            keyhash: match public {
                None => halves[0],
                Some(_) => with_public,
            },
            halves,
            public: public.unwrap_or(Seed(0)),
            keys: Keys::expand(secret),
            known: Known::Nothing,
        }))
    }

    /// XXH3 with a seed, for tests and measurements of tables alone.
    pub fn known(seed: Seed) -> KeyHasher {
        KeyHasher::without_secret(Known::Seed(seed))
    }

    /// A hasher whose results a test chooses: of the function, and of its other half.
    pub fn chosen(choose: fn(&[u8]) -> [u64; 2]) -> KeyHasher {
        KeyHasher::without_secret(Known::Chosen(choose))
    }

    fn without_secret(known: Known) -> KeyHasher {
        KeyHasher(Arc::new(Inner {
            keyhash: known_half::<0>,
            halves: [known_half::<0>, known_half::<1>],
            public: Seed(0),
            keys: Keys::NONE,
            known,
        }))
    }

    /// The keyhash of a key.
    #[inline(always)]
    pub fn keyhash(&self, key: &[u8]) -> Keyhash {
        let inner = &*self.0;
        // SAFETY: the processor has what the function needs, as `secret` has seen.
        Keyhash(unsafe { (inner.keyhash)(inner, key) })
    }

    /// The keyhash of a key whose public keyhash a client has sent. No more of that is believed
    /// than the partition, so that a wrong one looks for the key where it is not.
    #[inline]
    pub fn keyhash_in(&self, public: Keyhash, key: &[u8]) -> Keyhash {
        joined(public, self.half(0, key))
    }

    /// Another keyhash of a key, in the same partition and at least a quarter of all buckets away
    /// from the first one. Keys that collide in the first one do not collide in this one.
    #[cold]
    pub fn second(&self, first: Keyhash, key: &[u8]) -> Keyhash {
        apart(first, self.half(1, key))
    }

    #[inline(always)]
    fn half(&self, half: usize, key: &[u8]) -> u64 {
        let inner = &*self.0;
        // SAFETY: the processor has what the function needs, as `secret` has seen.
        unsafe { inner.halves[half](inner, key) }
    }
}

impl From<Seed> for KeyHasher {
    fn from(seed: Seed) -> KeyHasher {
        KeyHasher::known(seed)
    }
}

/// Says nothing of the secret.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

#[inline(always)]
fn joined(public: Keyhash, secret: u64) -> Keyhash {
    Keyhash(public.0 & Keyhash::PARTITION | secret & !Keyhash::PARTITION)
}

/// A keyhash whose tag is that of `random`, and whose bucket bits are those of `first` and from a
/// quarter to three quarters of all numbers more.
fn apart(first: Keyhash, random: u64) -> Keyhash {
    let away = (1 << 30) + ((random >> 16) as u32 >> 1);
    let bucket = ((first.0 >> 16) as u32).wrapping_add(away);
    joined(first, u64::from(bucket) << 16 | random & 0xFFFF)
}

/// The code for processors with instructions for AES.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[target_feature(enable = "aes")]
fn fast<const HALF: u32>(inner: &Inner, key: &[u8]) -> u64 {
    (aes::fast(&inner.keys.rounds, inner.keys.block(key)) >> (64 * HALF)) as u64
}

/// The whole keyhash.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[target_feature(enable = "aes")]
fn fast_with_public(inner: &Inner, key: &[u8]) -> u64 {
    joined(inner.public.keyhash(key), fast::<0>(inner, key)).0
}

fn plain<const HALF: u32>(inner: &Inner, key: &[u8]) -> u64 {
    (aes::plain(&inner.keys.rounds, inner.keys.block(key)) >> (64 * HALF)) as u64
}

fn plain_with_public(inner: &Inner, key: &[u8]) -> u64 {
    joined(inner.public.keyhash(key), plain::<0>(inner, key)).0
}

fn known_half<const HALF: usize>(inner: &Inner, key: &[u8]) -> u64 {
    match inner.known {
        Known::Nothing => unreachable!("a secret has code of its own"),
        Known::Seed(Seed(seed)) => Seed(seed ^ HALF as u64).keyhash(key).0,
        Known::Chosen(choose) => choose(key)[HALF],
    }
}

impl Keys {
    const NONE: Keys = Keys {
        rounds: [0; aes::ROUNDS + 1],
        pairs: [[0; 2]; BLOCKS_MAX],
        whitening: [0; LENGTHS],
    };

    /// Everything is encrypted by the secret: the second key, and then numbers.
    fn expand([low, high]: [u64; 2]) -> Keys {
        let secret = aes::round_keys(u128::from(high) << 64 | u128::from(low));
        let mut numbers = 0..;
        let mut next = || {
            let number: u128 = numbers.next().expect("there is no end");
            aes::plain(&secret, number ^ secret[0])
        };
        Keys {
            rounds: aes::round_keys(next()),
            pairs: std::array::from_fn(|_| {
                let pair = next();
                [pair as u64, (pair >> 64) as u64]
            }),
            whitening: std::array::from_fn(|_| next()),
        }
    }

    /// The block of a key, whitened.
    #[inline(always)]
    fn block(&self, key: &[u8]) -> u128 {
        let len = key.len();
        let two = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
        let block = match len {
            8..=16 => two(word(key, 0), word(key, len - 8)),
            17.. => self.sum(key),
            4..8 => two(half_word(key, 0), half_word(key, len - 4)),
            1..4 => two(
                u64::from(key[0]) | u64::from(key[len / 2]) << 8,
                u64::from(key[len - 1]),
            ),
            0 => 0,
        };
        block ^ self.whitening[len % LENGTHS]
    }

    /// NH of a key of more than one block. The last block ends where the key does. No key of a
    /// request has more blocks than there are pairs; of longer ones nothing is claimed.
    #[inline(always)]
    fn sum(&self, key: &[u8]) -> u128 {
        let (last, pairs) = self.pairs.split_last().expect("there are pairs");
        let mut sum = product(&key[key.len() - BLOCK..], last);
        // Most keys are no longer, and a loop takes as long as their products.
        if key.len() <= 2 * BLOCK {
            return sum.wrapping_add(product(&key[..BLOCK], &pairs[0]));
        }
        for (block, pair) in key[..key.len() - 1].chunks_exact(BLOCK).zip(pairs) {
            sum = sum.wrapping_add(product(block, pair));
        }
        sum
    }
}

#[inline(always)]
fn product(block: &[u8], pair: &[u64; 2]) -> u128 {
    let low = word(block, 0).wrapping_add(pair[0]);
    let high = word(block, 8).wrapping_add(pair[1]);
    u128::from(low) * u128::from(high)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[inline(always)]
fn half_word(bytes: &[u8], at: usize) -> u64 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SECRET: [u64; 2] = [0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210];
    const PUBLIC: Seed = Seed(0x5EED);

    /// A key of each length, and one more of each.
    fn keys() -> impl Iterator<Item = Vec<u8>> {
        let bytes = |from: usize, len: usize| (from..from + len).map(|it| it as u8).collect();
        (0..LENGTHS).flat_map(move |len| [bytes(0, len), bytes(77, len)])
    }

    /// The fast code and the plain code compute the same.
    #[test]
    fn every_processor_computes_the_same() {
        let (alone, beside) = (
            KeyHasher::secret(SECRET, None),
            KeyHasher::secret(SECRET, Some(PUBLIC)),
        );
        for key in keys() {
            let halves = [plain::<0>(&alone.0, &key), plain::<1>(&alone.0, &key)];
            let keyhash = alone.keyhash(&key);
            assert_eq!(keyhash, Keyhash(halves[0]), "{key:?}");
            assert_eq!(alone.second(keyhash, &key), apart(keyhash, halves[1]));
            let keyhash = joined(PUBLIC.keyhash(&key), halves[0]);
            assert_eq!(beside.keyhash(&key), keyhash);
            assert_eq!(plain_with_public(&beside.0, &key), keyhash.0);
            assert_eq!(beside.keyhash_in(PUBLIC.keyhash(&key), &key), keyhash);
        }
    }

    /// The function stays what it is: files may be kept with a secret.
    #[test]
    fn golden_values() {
        let hasher = KeyHasher::secret(SECRET, None);
        for (key, golden) in [
            ("k", 0x9C05_C188_A35A_DC00),
            ("1234567", 0x720B_04FE_E255_7570),
            ("key:000000000001", 0x6389_2D81_2043_AF6E),
            ("a key of more than one block", 0x4686_7848_72A7_9A54),
            (
                "a key of more than two blocks, which are sixteen bytes each",
                0x3556_9E88_FEF8_DDE1,
            ),
        ] {
            let Keyhash(hash) = hasher.keyhash(key.as_bytes());
            assert_eq!(hash, golden, "{hash:#x} {key}");
        }
    }

    /// Keys that begin or end alike, and keys whose bytes are all zero, have hashes of their own,
    /// in both halves and under both secrets.
    #[test]
    fn no_two_of_many_keys_collide() {
        let mut seen = HashSet::new();
        let zeros = [0; 64];
        for hasher in [[0; 2], SECRET].map(|secret| KeyHasher::secret(secret, None)) {
            let mut see = |key: &[u8]| {
                assert!(seen.insert(hasher.half(0, key)), "{key:?}");
                assert!(seen.insert(hasher.half(1, key)), "{key:?}");
            };
            (0..=zeros.len()).for_each(|len| see(&zeros[..len]));
            for len in 1..=zeros.len() {
                for at in 0..len {
                    let mut key = zeros[..len].to_vec();
                    key[at] = 1;
                    see(&key);
                }
            }
        }
    }

    #[test]
    fn second_keyhashes_are_in_other_buckets() {
        let hasher = KeyHasher::secret(SECRET, None);
        for key in keys() {
            for first in [Keyhash(0), Keyhash(u64::MAX), hasher.keyhash(&key)] {
                let second = hasher.second(first, &key);
                assert_eq!(first.partition(1 << 16), second.partition(1 << 16));
                for buckets in [4, 5, 1_000] {
                    assert_ne!(first.bucket(buckets), second.bucket(buckets));
                }
            }
        }
    }

    #[test]
    fn a_hasher_says_nothing_of_its_secret() {
        let shown = format!("{:?}", KeyHasher::secret(SECRET, Some(PUBLIC)));
        assert_eq!(shown, "KeyHasher { .. }");
    }
}
