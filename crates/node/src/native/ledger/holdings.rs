//! What each network has of what all clients may have.

use std::collections::HashMap;

/// Places and bytes.
type Amounts = (usize, usize);

/// By network.
#[derive(Default)]
pub struct Holdings {
    of: HashMap<u64, Amounts>,
}

impl Holdings {
    /// A network has taken so much.
    pub fn add(&mut self, network: u64, places: usize, bytes: usize) {
        let (its_places, its_bytes) = self.of.entry(network).or_default();
        *its_places += places;
        *its_bytes += bytes;
    }

    /// A network has given so much back.
    pub fn remove(&mut self, network: u64, places: usize, bytes: usize) {
        if let Some((its_places, its_bytes)) = self.of.get_mut(&network) {
            *its_places -= places;
            *its_bytes -= bytes;
            if *its_places == 0 {
                self.of.remove(&network);
            }
        }
    }

    /// The network that has the greatest part of what all may have, if it has a greater one than `network` would with what it needs.
    pub fn heavier_than(&self, network: u64, needed: Amounts, of_all: Amounts) -> Option<u64> {
        let (places, bytes) = self.of.get(&network).copied().unwrap_or_default();
        let with_needed = part((places + needed.0, bytes + needed.1), of_all);
        let parts = self
            .of
            .iter()
            .map(|(&network, &has)| (part(has, of_all), network));
        let (most, heaviest) = parts.max()?;
        (heaviest != network && most > with_needed).then_some(heaviest)
    }
}

/// The part of the places or of the bytes, whichever is greater, in thousandths.
fn part((places, bytes): Amounts, (places_max, bytes_max): Amounts) -> usize {
    (1000 * places / places_max).max(1000 * bytes / bytes_max)
}
