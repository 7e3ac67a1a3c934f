//! Digests of long replies, so that a reply which leaves in many windows is hashed once.
//!
//! A digest belongs to a key, a CAS unique and a form of reply. Another value of the key has
//! another unique, unless a client chose the unique itself (`ms` with `E`); for that, a digest is
//! forgotten after [`NATIVE_DIGEST_MS`]. Until then such a value cannot be read: the client sees
//! that the digest is not that of the bytes, and asks again. Uniques that are zero (`-C`) tell
//! nothing, and are not remembered.

use glimmer_base::limits::{NATIVE_DIGEST_MS, NATIVE_DIGESTS_MAX};

/// Digests among which the oldest is replaced.
const WAYS: usize = 4;

/// What a digest is the digest of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Hash of the key.
    pub keyhash: u64,
    /// The item's CAS unique.
    pub unique: u64,
    /// Whether the reply shows it.
    pub shows_cas: bool,
    /// Bytes of the reply.
    pub message_bytes: u32,
}

#[derive(Clone, Copy, Default)]
struct Known {
    name: Name,
    digest: u64,
    until_ms: u64,
}

/// The digests that a worker remembers.
pub struct Digests {
    sets: Box<[[Known; WAYS]]>,
}

impl Digests {
    /// Bytes that they take.
    pub const BYTES: usize = NATIVE_DIGESTS_MAX * size_of::<Known>();

    /// None yet.
    pub fn new() -> Digests {
        Digests {
            sets: vec![[Known::default(); WAYS]; NATIVE_DIGESTS_MAX / WAYS].into_boxed_slice(),
        }
    }

    /// The digest of a reply, if it is remembered.
    pub fn get(&self, name: &Name, now_ms: u64) -> Option<u64> {
        let set = &self.sets[self.set_of(name)];
        let is_it = |known: &&Known| known.name == *name && now_ms < known.until_ms;
        set.iter().find(is_it).map(|known| known.digest)
    }

    /// Remembers the digest of a reply.
    pub fn put(&mut self, name: Name, digest: u64, now_ms: u64) {
        if name.unique == 0 {
            return;
        }
        let set = self.set_of(&name);
        let oldest = self.sets[set].iter_mut().min_by_key(|known| {
            // Its own place, if it has one.
            let is_it = known.name == name;
            (!is_it, known.until_ms)
        });
        if let Some(oldest) = oldest {
            *oldest = Known {
                name,
                digest,
                until_ms: now_ms + NATIVE_DIGEST_MS,
            };
        }
    }

    fn set_of(&self, name: &Name) -> usize {
        name.keyhash as usize % self.sets.len()
    }
}

const _: () = assert!(
    NATIVE_DIGESTS_MAX.is_multiple_of(WAYS) && NATIVE_DIGESTS_MAX >= WAYS,
    "there are whole sets"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn name(keyhash: u64, unique: u64) -> Name {
        Name {
            keyhash,
            unique,
            shows_cas: false,
            message_bytes: 5000,
        }
    }

    #[test]
    fn a_digest_is_that_of_one_value_in_one_form() {
        let mut digests = Digests::new();
        digests.put(name(1, 2), 77, 10);
        assert_eq!(digests.get(&name(1, 2), 10), Some(77));
        let shown = Name {
            shows_cas: true,
            ..name(1, 2)
        };
        let longer = Name {
            message_bytes: 5001,
            ..name(1, 2)
        };
        for other in [name(1, 3), name(2, 2), shown, longer] {
            assert_eq!(digests.get(&other, 10), None);
        }
    }

    #[test]
    fn a_digest_is_forgotten_in_time_and_when_others_come() {
        let mut digests = Digests::new();
        digests.put(name(1, 2), 77, 10);
        assert_eq!(digests.get(&name(1, 2), 9 + NATIVE_DIGEST_MS), Some(77));
        assert_eq!(digests.get(&name(1, 2), 10 + NATIVE_DIGEST_MS), None);
        for unique in 1..=WAYS as u64 {
            digests.put(name(1, unique), unique, unique);
        }
        digests.put(name(1, 2), 2, 50);
        digests.put(name(1, 9), 9, 60);
        assert_eq!(digests.get(&name(1, 1), 60), None, "the oldest");
        for unique in [2, 3, 4, 9] {
            assert_eq!(digests.get(&name(1, unique), 60), Some(unique));
        }
        digests.put(name(1, 0), 5, 60);
        assert_eq!(digests.get(&name(1, 0), 60), None, "it is everybody's");
    }
}
