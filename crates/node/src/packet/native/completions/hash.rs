//! How clients and networks are hashed: by a key that only the server knows, so that no client can
//! prepare clients that collide, and that the configuration gives, so that a run can be repeated.

use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A map by clients or networks.
pub type Map<K, V> = HashMap<K, V, Keyed>;

/// Makes hashers with one key.
#[derive(Clone, Copy)]
pub struct Keyed(pub [u64; 2]);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0[0], self.0[1])
    }
}
