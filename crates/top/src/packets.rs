//! Datagrams that pass the kernel's network stack by, from two samples of `stats packets`.

use std::collections::BTreeMap;

use super::text::count;

/// A packet transport in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packets {
    /// What carries datagrams, in which mode and where.
    pub transport: String,
    /// Datagrams received per second.
    pub received_per_s: f64,
    /// Datagrams sent per second.
    pub sent_per_s: f64,
    /// Datagrams per second that went through the kernel's stack all the same.
    pub by_kernel_per_s: f64,
    /// Frames per second that were lost, by reason.
    pub dropped_per_s: Vec<(String, f64)>,
    /// Frames per second that were not answered, by reason.
    pub refused_per_s: Vec<(String, f64)>,
    /// Frames that wait to be received, at the end of the interval.
    pub waiting: u64,
    /// The least number of frames in the median call that brought any.
    pub burst: Option<u64>,
}

impl Packets {
    /// What happened between two samples. `None` if all datagrams go through the kernel's stack.
    pub fn between(
        now: &BTreeMap<String, String>,
        earlier: &BTreeMap<String, String>,
        passed_s: f64,
    ) -> Option<Packets> {
        let text = |name| now.get(name).map(String::as_str);
        let (transport, interface) = (text("transport")?, text("interface")?);
        let number = |from: &BTreeMap<String, String>, name: &str| -> u64 {
            let value = from.get(name).and_then(|value| value.parse().ok());
            value.unwrap_or(0)
        };
        let grown = |name: &str| number(now, name).saturating_sub(number(earlier, name));
        let per_s = |name: &str| grown(name) as f64 / passed_s;
        let by_reason = |kind: &str| {
            let names = now.keys().filter_map(|name| {
                let reason = name.strip_prefix(kind)?;
                (grown(name) > 0).then(|| (reason.to_owned(), per_s(name)))
            });
            names.collect()
        };
        let queues = match text("queues").unwrap_or("1") {
            "1" => "1 queue".to_owned(),
            queues => format!("{queues} queues"),
        };
        let mode = text("mode").map_or(String::new(), |mode| format!("{mode}, "));
        let bursts = now.keys().filter_map(|name| {
            let frames = name.strip_prefix("bursts:")?.parse().ok()?;
            Some((frames, grown(name)))
        });
        Some(Packets {
            transport: format!("{transport} at {interface} ({mode}{queues})"),
            received_per_s: per_s("received"),
            sent_per_s: per_s("sent"),
            by_kernel_per_s: per_s("kernel_received") + per_s("kernel_sent"),
            dropped_per_s: by_reason("dropped:"),
            refused_per_s: by_reason("refused:"),
            waiting: number(now, "rx_waiting"),
            burst: median(bursts.collect()),
        })
    }

    /// The rates, the most important first.
    pub fn rates(&self) -> Vec<String> {
        let mut fields = vec![
            format!("{}/s in", count(self.received_per_s)),
            format!("{}/s out", count(self.sent_per_s)),
            format!("{}/s dropped", count(sum(&self.dropped_per_s))),
            format!("{}/s refused", count(sum(&self.refused_per_s))),
        ];
        fields.extend(self.burst.map(|burst| format!("bursts of {burst}")));
        fields
    }

    /// Everything else: a name, and its values.
    pub fn lines(&self) -> Vec<(&'static str, Vec<String>)> {
        let by_reason = |rates: &[(String, f64)]| -> Vec<String> {
            let each = rates.iter();
            each.map(|(reason, rate)| format!("{reason} {}/s", count(*rate)))
                .collect()
        };
        let lines = [
            ("datagrams", self.rates()),
            (
                "by the kernel",
                vec![format!("{}/s", count(self.by_kernel_per_s))],
            ),
            ("waiting", vec![format!("{} frames", self.waiting)]),
            ("dropped", by_reason(&self.dropped_per_s)),
            ("refused", by_reason(&self.refused_per_s)),
        ];
        let lines = lines.into_iter();
        lines.filter(|(_, values)| !values.is_empty()).collect()
    }
}

fn sum(rates: &[(String, f64)]) -> f64 {
    rates.iter().fold(0.0, |sum, (_, rate)| sum + rate)
}

/// The class of the median call, of classes with the number of calls in each.
fn median(mut classes: Vec<(u64, u64)>) -> Option<u64> {
    classes.sort_unstable();
    let calls: u64 = classes.iter().map(|(_, calls)| calls).sum();
    let mut below = 0;
    let is_reached = |&(_, calls_of_class): &(u64, u64)| {
        below += calls_of_class;
        2 * below >= calls
    };
    let median = classes.into_iter().find(is_reached)?;
    (calls > 0).then_some(median.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(figures: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        figures.iter().map(owned).collect()
    }

    #[test]
    fn two_samples_of_a_transport_tell_what_passed() {
        let earlier = sample(&[
            ("transport", "xdp"),
            ("interface", "eth0"),
            ("mode", "native"),
            ("queues", "2"),
            ("received", "1000"),
            ("sent", "900"),
            ("kernel_sent", "10"),
            ("dropped:ring_full", "4"),
            ("refused:checksum", "3"),
            ("rx_waiting", "0"),
            ("bursts:1", "50"),
            ("bursts:16", "5"),
        ]);
        let mut now = earlier.clone();
        now.extend(sample(&[
            ("received", "5000"),
            ("sent", "4900"),
            ("kernel_sent", "14"),
            ("dropped:ring_full", "8"),
            ("rx_waiting", "7"),
            ("bursts:1", "51"),
            ("bursts:16", "25"),
        ]));
        let packets = Packets::between(&now, &earlier, 2.0).unwrap();
        assert_eq!(packets.transport, "xdp at eth0 (native, 2 queues)");
        let rates = [
            "2.0k/s in",
            "2.0k/s out",
            "2/s dropped",
            "0/s refused",
            "bursts of 16",
        ];
        assert_eq!(packets.rates(), rates);
        let lines = packets.lines();
        let values = |name: &str| {
            let line = lines.iter().find(|(of, _)| *of == name);
            line.map(|(_, values)| values.join(", "))
        };
        assert_eq!(values("by the kernel").as_deref(), Some("2/s"));
        assert_eq!(values("waiting").as_deref(), Some("7 frames"));
        assert_eq!(values("dropped").as_deref(), Some("ring_full 2/s"));
        assert_eq!(values("refused"), None);
    }

    #[test]
    fn sockets_of_the_kernel_have_no_packets() {
        let of = |figures: &[(&str, &str)]| Packets::between(&sample(figures), &sample(&[]), 1.0);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("transport", "udp")]), None);
        let idle = of(&[
            ("transport", "xdp"),
            ("interface", "eth0"),
            ("bursts:1", "0"),
        ]);
        assert_eq!(idle.unwrap().burst, None);
    }
}
