//! Finds the highest rate that a server sustains: it neither saturates nor exceeds the promised
//! latency.

use std::{fmt, str::FromStr};

use anyhow::Result;
use serde::Serialize;

use super::Outcome;

/// Rates grow by this factor until one is too high.
const GROWTH: f64 = 1.6;
/// The search ends when the highest sustained rate and the lowest failed rate differ by less than
/// this share.
const RESOLUTION: f64 = 0.05;
/// The search ends when the server does not sustain one request per second.
const RATE_PER_S_MIN: f64 = 1.0;
/// Maximum number of rates.
const RATES_MAX: usize = 24;
/// A rate that is found too high is measured up to this often, and the majority counts: a machine
/// that stalls for a moment fails at any rate.
const MEASUREMENTS_MAX: usize = 3;
/// A server that answers less than this share of the arrivals in time is saturated.
const ANSWERED_MIN: f64 = 0.97;

/// A service level objective for latency: "p99 under one millisecond".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slo {
    /// From 0 to 1.
    pub quantile: f64,
    /// Limit of the latency at this quantile, in microseconds.
    pub latency_us: f64,
}

impl fmt::Display for Slo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded, because a quantile as a percentage is not exact.
        let percent = (self.quantile * 1e7).round() / 1e5;
        write!(out, "p{percent}={}µs", self.latency_us)
    }
}

impl FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Slo, String> {
        let wrong = || format!("{text:?} is not like p99=1ms");
        let (percent, latency) = text
            .strip_prefix('p')
            .and_then(|rest| rest.split_once('='))
            .ok_or_else(wrong)?;
        let percent: f64 = percent.parse().map_err(|_| wrong())?;
        let (figure, factor) = ["µs", "us", "ms", "s"]
            .into_iter()
            .zip([1.0, 1.0, 1e3, 1e6])
            .find_map(|(unit, factor)| Some((latency.strip_suffix(unit)?, factor)))
            .ok_or_else(wrong)?;
        let latency_us = figure.trim().parse::<f64>().map_err(|_| wrong())? * factor;
        let sound = percent > 0.0 && percent < 100.0 && latency_us > 0.0 && latency_us.is_finite();
        sound
            .then_some(Slo {
                quantile: percent / 100.0,
                latency_us,
            })
            .ok_or_else(wrong)
    }
}

/// Whether an open loop was answered at the rate of its arrivals.
pub fn kept_up(outcome: &Outcome) -> bool {
    !outcome.saturated && outcome.in_time_share() >= ANSWERED_MIN
}

/// The results at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// Arrivals per second.
    pub offered_per_s: f64,
    /// Requests per second that were answered before the end of the measurement.
    pub answered_per_s: f64,
    /// Latency at the objective's quantile, in microseconds.
    pub latency_us: f64,
    /// How late the client sent its requests, at the same quantile, in microseconds.
    pub late_us: f64,
    /// Whether the measurement ended early because the server or the client could not keep up.
    pub saturated: bool,
    /// Whether it was the client.
    pub client_saturated: bool,
}

impl Probe {
    /// Whether the client was the limit rather than the server: most of the latency was its own.
    pub fn is_limited_by_client(&self) -> bool {
        self.client_saturated || self.late_us > self.latency_us / 2.0
    }

    /// Whether the server sustained the rate.
    pub fn is_borne(&self, slo: Option<Slo>) -> bool {
        let answered = !self.saturated && self.answered_per_s >= ANSWERED_MIN * self.offered_per_s;
        answered && slo.is_none_or(|slo| self.latency_us <= slo.latency_us)
    }
}

/// Measures at one rate after the other, starting with `first_per_s`, and approaches the highest
/// sustained rate. A rate that is too high is measured again. Returns all results in order.
pub fn search(
    first_per_s: f64,
    slo: Option<Slo>,
    mut measure: impl FnMut(f64) -> Result<Probe>,
) -> Result<Vec<Probe>> {
    let mut probes: Vec<Probe> = Vec::new();
    let (mut borne, mut broken): (Option<f64>, Option<f64>) = (None, None);
    let mut rate = first_per_s;
    for _ in 0..RATES_MAX {
        let begun = probes.len();
        while is_open(&probes[begun..], slo) {
            probes.push(measure(rate)?);
        }
        if is_sustained(&probes[begun..], slo) {
            borne = Some(rate);
        } else {
            broken = Some(rate);
        }
        rate = match (borne, broken) {
            (Some(low), Some(high)) if high / low < 1.0 + RESOLUTION => break,
            (Some(low), Some(high)) => (low * high).sqrt(),
            (Some(low), None) => low * GROWTH,
            (None, Some(high)) if high <= RATE_PER_S_MIN => break,
            (None, Some(high)) => (high / GROWTH / GROWTH).max(RATE_PER_S_MIN),
            (None, None) => unreachable!("a probe is borne or it is not"),
        };
    }
    Ok(probes)
}

