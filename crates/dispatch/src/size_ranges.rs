//! Which large core serves which sizes.

use crate::{Cost, SizeClass, Smoothed};
use std::ops::Range;

/// Divides the sizes from `large_from` on into contiguous ranges whose requests cost the same, one
/// for each large core (Minos, §3.1). Together they are all sizes up to `u32::MAX`.
///
/// A class is cut as if its sizes were uniform around their mean. Where one size alone costs more
/// than a core's part, other ranges get less, because a size has one core.
pub fn size_ranges(
    histogram: &Smoothed,
    cost: Cost,
    large_from: u32,
    cores: usize,
) -> Vec<Range<u32>> {
    let pieces: Vec<Piece> = SizeClass::all()
        .filter_map(|class| Piece::of(histogram, cost, class, large_from))
        .collect();
    let all: f64 = pieces.iter().map(|piece| piece.cost).sum();
    let cut = |place: usize| {
        let mut left = all * place as f64 / cores as f64;
        for piece in &pieces {
            if left < piece.cost {
                return piece.cut(left / piece.cost);
            }
            left -= piece.cost;
        }
        u32::MAX
    };
    let mut from = large_from;
    (1..=cores)
        .map(|place| {
            let to = if place == cores { u32::MAX } else { cut(place) };
            let range = from..to.max(from);
            from = range.end;
            range
        })
        .collect()
}

/// The large requests of one class.
struct Piece {
    low: f64,
    high: f64,
    cost: f64,
}

impl Piece {
    fn of(histogram: &Smoothed, cost: Cost, class: SizeClass, large_from: u32) -> Option<Piece> {
        let mean = histogram.bytes_mean(class)?;
        let sizes = class.sizes();
        // Uniform sizes between two bounds have their middle as mean.
        let high = f64::from(sizes.end).min(2.0 * mean - f64::from(sizes.start));
        let low = f64::from(sizes.start).max(2.0 * mean - f64::from(sizes.end));
        let from = low.max(f64::from(large_from));
        let part = match high > low {
            true => (high * high - from * from) / (high * high - low * low),
            false => 1.0,
        };
        let is_large = sizes.end > large_from && part > 0.0;
        is_large.then(|| Piece {
            low: from.min(high),
            high,
            cost: part * cost.of_class(histogram, class),
        })
    }

    /// The size below which this part of the cost is. Cost grows with the size, so the part below a
    /// size grows with its square.
    fn cut(&self, part: f64) -> u32 {
        let (low, high) = (self.low * self.low, self.high * self.high);
        (low + part * (high - low)).sqrt().ceil() as u32
    }
}
