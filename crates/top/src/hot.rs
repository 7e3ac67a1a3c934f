//! The hottest keys, and what the hot-key accelerator did, from `stats hotkeys` and two samples of
//! `stats accelerator`.

use std::collections::BTreeMap;

use glimmer_notation::memory;

use super::text::{count, percent};

/// A key that is read often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HotKey {
    /// The key, as the server writes it.
    pub key: String,
    /// Reads per second, an estimate.
    pub reads_per_s: f64,
    /// Bytes of its value.
    pub value_bytes: u64,
}

impl HotKey {
    /// From a line of `stats hotkeys`, such as `user:1 4711/s 100 B`.
    pub fn parse(key: &str, figures: &str) -> Option<HotKey> {
        let (rate, bytes) = figures.strip_suffix(" B")?.split_once("/s ")?;
        Some(HotKey {
            key: key.to_owned(),
            reads_per_s: rate.parse().ok()?,
            value_bytes: bytes.parse().ok()?,
        })
    }

    /// Its reads per second, and the size of its value.
    pub fn cells(&self) -> [String; 2] {
        [count(self.reads_per_s), memory(self.value_bytes as f64)]
    }
}

/// The accelerator in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Acceleration {
    /// What answers, and where.
    pub body: String,
    /// Its share of the reads, if there were some.
    pub share: Option<f64>,
    /// Hits per second by protocol.
    pub hits_per_s: [(&'static str, f64); 3],
    /// Slots that may be answered from, and all slots.
    pub slots: [u64; 2],
    /// Slots retracted for a change per second, and slots that got the new value.
    pub retracts_per_s: f64,
    /// See `retracts_per_s`.
    pub refreshes_per_s: f64,
    /// Why nothing is answered now.
    pub paused: Vec<String>,
    /// What a circuit tells of itself.
    pub circuit: Option<CircuitCounts>,
}

/// Counts of the accelerator's circuit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CircuitCounts {
    /// Clock cycles per second.
    pub cycles_per_s: f64,
    /// Reads per second that passed to the server because the circuit was being written.
    pub bypassed_per_s: f64,
    /// Most bytes that have waited in its defer buffer.
    pub deferred_bytes_max: u64,
}

impl Acceleration {
    /// What it did between two samples of its statistics, in which the server got this many
    /// `reads`. `None` if the server has no accelerator.
    pub fn between(
        now: &BTreeMap<String, String>,
        earlier: &BTreeMap<String, String>,
        passed_s: f64,
        reads: u64,
    ) -> Option<Acceleration> {
        let body = now.get("body").filter(|body| *body != "off")?;
        let number = |from: &BTreeMap<String, String>, name| -> u64 {
            let value = from.get(name).and_then(|value| value.parse().ok());
            value.unwrap_or(0)
        };
        let grown = |name| number(now, name).saturating_sub(number(earlier, name)) as f64;
        let per_s = |name| grown(name) / passed_s;
        let paused = now.get("paused").map_or("no", String::as_str);
        let paused = paused.split(',').filter(|reason| *reason != "no");
        Some(Acceleration {
            body: match now.get("interface").map_or("none", String::as_str) {
                "none" => body.clone(),
                interface => match now.get("mode").filter(|mode| *mode != body) {
                    Some(mode) => format!("{body} at {interface} ({mode})"),
                    None => format!("{body} at {interface}"),
                },
            },
            // The two statistics are not from the very same time.
            share: (reads > 0).then(|| (grown("hits") / reads as f64).min(1.0)),
            hits_per_s: [
                ("get", per_s("hits_get")),
                ("gets", per_s("hits_gets")),
                ("binary", per_s("hits_binary")),
            ],
            slots: [number(now, "live"), number(now, "slots")],
            retracts_per_s: per_s("retracts"),
            refreshes_per_s: per_s("refreshes"),
            paused: paused.map(str::to_owned).collect(),
            circuit: now.contains_key("cycles").then(|| CircuitCounts {
                cycles_per_s: per_s("cycles"),
                bypassed_per_s: per_s("bypassed_write_mode"),
                deferred_bytes_max: number(now, "defer_high_water"),
            }),
        })
    }

