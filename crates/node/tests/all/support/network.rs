//! A network between a client and the workers of a server, which loses, repeats, delays and cuts
//! off datagrams, in time that is a number.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use glimmer_base::limits::PACKET_BATCH_MAX;
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::native::Sent;

/// A tenth of the time is an outage, longer than the patience of the clients that are tested with
/// it.
const OUTAGE_US: u64 = 400_000;
const OUTAGE_EVERY_US: u64 = 4_000_000;

/// A datagram under way: when it arrives, a number to keep order by, whither (none: to the client),
/// and its bytes.
type Packet = Reverse<(u64, u64, Option<usize>, Vec<u8>)>;

/// What a network does to a datagram, in thousandths of them.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub lost: u32,
    pub repeated: u32,
    pub cut: u32,
    pub delay_us_max: u64,
    pub has_outages: bool,
}

pub struct Network {
    pub faults: Faults,
    rng: SmallRng,
    under_way: BinaryHeap<Packet>,
    count: u64,
}

impl Network {
    pub fn new(faults: Faults, seed: u64) -> Network {
        Network {
            faults,
            rng: SmallRng::seed_from_u64(seed),
            under_way: BinaryHeap::new(),
            count: 0,
        }
    }

    /// Sends the datagrams of a segment batch to a worker, or to the client.
    pub fn carry(&mut self, to: Option<usize>, bytes: &[u8], segment_bytes: usize, now_us: u64) {
        for datagram in bytes.chunks(segment_bytes) {
            let is_out = self.faults.has_outages && now_us % OUTAGE_EVERY_US < OUTAGE_US;
            if is_out || self.rng.random_ratio(self.faults.lost, 1000) {
                continue;
            }
            let mut copies = 1;
            if self.rng.random_ratio(self.faults.repeated, 1000) {
                copies += 1;
            }
            for copy in 0..copies {
                let mut bytes = datagram.to_vec();
                if self.rng.random_ratio(self.faults.cut, 1000) {
                    bytes.truncate(self.rng.random_range(0..bytes.len()));
                }
                // What is repeated may come very late.
                let delay_us = match copy {
                    0 => self.rng.random_range(20..=self.faults.delay_us_max),
                    _ => self.rng.random_range(20..=1_500_000),
                };
                self.count += 1;
                let packet = (now_us + delay_us, self.count, to, bytes);
                self.under_way.push(Reverse(packet));
            }
        }
    }

    /// When the next datagram arrives.
    pub fn arrives_us(&self) -> u64 {
        (self.under_way.peek()).map_or(u64::MAX, |packet| packet.0.0)
    }

    /// What has arrived by now: the client is told of each datagram of its own, and the workers'
    /// are returned.
    pub fn arrivals(
        &mut self,
        now_us: u64,
        mut to_client: impl FnMut(&[u8]),
    ) -> BTreeMap<usize, Vec<Sent>> {
        let mut arrived: BTreeMap<usize, Vec<Sent>> = BTreeMap::new();
        while let Some(Reverse((at_us, ..))) = self.under_way.peek()
            && *at_us <= now_us
        {
            let Some(Reverse((_, _, to, bytes))) = self.under_way.pop() else {
                break;
            };
            match to {
                None => to_client(&bytes),
                Some(worker) => {
                    let segment_bytes = bytes.len().max(1);
                    let segment_batches = arrived.entry(worker).or_default();
                    if segment_batches.len() < PACKET_BATCH_MAX {
                        segment_batches.push(Sent {
                            bytes,
                            segment_bytes,
                        });
                    }
                }
            }
        }
        arrived
    }
}
