//! Latency of reads beside the hot-key accelerator, as in the figures of *Hardware Acceleration of
//! Key-Value Stores* (Figures 14 to 18): for each system, the latency by percentile, for one
//! distribution of keys.

use std::fmt;

use anyhow::Result;
use glimmer_comparisons::{
    accelerator::{Body, CONTROL, Keys, Running, SOFTWARE, Setup, Subject, Way},
    lab::{Lab, Namespaces, Receiver},
    servers::{Contender, Kind as Server},
};
use glimmer_loadgen::{
    load::{Arrivals, Idle, Pace, Plan, Requests, WarmUp},
    workload::{Law, Mix, Workload},
};
use glimmer_measure::{machine, stats::Spread};

use crate::{
    Columns, Data, Kind, Needs, Point, Run, Shape, Spec,
    plot::{Plot, Unit},
};

/// Our server with the packet program.
pub const XDP: &str = "glimmer xdp";
/// Our server with the model of the accelerator.
pub const MODEL: &str = "glimmer model";
/// memcached.
pub const MEMCACHED: &str = "memcached";
const PEERS: [Server; 1] = [Server::Memcached];
const PANEL: &str = "";
/// Requests per second, with random times between them. So few that they do not wait for one
/// another.
const REQUESTS_PER_S: f64 = 10_000.0;
const PERCENTILES: [f64; 13] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0,
];
const SLOTS: usize = 1024;
const SHARE: &str = "answered by the accelerator, %";
const MACHINE: &str = "CPU of the machine, µs per request";
const LOST: &str = "lost";

/// Cycles of the simulated circuit for a request that is alone, which a test of `crates/accel-rtl`
/// counts: width, key and value in bytes, then cycles of a hit and of a miss.
const CIRCUIT: &str = include_str!("../../../accel/cycles.csv");
/// The paper's clock, that of 1 Gb/s, and that of 10 Gb/s with 8 bytes.
const CLOCKS_MHZ: [f64; 3] = [50.0, 125.0, 156.25];

/// A system with its load.
struct Case<'a> {
    server: &'a Running,
    requests: &'a Workload,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(out)
    }
}

/// How a figure is measured: all of them alike, and what the paper leaves open of this one.
macro_rules! here {
    ($open:literal) => {
        concat!(
            "A client asks for one key at a time over memcached's UDP protocol, 10,000 requests \
             per second with random times between them, as plain datagrams, and spins on one core \
             while it waits. The server has one worker on another core. Each server has a veth \
             pair of its own between two network namespaces. `glimmer model` looks in the slots \
             inside the server, and `glimmer xdp` has the packet program at the server's end of \
             the pair; both have 1,024 slots and the policy `counting`. `glimmer, empty program` \
             is the server with a program that passes everything. There are a million keys",
            $open,
            ". The horizontal axis is the share of requests that are at most as slow as the line \
             says. The paper measures a circuit beside a core of 50 MHz, so directions and shares \
             can be compared, and factors cannot. The circuit's rows are cycles of its simulation \
             (`accel/cycles.csv`) and what they take at three clocks, for a key of 16 bytes and a \
             value of 64: from a request's first byte at the MAC to the reply's last one, or to \
             the last one that the CPU is offered. They contain neither the network nor the \
             client, as the other systems' times do."
        )
    };
}
pub(crate) use here;

/// The description of a figure.
pub fn spec(
    name: &'static str,
    title: &'static str,
    source: &'static str,
    claim: &'static str,
    here: &'static str,
) -> Spec {
    Spec {
        name,
        title,
        source,
        claim,
        here,
        kind: Kind::Timing,
        needs: Needs {
            cores: 2,
            cores_of_paper: 1,
            memory_mib: 4096,
            peers: &PEERS,
        },
        columns: Columns {
            panel: "panel",
            series: "system",
            x: "percentile",
            y: "latency, µs",
        },
        plot: Plot::lines("share of the requests, %", "latency")
            .unit(Unit::Microseconds)
            .log_y()
            .columns(1),
    }
}

