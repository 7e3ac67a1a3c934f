//! The simulated server beside a live one: the same load, over the same transport.

use std::fmt;

use anyhow::{Error, Result};
use glimmer_dispatch::PACKET_BYTES;
use glimmer_loadgen::{
    load::{Arrivals, Idle, LargeApart, Latency, Outcome, Pace, Plan, Requests, WarmUp, sweep},
    workload::Workload,
};
use glimmer_queueing::{Costs, Dispatch, Server, Trial, Wire};

use crate::{
    Columns, Data, Figure, Kind, Needs, Point, Run, Shape, Spec,
    calibrate::Bench,
    calibration::{self, Transport},
    plot::{Plot, Unit},
    simulated::default_workload,
};

/// The paper's default workload over fewer keys, of which one in 1600 is large.
const PRESET: &str = "minos:0.125%:500000";
const KEYS: u64 = 160_000;
/// Offered loads, as parts of the live server's rate in a closed loop.
const PARTS: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9];
/// Connections for large values, where requests come one by one.
const LARGE_CONNECTIONS: usize = 4;
/// A native client asks for a large value in rounds of this many packets.
const ROUND_PACKETS: u32 = 32;
/// A measurement counts if the client was late by at most this share of the latencies, both as p99.
const LATE_MAX: f64 = 0.5;
/// Simulated requests for each load.
const REQUESTS: u64 = 400_000;
/// A simulated latency is near if it is within this factor of the live one.
const NEAR: f64 = 1.25;

const LIVE: &str = "live";
const SIMULATED: &str = "simulated";
/// Columns of both lines.
const P50: &str = "p50, µs";
const CPU: &str = "server CPU time per request, ns";
const PEAK: &str = "highest rate, k/s";
/// Columns of the simulated line.
const RATIO: &str = "p99 over live";
const P50_RATIO: &str = "p50 over live";
const PEAK_RATIO: &str = "highest rate over live";
const PATH: &str = "of it outside any core, µs";
const CLIENT: &str = "client's time for a packet, ns";
/// Column of the live line.
const LATE: &str = "client late, p99, µs";

/// The figure.
pub struct Validation;

/// A live server of one worker, and what measures its costs.
struct Lane {
    transport: Transport,
    /// At a server that has the workload's items, too.
    bench: Bench,
    workload: Workload,
    /// The rate of a closed loop, in requests per second.
    peak: f64,
}

impl fmt::Display for Lane {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.transport.name())
    }
}

impl Lane {
    fn start(run: &Run<'_>, transport: Transport) -> Result<Lane> {
        let workload = Workload::preset(PRESET, Some(run.pick(KEYS, 3200))).map_err(Error::msg)?;
        let mut lane = Lane {
            transport,
            bench: Bench::start(run, transport, Some(&workload))?,
            workload,
            peak: 0.0,
        };
        lane.peak = lane.saturate(run, 0)?.operations_per_s();
        Ok(lane)
    }

    fn plan(&self, run: &Run<'_>, pace: Pace, seed: u64) -> Plan {
        Plan {
            connections: self.transport.connections() as usize,
            kernel_timestamps: self.transport.past_kernel().is_none(),
            warm_up: WarmUp::Fixed(run.warm_up()),
            measured: Some(run.measured(1500)),
            seed,
            ..Plan::new(Requests::Drawn(self.workload.clone()), pace)
        }
    }

    /// A closed loop, in which the client or the server is the limit.
    fn saturate(&self, run: &Run<'_>, seed: u64) -> Result<Outcome> {
        let in_flight = self.transport.pipeline();
        let plan = self.plan(run, Pace::Closed { in_flight }, seed);
        self.bench.server().measure_by_busy_time(plan)
    }

