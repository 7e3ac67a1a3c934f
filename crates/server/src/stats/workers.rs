//! `stats workers`, an addition to memcached's statistics: the work of each worker. It asks the
//! kernel for each worker's CPU time, so `stats` does not include it.

use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_node::Part;

use super::lines::Lines;
use super::{ServerAdmin, own};

/// Writes one part of the reply, starting with the worker of this number.
pub(super) fn write(admin: &ServerAdmin, from: u64, lines: &mut Lines<'_>) -> Part {
    let begin = lines.0.len();
    for number in from.. {
        if lines.0.len() - begin >= REPORT_BYTES_HIGH {
            return Part::More(number);
        }
        let node = admin.node.get();
        let Some((tally, cpu_ns)) = node.and_then(|node| node.figures.worker(number as usize))
        else {
            break;
        };
        let mut put = |name: &str, figure: String| {
            lines.put(&format!("worker:{number}:{name}"), figure);
        };
        put("curr_connections", tally.curr_connections.to_string());
        put("bytes_read", tally.bytes_read.to_string());
        put("bytes_written", tally.bytes_written.to_string());
        own::work(&tally, &mut put);
        if let Some(cpu_ns) = cpu_ns {
            put("cpu_us", (cpu_ns / 1000).to_string());
        }
    }
    Part::Last
}