/// Measures every system that can run here with keys of this distribution.
pub fn measure(run: &mut Run<'_>, keys: Keys) -> Result<()> {
    let mut lab = match Namespaces::new(Receiver::Sender) {
        Ok(namespaces) => Lab::Namespaces(namespaces),
        Err(missing) => {
            run.note(format!("measured on loopback, without XDP: {missing:#}"));
            Lab::Loopback
        }
    };
    let requests = keys.reads(run.pick(1_000_000, 2000));
    let items = Workload {
        law: Law::Uniform,
        mix: Mix::reads(0.0),
        ..requests.clone()
    };
    let setup = Setup {
        client_cores: machine::client_cores(1),
        memory_mib: run.pick(1024, 64),
        slots: SLOTS,
        arguments: Vec::new(),
    };
    let mut subjects = vec![
        Subject::memcached(),
        Subject::ours(Body::Off),
        Subject::ours(Body::Model),
    ];
    if matches!(lab, Lab::Namespaces(_)) {
        subjects.extend([Subject::control(), Subject::ours(Body::Xdp)]);
    }
    let mut running = Vec::new();
    for subject in subjects {
        match Contender::from(subject.kind())
            .version()
            .and_then(|_| subject.start(&mut lab, &setup))
        {
            Ok(server) => {
                run.say(format!("{server}: storing {} items", items.keys));
                server.store(&items)?;
                server.settle(&requests, run.measured(2000))?;
                running.push(server);
            }
            Err(error) => run.note(format!("{subject} is left out: {error:#}")),
        }
    }
    let cases = running.iter().map(|server| Case {
        server,
        requests: &requests,
    });
    let mut cases: Vec<Case<'_>> = cases.collect();
    run.rounds_of_many(run.repeat(5), &mut cases, measure_one)
}

fn measure_one(case: &mut Case<'_>, run: &Run<'_>, seed: u64) -> Result<Vec<Point>> {
    let pace = Pace::Open {
        arrivals: Arrivals::Poisson(REQUESTS_PER_S),
        burst: 1,
        idle: Idle::Spin,
    };
    let plan = Plan {
        connections: 1,
        warm_up: WarmUp::Fixed(run.warm_up()),
        measured: Some(run.measured(1000)),
        seed,
        ..Plan::new(Requests::Drawn(case.requests.clone()), pace)
    };
    let found = case.server.measure(Way::Datagrams, &plan)?;
    let latency = found.outcome.latency_ns();
    let points = PERCENTILES.iter().map(|&percentile| {
        let at = latency.value_at_quantile(percentile / 100.0) as f64 / 1e3;
        // A machine that does something else may give the client no time at all.
        let machine = found.machine_us();
        Point::new(PANEL, case.server.to_string(), percentile, at)
            .also(SHARE, found.hit_share.unwrap_or(0.0) * 100.0)
            .also(MACHINE, if machine.is_finite() { machine } else { 0.0 })
            .also(LOST, found.outcome.tally.lost as f64)
    });
    Ok(points.collect())
}

/// The share of requests that the accelerator of a system answered, in percent.
pub fn share(data: &Data, system: &str) -> Option<Spread> {
    let row = data.row(PANEL, system, 50.0)?;
    Some(Spread::of(row.also.get(SHARE)?))
}

/// How many times the latency of `slow` is that of `fast`, at a percentile.
pub fn gain(data: &Data, percentile: f64, slow: &str, fast: &str) -> Option<Spread> {
    data.ratio(PANEL, percentile, slow, fast)
}

/// By how many microseconds the median of a system is above that of another.
fn above(data: &Data, system: &str, other: &str) -> Option<Spread> {
    let [system, other] = [system, other].map(|name| data.row(PANEL, name, 50.0));
    let pairs = system?.samples.iter().zip(&other?.samples);
    let differences: Vec<f64> = pairs.map(|(this, that)| this - that).collect();
    Some(Spread::of(&differences))
}

