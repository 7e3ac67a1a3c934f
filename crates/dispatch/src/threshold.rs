//! From which size on a request is large.

use crate::{SizeClass, Smoothed};
use glimmer_base::limits::SLICE_BYTES;

/// Where large requests are many, they are those for values of this many bytes and more: a core
/// that serves small requests as well handles such a value in several slices.
pub const MANY_LARGE_FROM: u32 = SLICE_BYTES as u32;

/// The size from which on requests are large: the end of the class that has the request at this
/// percentile, but at least `large_min` bytes. So more than `percentile` percent of all requests
/// are small, and where all values have about one size, none is large.
pub fn threshold(histogram: &Smoothed, percentile: f64, large_min: u32) -> u32 {
    let wanted = requests_below(histogram, u32::MAX) * percentile / 100.0;
    let mut small = 0.0;
    let reaches = |class: &SizeClass| {
        small += histogram.requests(*class);
        small >= wanted
    };
    let class = SizeClass::all().find(reaches);
    let end = class.map_or(u32::MAX, |class| class.sizes().end);
    end.max(large_min)
}

/// The same, but at most [`MANY_LARGE_FROM`] if there are requests below that to protect: as many
/// in proportion as the percentile lets be large. Without this, requests for large values are small
/// as soon as there are more of them than the percentile leaves.
pub fn threshold_with_many_large(histogram: &Smoothed, percentile: f64, large_min: u32) -> u32 {
    let by_percentile = threshold(histogram, percentile, large_min);
    let all = requests_below(histogram, u32::MAX);
    let protected = requests_below(histogram, MANY_LARGE_FROM);
    match protected >= all * (100.0 - percentile) / 100.0 {
        true => by_percentile.min(MANY_LARGE_FROM.max(large_min)),
        false => by_percentile,
    }
}

/// Requests of the classes that begin below this size.
fn requests_below(histogram: &Smoothed, bytes: u32) -> f64 {
    SizeClass::all()
        .filter(|class| class.sizes().start < bytes)
        .map(|class| histogram.requests(class))
        .sum()
}
