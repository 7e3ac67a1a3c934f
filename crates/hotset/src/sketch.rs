//! How often keys are read, approximately: a count-min sketch with conservative update (Estan and
//! Varghese, SIGCOMM'02) whose counts are halved now and then (TinyLFU, ACM ToS 2017).
//!
//! Other candidates were Space-Saving, which keeps a list of the heavy keys, and HeavyKeeper
//! (USENIX ATC'18), whose counts decay where keys collide. Both find the few heaviest keys with
//! less memory. Here the question is another one: does this key beat the keys in its two slots? It
//! is asked about keys at the edge of the hot set, of which there are thousands with almost equal
//! counts. Space-Saving gives an edge key the count of the key that it replaces, and HeavyKeeper
//! forgets edge keys when it should compare them. A count-min sketch never counts a key too low
//! while it is not halved, so no hot key is overlooked, and a cold key that is counted too high
//! loses its slot again.

use glimmer_base::Keyhash;

const ROWS: usize = 4;

/// See the module's text. Its size never changes.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// Rows of the same power of two of cells.
    cells: Box<[u16]>,
    mask: usize,
}

impl Sketch {
    /// An empty sketch of at least this many cells.
    pub fn new(cells: usize) -> Sketch {
        let width = cells.div_ceil(ROWS).next_power_of_two();
        Sketch {
            cells: vec![0; width * ROWS].into(),
            mask: width - 1,
        }
    }

    /// Adds to a key's count, and returns what it is now.
    pub fn add(&mut self, keyhash: Keyhash, more: u16) -> u16 {
        let places = self.places(keyhash);
        let count = self.least(places).saturating_add(more);
        for place in places {
            let cell = &mut self.cells[place];
            *cell = count.max(*cell);
        }
        count
    }

    /// A key's count.
    pub fn count(&self, keyhash: Keyhash) -> u16 {
        self.least(self.places(keyhash))
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        for cell in &mut self.cells {
            *cell /= 2;
        }
    }

    fn least(&self, places: [usize; ROWS]) -> u16 {
        let counts = places.map(|place| self.cells[place]);
        counts.into_iter().min().unwrap_or_default()
    }

    /// One cell of each row. The keyhash is mixed once more, because keys of one partition have
    /// similar ones.
    fn places(&self, keyhash: Keyhash) -> [usize; ROWS] {
        let mixed = keyhash.0.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (first, step) = (
            (mixed >> 32) as usize,
            (mixed ^ keyhash.0) as u32 as usize | 1,
        );
        std::array::from_fn(|row| {
            row * (self.mask + 1) + (first.wrapping_add(row.wrapping_mul(step)) & self.mask)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_base::Seed;

    fn keyhash(number: u32) -> Keyhash {
        Seed(3).keyhash(&number.to_le_bytes())
    }

    #[test]
    fn counts_are_never_too_low_and_seldom_too_high() {
        let mut sketch = Sketch::new(1 << 14);
        for round in 0..4 {
            for key in 0..4000 {
                if key % 4 >= round {
                    sketch.add(keyhash(key), 1);
                }
            }
        }
        let errors: Vec<u16> = (0..4000)
            .map(|key| {
                let added = key % 4 + 1;
                let count = sketch.count(keyhash(key));
                assert!(u32::from(count) >= added);
                count - added as u16
            })
            .collect();
        let wrong = errors.iter().filter(|&&error| error > 0).count();
        assert!(wrong < 400, "{wrong}");
    }

    #[test]
    fn halving_and_saturation() {
        let mut sketch = Sketch::new(1 << 10);
        sketch.add(keyhash(1), u16::MAX - 1);
        assert_eq!(sketch.add(keyhash(1), 5), u16::MAX);
        sketch.halve();
        assert_eq!(sketch.count(keyhash(1)), u16::MAX / 2);
    }
}
