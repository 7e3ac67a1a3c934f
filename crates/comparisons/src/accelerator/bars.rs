//! What the accelerator is held to, and whether it is met.

use glimmer_measure::{
    report::{Column, Table},
    stats::Spread,
};

use super::{
    results::{MEMCACHED, P50, RATE, Report, Row},
    scenario::{Keys, Scenario},
    subject::{Body, CONTROL, SOFTWARE},
};

/// A bound for a measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }

    fn told(self) -> String {
        match self {
            Bound::AtLeast(bound) => format!("at least {bound}"),
            Bound::AtMost(bound) => format!("at most {bound}"),
        }
    }
}

/// What a row is held to, with what was measured.
struct Bar {
    what: String,
    bound: Bound,
    measured: Spread,
}

/// The server without an accelerator, where the kernel does the same work.
fn without(body: Body) -> &'static str {
    match body.is_at_interface() {
        true => CONTROL,
        false => SOFTWARE,
    }
}

/// What one row is held to.
fn bars(report: &Report, row: &Row) -> Vec<Bar> {
    use Bound::{AtLeast, AtMost};
    let mut bars = Vec::new();
    let mut add = |what: String, bound, measured: Option<Spread>| {
        bars.extend(measured.map(|measured| Bar {
            what: format!("{}, {}: {what}", row.case, row.server),
            bound,
            measured,
        }));
    };
    let over = |server: &str, figure| report.over(row, server, figure);
    let less = |server: &str, figure: fn(&super::Sample) -> f64| {
        let other = report.row(&row.case, server)?.each(figure);
        let pairs = row.each(figure).into_iter().zip(other);
        let differences: Vec<f64> = pairs.map(|(ours, theirs)| ours - theirs).collect();
        Some(Spread::of(&differences))
    };
    let without = without(row.body);
    let of = |what: &str, server: &str| format!("{what} over {server}");
    match row.scenario {
        // A hit of a packet program, for both kinds of client.
        Scenario::Plain | Scenario::Batches
            if row.keys == Some(Keys::One) && row.body.is_at_interface() =>
        {
            add(
                of("requests/s", MEMCACHED),
                AtLeast(3.0),
                over(MEMCACHED, RATE),
            );
            let (cpu, name) = report.cpu(&row.case);
            add(of(name, MEMCACHED), AtMost(0.25), over(MEMCACHED, cpu));
        }
        Scenario::Alone if row.keys == Some(Keys::One) && row.body.is_at_interface() => {
            add(of("p50", MEMCACHED), AtMost(0.6), over(MEMCACHED, P50));
        }
        Scenario::Sockets64 if row.keys == Some(Keys::One) && row.body.is_at_interface() => {
            add(of("p50", SOFTWARE), AtMost(0.75), over(SOFTWARE, P50));
            let (cpu, name) = report.cpu(&row.case);
            add(of(name, SOFTWARE), AtMost(0.5), over(SOFTWARE, cpu));
            add(of(name, MEMCACHED), AtMost(0.25), over(MEMCACHED, cpu));
        }
        Scenario::Misses => add(
            of("requests/s", without),
            AtLeast(0.95),
            over(without, RATE),
        ),
        Scenario::MissesAlone => {
            let what = format!("p50 above that of {without}, µs");
            add(what, AtMost(0.5), less(without, P50));
        }
        Scenario::Sets => add(of("stores/s", without), AtLeast(0.98), over(without, RATE)),
        Scenario::YcsbA => add(
            of("requests/s", without),
            AtLeast(0.97),
            over(without, RATE),
        ),
        Scenario::HitRatio => {
            let what = format!("reads that find their key, points below {SOFTWARE}");
            let found = |sample: &super::Sample| -100.0 * sample.hit_ratio;
            add(what, AtMost(0.2), less(SOFTWARE, found));
        }
        Scenario::Plain | Scenario::Alone | Scenario::Sockets64 | Scenario::Batches => {}
    }
    bars
}

/// What all rows with an accelerator are held to; `None` if nothing was measured of it.
pub fn table(report: &Report) -> Option<Table> {
    let accelerated = report.rows.iter().filter(|row| row.body != Body::Off);
    let bars: Vec<Bar> = accelerated.flat_map(|row| bars(report, row)).collect();
    if bars.is_empty() {
        return None;
    }
    let columns = [
        Column::new("held to", |bar: &Bar| bar.what.clone()),
        Column::new("bound", |bar: &Bar| bar.bound.told()),
        Column::new("measured", |bar: &Bar| bar.measured.text(2)),
        Column::new("verdict", |bar: &Bar| {
            let holds = bar.bound.holds(bar.measured.median);
            String::from(if holds { "holds" } else { "FAILS" })
        }),
    ];
    Some(Table::of(&bars, columns))
}

