//! From which size on a request is large.

use crate::{SizeClass, Smoothed};

/// The size from which on requests are large: the end of the class that has the request at this
/// percentile, but at least `large_min` bytes. So more than `percentile` percent of all requests
/// are small, and where all values have about one size, none is large.
pub fn threshold(histogram: &Smoothed, percentile: f64, large_min: u32) -> u32 {
    let all: f64 = SizeClass::all()
        .map(|class| histogram.requests(class))
        .sum();
    let wanted = all * percentile / 100.0;
    let mut small = 0.0;
    let reaches = |class: &SizeClass| {
        small += histogram.requests(*class);
        small >= wanted
    };
    let class = SizeClass::all().find(reaches);
    let end = class.map_or(u32::MAX, |class| class.sizes().end);
    end.max(large_min)
}
