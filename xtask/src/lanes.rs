//! Work on several things at a time.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Applies `work` to each item, one per core at a time. The results are in the items' order. After
/// an error a core takes no further item.
pub fn one_per_core<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    at_a_time(cores, items, work)
}

/// The same with this many items at a time.
pub fn at_a_time<T: Sync, R: Send>(
    lanes: usize,
    items: &[T],
    work: impl Fn(&T) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let lane = || {
        let mut results = Vec::new();
        loop {
            let place = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(place) else {
                return anyhow::Ok(results);
            };
            results.push((place, work(item)?));
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes.max(1)).map(|_| scope.spawn(lane)).collect();
        let mut results = Vec::new();
        for lane in lanes {
            let lane = lane
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            results.extend(lane?);
        }
        anyhow::Ok(results)
    })?;
    results.sort_unstable_by_key(|&(place, _)| place);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