    /// Offers this many requests per second.
    fn offer(&self, run: &Run<'_>, per_s: f64, seed: u64) -> Result<Outcome> {
        let burst = self.transport.burst();
        let pace = Pace::Open {
            arrivals: Arrivals::Poisson(per_s / f64::from(burst)),
            burst,
            idle: match self.bench.server().has_client_cores() {
                true => Idle::Spin,
                false => Idle::Sleep,
            },
        };
        let plan = Plan {
            // A client that reads a large value on a connection keeps the others there waiting.
            large: (burst == 1).then_some(LargeApart {
                connections: LARGE_CONNECTIONS,
                threads: 0,
            }),
            measured: Some(run.measured_for_p99(1500, per_s)),
            ..self.plan(run, pace, seed)
        };
        self.bench.server().measure_by_busy_time(plan)
    }

    /// All loads of one repetition, with the costs that were measured in it.
    fn points(&self, run: &Run<'_>, seed: u64) -> Result<Vec<Point>> {
        let requests = self.bench.measure(run, seed)?;
        let live_peak = self
            .bench
            .server()
            .capacity_per_s(&self.saturate(run, seed)?);
        let model = Model::of(&requests);
        let peak = model.peak_per_s(run);
        let mut points = Vec::new();
        for part in PARTS {
            let load = (part * self.peak / 1e3).round().max(1.0);
            let live = self.offer(run, load * 1e3, seed)?;
            let latency = Latency::of(&live.latency_ns());
            let (_, late_us) = Latency::of(&live.lateness).slow();
            let counts = sweep::kept_up(&live) && late_us <= LATE_MAX * latency.slow().1;
            let Some(live_p99_us) = run.p99_us(&latency) else {
                continue;
            };
            if !(counts || run.pick(false, true)) {
                continue;
            }
            let panel = self.transport.name();
            points.push(
                Point::new(panel, LIVE, load, live_p99_us)
                    .also(P50, latency.p50_us)
                    .also(CPU, live.server_ns_per_operation())
                    .also(PEAK, live_peak / 1e3)
                    .also(LATE, late_us),
            );
            let found = model.simulate(load * 1e3, run.pick(REQUESTS, 20_000));
            let us = |ns: f64| (ns + model.path_ns) / 1e3;
            let p99_us = us(found.p99_ns());
            let busy_ns: f64 = found.cores.iter().map(|core| core.busy_ns).sum();
            let executed = found.executed_per_s() * found.measured_ns / 1e9;
            points.push(
                Point::new(panel, SIMULATED, load, p99_us)
                    .also(P50, us(found.p50_ns()))
                    .also(CPU, busy_ns / executed)
                    .also(PEAK, peak / 1e3)
                    .also(RATIO, p99_us / live_p99_us)
                    .also(P50_RATIO, us(found.p50_ns()) / latency.p50_us)
                    .also(PEAK_RATIO, peak / live_peak)
                    .also(PATH, model.path_ns / 1e3)
                    .also(CLIENT, requests.path().packet_ns),
            );
        }
        Ok(points)
    }
}

/// A simulated server with one core and these costs.
struct Model {
    server: Server,
    /// Time that no core spends.
    path_ns: f64,
}

impl Model {
    fn of(requests: &calibration::Requests) -> Model {
        let [get, put] = requests.services();
        let costs = Costs {
            get,
            put,
            poll_ns: requests.look_ns().unwrap_or_default(),
            ..Costs::default()
        };
        let server = Server::alone(costs).slicing();
        let path = requests.path();
        // Where a latency counts until the client has read the reply, the client's core is a link
        // that the packets of all replies take one after the other.
        let client = Wire {
            byte_ns: path.packet_ns / f64::from(PACKET_BYTES),
            overhead_bytes: 0,
            clients: 1,
        };
        let slice_bytes = match requests.transport {
            Transport::Tcp | Transport::TcpBatches => server.slice_bytes,
            _ => ROUND_PACKETS * PACKET_BYTES,
        };
        Model {
            server: Server {
                slice_bytes,
                burst: requests.transport.burst(),
                wire: requests.transport.past_kernel().map(|_| client),
                ..server
            },
            path_ns: path.fixed_ns,
        }
    }

