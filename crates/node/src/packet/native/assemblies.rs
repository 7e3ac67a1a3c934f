//! Fragmented requests under reassembly. Only clients with a validated address may have them, a few
//! each, within a limit for all of them. Requests without progress are given up. When there is no
//! room, the network with the most gives way to a network that would still have less.

use glimmer_base::limits::{
    KEY_BYTES_MAX, NATIVE_ASSEMBLIES_MAX, NATIVE_ASSEMBLIES_PER_CLIENT_MAX, NATIVE_ASSEMBLY_IDLE_MS,
};
use glimmer_proto::native::Fragment;
use glimmer_proto::native::fragment::{Assembly, DATA_BYTES, Joined, WINDOW};
use glimmer_proto::native::request::{EXTRAS_BYTES_MAX, RECORD_BYTES};

/// The effect of a fragment.
pub enum Taken {
    /// The first missing byte of the request.
    Lacks(u32),
    /// The request is complete.
    Complete(Vec<u8>),
    /// The request is longer than any item.
    TooLarge,
    /// There is no room for another request.
    Full,
}

struct Held {
    network: u64,
    client: u64,
    sequence: u32,
    heard_ms: u64,
    assembly: Assembly,
}

/// The requests under reassembly at one worker.
pub struct Assemblies {
    held: Vec<Held>,
    /// Maximum length of a request in bytes.
    request_bytes_max: usize,
    /// Maximum length of all requests together in bytes.
    bytes_max: usize,
}

/// Length of the longest request for this item limit.
pub fn request_bytes_max(item_bytes_max: usize) -> usize {
    RECORD_BYTES + EXTRAS_BYTES_MAX + KEY_BYTES_MAX + item_bytes_max
}

impl Assemblies {
    /// Space for requests with this item limit, `bytes_max` in total.
    pub fn new(item_bytes_max: usize, bytes_max: usize) -> Assemblies {
        Assemblies {
            held: Vec::new(),
            request_bytes_max: request_bytes_max(item_bytes_max),
            bytes_max,
        }
    }

    /// Bytes reserved for requests.
    pub fn bytes(&self) -> usize {
        self.held
            .iter()
            .map(|held| held.assembly.message_bytes())
            .sum()
    }

    /// Adds a fragment of a client's request from a network (see
    /// [`network`](glimmer_transport::address::network)).
    pub fn take(
        &mut self,
        (network, client): (u64, u64),
        sequence: u32,
        fragment: &Fragment<'_>,
        now_ms: u64,
    ) -> Taken {
        if fragment.message_bytes as usize > self.request_bytes_max {
            return Taken::TooLarge;
        }
        let is_it = |held: &Held| (held.client, held.sequence) == (client, sequence);
        let at = match self.held.iter().position(is_it) {
            Some(at) => at,
            None if fragment.offset as usize >= WINDOW * DATA_BYTES => return Taken::Lacks(0),
            None => match self.begin((network, client), sequence, fragment, now_ms) {
                Some(at) => at,
                None => return Taken::Full,
            },
        };
        let held = &mut self.held[at];
        match held.assembly.join(fragment) {
            Joined::Complete => Taken::Complete(self.held.swap_remove(at).assembly.into_bytes()),
            Joined::More => {
                held.heard_ms = now_ms;
                Taken::Lacks(held.assembly.next())
            }
            Joined::OutOfOrder => Taken::Lacks(held.assembly.next()),
            // A sequence number identifies one request at a time. A client that reuses it starts
            // again.
            Joined::Foreign | Joined::Corrupt => {
                self.held.swap_remove(at);
                Taken::Lacks(0)
            }
        }
    }

    /// Gives up requests without progress.
    pub fn expire(&mut self, now_ms: u64) {
        self.held
            .retain(|held| now_ms.saturating_sub(held.heard_ms) < NATIVE_ASSEMBLY_IDLE_MS);
    }

    fn begin(
        &mut self,
        (network, client): (u64, u64),
        sequence: u32,
        fragment: &Fragment<'_>,
        now_ms: u64,
    ) -> Option<usize> {
        self.expire(now_ms);
        let held = self.held.iter().enumerate();
        let of_client = held.filter(|(_, held)| held.client == client);
        // Late duplicates of a complete request start it again and never complete it. They belong
        // to the same client and give way.
        if of_client.clone().count() >= NATIVE_ASSEMBLIES_PER_CLIENT_MAX
            && let Some((oldest, _)) = of_client.min_by_key(|(_, held)| held.heard_ms)
        {
            self.held.swap_remove(oldest);
        }
        let bytes = fragment.message_bytes as usize;
        while self.held.len() == NATIVE_ASSEMBLIES_MAX || self.bytes() + bytes > self.bytes_max {
            self.make_way(network, bytes)?;
        }
        self.held.push(Held {
            network,
            client,
            sequence,
            heard_ms: now_ms,
            assembly: Assembly::new(fragment),
        });
        Some(self.held.len() - 1)
    }

