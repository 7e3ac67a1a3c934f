//! Giving an item a new expiry: in its own field if it has one, else by writing it anew with its
//! old CAS unique.

use super::{Mark, Writer};
use crate::access::Access;
use crate::evict::Evict;
use crate::heap::{NewItem, write_expiry};
use glimmer_base::{Expiry, Keyhash, Moment};

impl<A: Access, E: Evict> Writer<'_, A, E> {
    /// Changes when the key's item expires; says whether there was one. Counts as a read. The CAS
    /// unique stays: touching is no mutation.
    pub fn touch(&mut self, keyhash: Keyhash, key: &[u8], expiry: Expiry, now: Moment) -> bool {
        let shared = self.shared;
        let Some(found) = self.find(keyhash, key, now) else {
            return false;
        };
        let item = found.item;
        match (item.layout().expiry, expiry != Expiry::NEVER) {
            (false, false) => {}
            (true, true) => {
                let home = shared.index.bucket(shared.index.home(keyhash));
                home.write_begin(A::SHARED_READS);
                write_expiry(&item, expiry);
                home.write_end(A::SHARED_READS);
            }
            _ => {
                let mut value = Vec::new();
                item.value().append_to(&mut value);
                let again = NewItem {
                    key,
                    value: [&value, &[]],
                    flags: item.flags(),
                    expiry,
                };
                self.put_as(keyhash, &again, item.cas(), now);
                return true;
            }
        }
        self.count_read(
            keyhash,
            Mark {
                slot: found.slot,
                entry: found.entry,
            },
            now,
        );
        true
    }
}