    fn simulate(&self, offered_per_s: f64, requests: u64) -> glimmer_queueing::Outcome {
        let trial = Trial {
            offered_per_s,
            requests,
            seed: 1,
        };
        (self.server).simulate(Dispatch::Keyhash, &default_workload(), trial)
    }

    fn peak_per_s(&self, run: &Run<'_>) -> f64 {
        let trial = Trial {
            offered_per_s: self.server.bound_per_s(&default_workload()),
            requests: run.pick(REQUESTS, 20_000),
            seed: 1,
        };
        (self.server).peak_per_s(Dispatch::Keyhash, &default_workload(), trial)
    }
}

impl Figure for Validation {
    fn spec(&self) -> Spec {
        Spec {
            name: "minos-validation",
            title: "The simulated server beside a live one: one worker",
            source: "The simulation of Minos' figures",
            claim: "No paper states this. The figures of Minos rest on a simulated server, and it \
                    is worth as much as it resembles a live one.",
            here: "One worker and the paper's default workload over 160,000 keys, at loads up to \
                   90% of the live server's rate in a closed loop. Each repetition first measures \
                   costs at the same server, as `glimmer bench calibrate --transport` does, then \
                   loads it, and simulates one core with these costs, slices of 64 KiB (with the \
                   native protocol, of the 32 packets that a client asks for at a time) and no \
                   link. Nothing is fitted to the live points: the part of a latency outside the \
                   server is that of GETs that are alone. The client spins on another core, \
                   requests arrive at random (Poisson), one by one or 16 together, and a latency \
                   counts from the time a request was due until the kernel received its reply. \
                   Past the kernel it counts until the client did, and the packets of all replies \
                   pass the client's core one after the other. Sockets are on loopback; AF_XDP \
                   uses a pair of virtual interfaces, and DPDK memory that server and client \
                   share (`net_memif`). A worker over DPDK never sleeps; of its CPU time only \
                   turns with something to do count. A load has no point if the server does not \
                   sustain it or if the client was late. The highest rate of the live server is \
                   that of its CPU time per request in a closed loop, where the client may be the \
                   limit.",
            kind: Kind::Timing,
            needs: Needs::two_cores(1, 4096),
            columns: Columns {
                panel: "transport",
                series: "server",
                x: "offered, k requests/s",
                y: "p99, µs",
            },
            plot: Plot::lines("offered, k requests/s", "p99")
                .unit(Unit::Microseconds)
                .log_y(),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let mut lanes = Vec::new();
        for transport in Transport::ALL {
            let kind = transport.past_kernel();
            if kind.is_none_or(|kind| run.between(kind, transport.name()).is_some()) {
                lanes.push(Lane::start(run, transport)?);
            }
        }
        run.rounds_of_many(run.repeat(5), &mut lanes, |lane, run, seed| {
            lane.points(run, seed + 1)
        })
    }

    fn judge(&self, data: &Data, shape: &mut Shape) {
        for transport in Transport::ALL {
            let panel = transport.name();
            let rows = || data.line(panel, SIMULATED);
            for (latency, column) in [("p99", RATIO), ("p50", P50_RATIO)] {
                let ratios: Vec<f64> = rows().filter_map(|row| row.also(column)).collect();
                let told: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
                let near = ratios.iter().filter(|ratio| is_near(**ratio)).count();
                shape.beside(
                    &format!("{panel}: {latency} simulated over live, by load"),
                    "1",
                    (!ratios.is_empty()).then(|| {
                        let count = ratios.len();
                        format!("{} ({near} of {count} within 25%)", told.join(", "))
                    }),
                );
            }
            let peak = rows().next().and_then(|row| row.also(PEAK_RATIO));
            shape.beside(
                &format!("{panel}: highest rate simulated over live"),
                "1",
                peak.map(|ratio| format!("{ratio:.2}")),
            );
        }
    }
}

fn is_near(ratio: f64) -> bool {
    (1.0 / NEAR..=NEAR).contains(&ratio)
}