    /// Gives up the request that has been idle longest in the network that has the most. `None` if
    /// that network would not have more than `network` would have with another request of this
    /// length.
    fn make_way(&mut self, network: u64, bytes: usize) -> Option<()> {
        let networks = self.held.iter().map(|held| held.network);
        let most = networks.max_by_key(|&other| self.share(other, 0, 0))?;
        if most == network || self.share(most, 0, 0) <= self.share(network, 1, bytes) {
            return None;
        }
        let held = self.held.iter().enumerate();
        let its_own = held.filter(|(_, held)| held.network == most);
        let (oldest, _) = its_own.min_by_key(|(_, held)| held.heard_ms)?;
        self.held.swap_remove(oldest);
        Some(())
    }

    /// The share of a network, including additional requests: the larger of its share of slots and
    /// its share of bytes, measured in slots.
    fn share(&self, network: u64, more_places: usize, more_bytes: usize) -> usize {
        let its_own = self.held.iter().filter(|held| held.network == network);
        let (mut places, mut bytes) = (more_places, more_bytes);
        for held in its_own {
            places += 1;
            bytes += held.assembly.message_bytes();
        }
        places.max(bytes * NATIVE_ASSEMBLIES_MAX / self.bytes_max.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_proto::native::fragment::{DATA_BYTES, digest};

    fn message(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
    }

    #[test]
    fn fragments_come_together_whatever_is_lost_or_repeated() {
        let mut assemblies = Assemblies::new(1 << 20, 1 << 20);
        let message = message(5 * DATA_BYTES + 3);
        let part = |index: usize| Fragment::of(&message, digest(&message), index * DATA_BYTES);
        let mut lacks = |index: usize| match assemblies.take((0, 1), 9, &part(index), 0) {
            Taken::Lacks(next) => next as usize / DATA_BYTES,
            Taken::Complete(bytes) => {
                assert_eq!(bytes, message);
                100
            }
            Taken::TooLarge | Taken::Full => panic!("there is room"),
        };
        let order = [2, 0, 1, 3, 1, 2, 3, 5, 0, 4];
        let next = [0, 1, 3, 4, 4, 4, 4, 4, 4, 100];
        assert_eq!(order.map(&mut lacks), next);
        assert_eq!(assemblies.bytes(), 0);
    }

    #[test]
    fn a_client_that_begins_too_many_loses_its_own() {
        let message = message(2 * DATA_BYTES);
        let part = |index: usize| Fragment::of(&message, digest(&message), index * DATA_BYTES);
        let mut assemblies = Assemblies::new(1 << 20, 1 << 20);
        assemblies.take((0, 2), 0, &part(0), 0);
        for sequence in 0..=NATIVE_ASSEMBLIES_PER_CLIENT_MAX as u32 {
            assemblies.take((0, 1), sequence, &part(0), sequence.into());
        }
        let complete = |assemblies: &mut Assemblies, client, sequence| {
            let taken = assemblies.take((0, client), sequence, &part(1), 100);
            matches!(taken, Taken::Complete(_))
        };
        assert!(!complete(&mut assemblies, 1, 0), "the oldest gave way");
        assert!(complete(&mut assemblies, 1, 2) && complete(&mut assemblies, 2, 0));
    }

    #[test]
    fn room_is_bounded_and_comes_back() {
        let message = message(40_000);
        let first = Fragment::of(&message, digest(&message), 0);
        let mut assemblies = Assemblies::new(1 << 20, 100_000);
        let mut begins = |client, sequence, now_ms| {
            matches!(
                assemblies.take((0, client), sequence, &first, now_ms),
                Taken::Lacks(_)
            )
        };
        assert!(begins(1, 1, 0) && begins(2, 1, 0) && !begins(3, 1, 0));
        assert!(begins(3, 1, NATIVE_ASSEMBLY_IDLE_MS));
        let huge = Fragment {
            message_bytes: 2 << 20,
            ..first
        };
        assert!(matches!(
            assemblies.take((0, 1), 1, &huge, 0),
            Taken::TooLarge
        ));
    }

    /// One machine may have any number of clients.
    #[test]
    fn who_has_the_most_gives_way_to_who_has_less() {
        let message = message(40_000);
        let first = Fragment::of(&message, digest(&message), 0);
        let mut assemblies = Assemblies::new(1 << 20, 1_000_000);
        let mut begins = |network, client, now_ms| {
            let taken = assemblies.take((network, client), 1, &first, now_ms);
            matches!(taken, Taken::Lacks(_))
        };
        let of_one = (0..30).filter(|&client| begins(7, client, client)).count();
        assert_eq!(of_one, 25);
        // Another has half of it in the end, and no more; nor does the first come back.
        let of_other = (100..130).filter(|&client| begins(8, client, 100)).count();
        assert_eq!(of_other, 12);
        assert!(!begins(7, 40, 100) && begins(9, 1, 100));
    }

    #[test]
    fn places_are_shared_as_bytes_are() {
        let message = message(2 * DATA_BYTES);
        let first = Fragment::of(&message, digest(&message), 0);
        let mut assemblies = Assemblies::new(1 << 20, 1 << 20);
        for client in 0..NATIVE_ASSEMBLIES_MAX as u64 {
            assemblies.take((7, client), 1, &first, 0);
        }
        let large = Fragment {
            message_bytes: 400_000,
            ..first
        };
        let taken = assemblies.take((8, 1), 1, &large, 0);
        assert!(matches!(taken, Taken::Lacks(_)));
    }
}
