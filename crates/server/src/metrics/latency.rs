//! How long requests take.

use super::family::{Family, In};

#[rustfmt::skip]
pub(super) const ALL: &[Family] = &[
    Family::histogram("glimmer_request_duration", In::Seconds,
        "How long requests took inside the server, from the beginning of the turn in which they \
         were received until their replies were sent: a sample, those of one turn in 61",
        |source, out| {
            for latency in &source.figures.latencies {
                let below = match latency.below_bytes {
                    Some(bytes) => bytes.to_string().into(),
                    None => "+Inf".into(),
                };
                let labels = [("command", latency.command.name().into()), ("below_bytes", below)];
                out.histogram(labels, latency.seconds, latency.histogram());
            }
        }),
    Family::counter("glimmer_slow_requests", In::Units,
        "Entries of stats slow: sampled requests and whole turns that took longer than --slow-ms",
        |source, out| {
            let (entered, left_out) = source.figures.slow_counts;
            out.one("outcome", "kept", entered);
            out.one("outcome", "left_out", left_out);
        }),
];