/// Puts the simulated circuit's latency beside that of the others.
pub fn beside_circuit(shape: &mut Shape) {
    for line in CIRCUIT.lines().skip(1) {
        let fields: Option<Vec<f64>> = line.split(',').map(|field| field.parse().ok()).collect();
        let Some(&[width, _, _, hit, miss]) = fields.as_deref() else {
            unreachable!("a test writes this file");
        };
        for (what, cycles) in [("hit", hit), ("miss, until the CPU has it", miss)] {
            let times = CLOCKS_MHZ.map(|mhz| format!("{:.2} µs at {mhz} MHz", cycles / mhz));
            shape.beside(
                &format!("the simulated circuit, bytes wide: {width}; {what}"),
                "",
                Some(format!("{cycles} cycles: {}", times.join(", "))),
            );
        }
    }
}

/// Judges a distribution that no cache can help: nothing is gained, and each request pays.
pub fn judge_price(data: &Data, shape: &mut Shape) {
    for (system, without) in [(XDP, CONTROL), (MODEL, SOFTWARE)] {
        shape.at_most(
            &format!("requests that {system} answers from its slots, %"),
            "",
            share(data, system),
            1.0,
        );
        shape.at_least(
            &format!("nothing is gained: median of {system} over that of {without}"),
            "",
            gain(data, 50.0, system, without),
            0.9,
        );
        shape.beside(
            &format!("price of a miss: median of {system} above that of {without}, µs"),
            "",
            above(data, system, without).map(|price| price.text(2)),
        );
    }
    beside_circuit(shape);
}

/// Judges a distribution with hot keys: at least this share of the requests gains, in percent, and
/// those requests are answered faster. The percentile is one that lies among them.
pub fn judge_gain(data: &Data, shape: &mut Shape, percent: f64, percentile: f64) {
    for system in [XDP, MODEL] {
        shape.at_least(
            &format!("requests that {system} answers from its slots, %"),
            "",
            share(data, system),
            percent,
        );
    }
    shape.at_least(
        &format!("latency of {MEMCACHED} over {XDP}, at percentile {percentile:.0}"),
        "",
        gain(data, percentile, MEMCACHED, XDP),
        1.6,
    );
    for (system, without) in [(XDP, CONTROL), (MODEL, SOFTWARE)] {
        shape.beside(
            &format!("latency of {without} over {system}, at percentile {percentile:.0}"),
            "",
            gain(data, percentile, without, system).map(|gain| gain.text(2)),
        );
        shape.beside(
            &format!("those that gain nothing: percentile 90 of {system} over {without}"),
            "",
            gain(data, 90.0, system, without).map(|price| price.text(2)),
        );
    }
    beside_circuit(shape);
}

/// Data for tests: a system's share in percent, and its latencies below and above that share.
#[cfg(test)]
pub fn draw(data: &mut Data, system: &str, share: f64, [hit, miss]: [f64; 2]) {
    for percentile in PERCENTILES {
        let latency = if percentile <= share { hit } else { miss };
        let point = Point::new(PANEL, system, percentile, latency).also(SHARE, share);
        data.add(point);
    }
}

/// Data for tests: all systems, where the accelerated ones answer this share in percent, and take
/// so many microseconds more for the others.
#[cfg(test)]
pub fn drawn(share: f64, price: f64) -> Data {
    let mut data = Data::default();
    draw(&mut data, MEMCACHED, 0.0, [0.0, 25.0]);
    draw(&mut data, SOFTWARE, 0.0, [0.0, 20.0]);
    draw(&mut data, MODEL, share, [18.0, 20.0 + price]);
    draw(&mut data, CONTROL, 0.0, [0.0, 20.0]);
    draw(&mut data, XDP, share, [5.0, 20.0 + price]);
    data
}