    /// Names with fields, the more important ones first.
    pub fn lines(&self) -> Vec<(&'static str, Vec<String>)> {
        let hits = self.hits_per_s.iter();
        let hits = hits.map(|(protocol, rate)| format!("{}/s {protocol}", count(*rate)));
        let [live, all] = self.slots;
        let circuit = self.circuit.map(|circuit| {
            let fields = [
                format!("{} cycles/s", count(circuit.cycles_per_s)),
                format!("{}/s bypassed", count(circuit.bypassed_per_s)),
                format!(
                    "{} deferred at most",
                    memory(circuit.deferred_bytes_max as f64)
                ),
            ];
            ("circuit", fields.to_vec())
        });
        let mut lines = vec![
            ("share", vec![format!("{} of reads", percent(self.share))]),
            ("hits", hits.collect()),
            (
                "paused",
                match self.paused.is_empty() {
                    true => vec!["no".to_owned()],
                    false => self.paused.clone(),
                },
            ),
            ("live slots", vec![format!("{live} of {all}")]),
            (
                "changes",
                vec![
                    format!("{}/s retracts", count(self.retracts_per_s)),
                    format!("{}/s refreshes", count(self.refreshes_per_s)),
                ],
            ),
        ];
        lines.extend(circuit);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split(", ").filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        pairs.collect()
    }

    #[test]
    fn a_hot_key_has_a_rate_and_a_size() {
        let key = HotKey::parse("user:1", "4711/s 2048 B").unwrap();
        assert_eq!(key.cells(), ["4.7k", "2.0 KiB"]);
        for other in ["4711", "4711/s", "x/s 2 B", "1/s x B"] {
            assert_eq!(HotKey::parse("a", other), None);
        }
    }

    #[test]
    fn the_accelerator_is_what_it_did_in_the_interval() {
        let before = figures("body=model, hits=100, hits_get=100, retracts=5, refreshes=5");
        let after = figures(
            "body=model, hits=160, hits_get=140, hits_binary=20, retracts=15, refreshes=13, \
             live=7, slots=1024, paused=watched,draining",
        );
        let is = Acceleration::between(&after, &before, 2.0, 80).unwrap();
        assert_eq!(is.share, Some(0.75));
        assert_eq!(
            is.hits_per_s,
            [("get", 20.0), ("gets", 0.0), ("binary", 10.0)]
        );
        assert_eq!((is.slots, is.retracts_per_s), ([7, 1024], 5.0));
        assert_eq!(is.refreshes_per_s, 4.0);
        assert_eq!(is.paused, ["watched", "draining"]);
        let idle = Acceleration::between(&before, &before, 1.0, 0).unwrap();
        assert_eq!((idle.share, idle.paused.len()), (None, 0));
        assert_eq!(idle.lines()[2].1, ["no"]);
    }

    #[test]
    fn a_circuit_tells_of_itself() {
        let before = figures("body=rtl, cycles=1000, bypassed_write_mode=5, defer_high_water=8");
        let after =
            figures("body=rtl, cycles=501000, bypassed_write_mode=25, defer_high_water=640");
        let is = Acceleration::between(&after, &before, 2.0, 0).unwrap();
        let lines = is.lines();
        let (name, fields) = lines.last().unwrap();
        assert_eq!(*name, "circuit");
        assert_eq!(
            fields.join(", "),
            "250k cycles/s, 10/s bypassed, 640 B deferred at most"
        );
        let model = figures("body=model");
        let is = Acceleration::between(&model, &model, 1.0, 0).unwrap();
        assert_eq!(is.circuit, None);
    }

    #[test]
    fn a_packet_program_is_shown_with_its_interface() {
        for (text, shown) in [
            ("body=model, interface=none, mode=none", "model"),
            (
                "body=xdp, interface=eth0, mode=generic",
                "xdp at eth0 (generic)",
            ),
            ("body=tcx, interface=eth0, mode=tcx", "tcx at eth0"),
        ] {
            let now = figures(text);
            let is = Acceleration::between(&now, &now, 1.0, 0).unwrap();
            assert_eq!(is.body, shown);
        }
    }

    #[test]
    fn without_an_accelerator_there_is_nothing() {
        for none in ["", "body=off"] {
            let none = figures(none);
            assert_eq!(Acceleration::between(&none, &none, 1.0, 10), None);
        }
    }
}
