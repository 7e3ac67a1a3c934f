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
];
