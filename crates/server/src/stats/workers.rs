//! `stats workers`, an addition to memcached's statistics: the work of each worker. It reads the
//! kernel's accounting of every thread, so `stats` does not include it.

use std::fs;

use super::lines::Lines;
use super::{ServerAdmin, own};

pub(super) fn write(admin: &ServerAdmin, lines: &mut Lines<'_>) {
    let tallies = admin.node.get().map(|node| node.figures.tallies());
    let threads = threads();
    for (worker, tally) in tallies.into_iter().flatten().enumerate() {
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("worker:{worker}:{name}"), figure);
        };
        put("curr_connections", tally.curr_connections.to_string());
        put("bytes_read", tally.bytes_read.to_string());
        put("bytes_written", tally.bytes_written.to_string());
        own::work(&tally, &mut put);
        let mut named = threads
            .iter()
            .filter(|thread| thread.name == format!("worker-{worker}"));
        // With several servers in one process, worker names are ambiguous.
        if let (Some(thread), None) = (named.next(), named.next()) {
            put("cpu_us", (thread.cpu_ns / 1000).to_string());
        }
    }
}

/// A thread of this process.
struct Thread {
    name: String,
    cpu_ns: u64,
}

/// All threads with the kernel's accounting; empty if the kernel has none.
fn threads() -> Vec<Thread> {
    let read = |entry: fs::DirEntry| {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        let account = fs::read_to_string(entry.path().join("schedstat")).ok()?;
        Some(Thread {
            name: name.trim_end().to_owned(),
            cpu_ns: account.split(' ').next()?.parse().ok()?,
        })
    };
    let entries = fs::read_dir("/proc/self/task");
    entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(read)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_by_its_name_with_its_time() {
        let worker = std::thread::Builder::new().name("worker-9".to_owned());
        let busy = worker.spawn(|| {
            let of_this = || {
                threads()
                    .into_iter()
                    .find(|thread| thread.name == "worker-9")
            };
            let before = of_this()?.cpu_ns;
            let mut sum = 0u64;
            // The scheduler updates its accounting at each clock tick.
            for round in 0..100_000_000u64 {
                sum = std::hint::black_box(sum + round);
                if round.is_multiple_of(1 << 20) && of_this()?.cpu_ns > before {
                    return Some(true);
                }
            }
            Some(false)
        });
        assert_eq!(busy.unwrap().join().unwrap(), Some(true));
    }
}