/// Whether measurements at one rate do not tell yet whether the server sustains it. The first one
/// is enough if it is borne: a stall makes a rate look worse than it is, and never better.
fn is_open(at_rate: &[Probe], slo: Option<Slo>) -> bool {
    let borne = at_rate.iter().filter(|probe| probe.is_borne(slo)).count();
    let majority = MEASUREMENTS_MAX / 2 + 1;
    let begins_borne = at_rate.first().is_some_and(|probe| probe.is_borne(slo));
    !begins_borne && borne < majority && at_rate.len() - borne < majority
}

/// Whether the server sustains a rate, by the measurements at it.
fn is_sustained(at_rate: &[Probe], slo: Option<Slo>) -> bool {
    let borne = at_rate.iter().filter(|probe| probe.is_borne(slo)).count();
    borne * 2 > at_rate.len()
}

/// The last measurement at the highest sustained rate.
pub fn best(probes: &[Probe], slo: Option<Slo>) -> Option<&Probe> {
    let rates = probes.chunk_by(|one, other| one.offered_per_s == other.offered_per_s);
    let sustained = rates.filter(|at_rate| is_sustained(at_rate, slo));
    sustained
        .filter_map(<[Probe]>::last)
        .max_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An M/M/1 server: its sojourn time is exponential with a rate of service minus arrivals.
    fn model(service_per_s: f64, quantile: f64) -> impl FnMut(f64) -> Result<Probe> {
        move |offered_per_s| {
            let spare = service_per_s - offered_per_s;
            let latency_us = if spare > 0.0 {
                -(1.0 - quantile).ln() / spare * 1e6
            } else {
                f64::INFINITY
            };
            let answered_per_s = offered_per_s.min(service_per_s);
            Ok(Probe {
                offered_per_s,
                answered_per_s,
                latency_us,
                late_us: 0.0,
                saturated: spare < -0.5 * service_per_s,
                client_saturated: false,
            })
        }
    }

    #[test]
    fn the_highest_rate_that_keeps_a_promise_is_found() {
        for first in [100.0, 1e4, 5e6] {
            let slo: Slo = "p99=1ms".parse().unwrap();
            let probes = search(first, Some(slo), model(1e5, 0.99)).unwrap();
            let best = best(&probes, Some(slo)).unwrap().offered_per_s;
            // For a p99 of one millisecond, service must exceed arrivals by 1000 ln(100) = 4605 per
            // second.
            let exact = 1e5 - 4605.2;
            assert!(best <= exact && best > exact * 0.95, "{best} from {first}");
        }
    }

    #[test]
    fn a_stall_at_one_measurement_does_not_decide() {
        let slo: Slo = "p99=1ms".parse().unwrap();
        for stalled in 1..12 {
            let (mut of_server, mut count) = (model(1e5, 0.99), 0);
            let probes = search(5_000.0, Some(slo), |rate| {
                count += 1;
                let probe = of_server(rate)?;
                let is_stalled = count == stalled;
                Ok(Probe {
                    latency_us: probe.latency_us + if is_stalled { 9e4 } else { 0.0 },
                    ..probe
                })
            });
            let probes = probes.unwrap();
            let best = best(&probes, Some(slo)).unwrap();
            let exact = 1e5 - 4605.2;
            let is_near = best.offered_per_s <= exact && best.offered_per_s > exact * 0.95;
            assert!(is_near && best.is_borne(Some(slo)), "{best:?}, {stalled}");
        }
    }

    #[test]
    fn without_a_promise_saturation_ends_the_search() {
        let probes = search(1000.0, None, model(1e5, 0.99)).unwrap();
        let best = best(&probes, None).unwrap().offered_per_s;
        assert!(best > 0.95e5 && best < 1.04e5, "{best}");
        assert_eq!(super::best(&[], None), None);
    }

    #[test]
    fn a_server_that_answers_nothing_is_given_up_at_one_request_a_second() {
        let probes = search(5_000.0, None, model(0.0, 0.99)).unwrap();
        let rates = probes.iter().map(|probe| probe.offered_per_s);
        assert_eq!(rates.reduce(f64::min), Some(RATE_PER_S_MIN));
        assert_eq!(best(&probes, None), None);
    }

    #[test]
    fn promises_are_read_and_written() {
        let slo: Slo = "p99.9=1.5ms".parse().unwrap();
        assert!((slo.quantile - 0.999).abs() < 1e-12 && slo.latency_us == 1500.0);
        assert_eq!(slo.to_string(), "p99.9=1500µs");
        for wrong in [
            "", "p99", "p0=1ms", "p100=1ms", "99=1ms", "p99=1", "p99=-1ms", "p99=xms",
        ] {
            assert!(wrong.parse::<Slo>().is_err(), "{wrong}");
        }
    }
}