#[cfg(test)]
mod tests {
    use glimmer_loadgen::load::{Latency, record::histogram};
    use glimmer_measure::noise::Noise;

    use super::{super::Sample, *};
    use crate::lab::Receiver;

    fn row(scenario: Scenario, keys: Option<Keys>, server: &str, body: Body, figure: f64) -> Row {
        let mut latency = Latency::of(&histogram());
        latency.p50_us = figure;
        let sample = Sample {
            operations_per_s: figure,
            latency,
            machine_us: figure,
            own_us: figure,
            hit_share: Some(0.5),
            hit_ratio: figure / 100.0,
            lost: 0,
            refused: 0,
        };
        Row {
            case: scenario.name().to_owned(),
            scenario,
            keys,
            server: server.to_owned(),
            body,
            samples: vec![sample; 3],
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        Report {
            versions: vec![],
            loopback: false,
            receiver: Receiver::Sender,
            keys: 1,
            slots: 1024,
            seconds: 1.0,
            repeat: 3,
            cores: 2,
            client_threads: 1,
            notes: vec![],
            noise: Noise {
                load_per_core_before: 0.0,
                stolen: 0.0,
                spread: None,
            },
            rows,
        }
    }

    /// The verdict on one figure of ours, where the one that it is compared with is 100.
    fn verdict(scenario: Scenario, ours: f64) -> String {
        let rows = vec![
            row(scenario, None, SOFTWARE, Body::Off, 100.0),
            row(scenario, None, "glimmer model", Body::Model, ours),
        ];
        let table = table(&report(rows)).unwrap().to_string();
        table.lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_bar_holds_up_to_its_bound() {
        for (scenario, good, bad) in [
            (Scenario::Misses, 95.0, 94.9),
            (Scenario::MissesAlone, 100.5, 100.6),
            (Scenario::Sets, 98.0, 97.9),
            (Scenario::YcsbA, 97.0, 96.9),
            (Scenario::HitRatio, 99.81, 99.7),
        ] {
            let [good, bad] = [good, bad].map(|ours| verdict(scenario, ours));
            assert!(good.contains("holds"), "{good}");
            assert!(bad.contains("FAILS"), "{bad}");
        }
    }

    /// Where other programs use the machine, its CPU time says nothing of a request.
    #[test]
    fn cpu_time_of_other_programs_is_not_charged_to_requests() {
        let one = Some(Keys::One);
        let mut rows = vec![
            row(Scenario::Sockets64, one, MEMCACHED, Body::Off, 100.0),
            row(Scenario::Sockets64, one, "glimmer xdp", Body::Xdp, 30.0),
        ];
        let said = |rows: &[Row]| table(&report(rows.to_vec())).unwrap().to_string();
        assert!(said(&rows).contains("CPU of the machine over memcached"));
        for sample in &mut rows[1].samples {
            sample.own_us = 20.0;
        }
        let said = said(&rows);
        assert!(
            said.contains("CPU of client and server over memcached"),
            "{said}"
        );
        assert!(said.contains("0.20 (0.20..0.20) |   holds"), "{said}");
    }

    /// A packet program is held to more than a model, and its misses to those over its own cable.
    #[test]
    fn a_packet_program_is_held_to_its_hits() {
        let one = Some(Keys::One);
        let rows = |scenario, keys| {
            vec![
                row(scenario, keys, MEMCACHED, Body::Off, 10.0),
                row(scenario, keys, SOFTWARE, Body::Off, 20.0),
                row(scenario, keys, CONTROL, Body::Off, 5.0),
                row(scenario, keys, "glimmer xdp", Body::Xdp, 30.0),
            ]
        };
        let said = |scenario, keys| {
            let table = table(&report(rows(scenario, keys)));
            table.map_or(String::new(), |table| table.to_string())
        };
        for scenario in [Scenario::Plain, Scenario::Batches] {
            let said = said(scenario, one);
            assert!(said.contains("3.00 (3.00..3.00) |   holds"), "{said}");
            assert!(said.contains("CPU of the machine over memcached"), "{said}");
        }
        assert!(said(Scenario::Plain, Some(Keys::Zipf)).is_empty());
        let misses = said(Scenario::Misses, None);
        assert!(
            misses.contains(CONTROL) && misses.contains("6.00"),
            "{misses}"
        );
    }
}
