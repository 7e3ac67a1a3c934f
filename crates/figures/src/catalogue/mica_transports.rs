//! MICA, §3.2, §5.2 and Table 1: requests per second of one core, over the kernel's sockets and
//! past the kernel, each beside an echo over the same transport.

use std::{fmt, sync::Arc};

use anyhow::{Context, Result};
use glimmer_comparisons::transports::Between;
use glimmer_loadgen::{load::Pace, workload::Workload};

use crate::{
    Columns, Figure, Kind, Needs, Point, Run, Spec,
    plot::{Mark, Plot},
    systems::{Items, Running, System},
    workload::Mix,
};

const ITEMS: Items = Items::tiny(1_000_000);
const MEMORY_MIB: usize = 2048;
/// Sockets of the client, or its devices.
pub(super) const SOCKETS: usize = 4;
/// A read of a tiny item: the headers of 32 and 16 bytes, and the key.
const REQUEST_BYTES: usize = 32 + 16 + 8;
/// Length of a measurement of the server and of the echo, in milliseconds.
const SERVER_MS: u64 = 700;
const ECHO_MS: u64 = 400;
const SERVER: &str = "glimmer erew";
const ECHO: &str = "echo";
const DATAGRAMS: &str = "datagrams of 56 bytes";
const READS: &str = "memcached's UDP protocol, one key";
const CLOSED: &str = "256 in flight";
const FLOOD: &str = "all that the client can send";
pub(super) const SERVER_NS: &str = "server CPU per request, ns";
const KERNEL: &str = "kernel part of server CPU";
pub(super) const CLIENT_BUSY: &str = "client busy";
pub(super) const LOST: &str = "lost, part";
const BURST: &str = "datagrams per receiving call";
const RECEIVES: &str = "receiving calls per turn";

/// A transport: its kind, its name in figures, and requests in flight on each socket.
pub(super) struct Carrier {
    pub kind: &'static str,
    pub name: &'static str,
    pub in_flight: u32,
}

const fn carrier(kind: &'static str, name: &'static str, in_flight: u32) -> Carrier {
    Carrier {
        kind,
        name,
        in_flight,
    }
}

pub(super) const PLAIN: Carrier = carrier("udp-plain", "sockets, single datagrams", 64);
pub(super) const BATCHES: Carrier = carrier("udp", "sockets, segment batches", 512);
pub(super) const XDP: Carrier = carrier("xdp", "AF_XDP", 32);
pub(super) const DPDK: Carrier = carrier("dpdk", "DPDK", 128);
const ALL: [Carrier; 4] = [PLAIN, BATCHES, XDP, DPDK];

/// MICA's throughput in Mops (§5.2, Tables 1 and 2).
const PAPER: [(&str, f64); 4] = [
    ("uniform, 50% GET", 76.9),
    ("uniform, 95% GET", 75.5),
    ("skewed, 50% GET", 70.4),
    ("skewed, 95% GET", 65.6),
];

/// The figure.
pub struct Carriers;

/// A server over a transport, with what an echo beside it needs.
pub(super) struct Carried {
    pub server: Running,
    /// Sockets on loopback if there is nothing.
    between: Option<Arc<Between>>,
    in_flight: u32,
}

impl fmt::Display for Carried {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(out)
    }
}

/// What is measured over a transport.
enum Case<'a> {
    Server(&'a Carried, Mix),
    Echo(&'a Carried),
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Case::Server(carried, mix) => write!(out, "{mix}: {}", carried.server),
            Case::Echo(carried) => write!(out, "{ECHO}: {}", carried.server),
        }
    }
}

impl Figure for Carriers {
    fn spec(&self) -> Spec {
        let of_one_core = |(load, mops): (&'static str, f64)| {
            Mark::bar(SERVER, DPDK.name, load, mops * 1e6 / 16.0)
        };
        Spec {
            name: "mica-transports",
            title: "Requests per second of one core, by transport",
            source: "MICA (NSDI'14), §3.2, §5.2 and Figure 10",
            claim: "Standard sockets have a high overhead for short messages and handle fewer \
                    packets per second than direct access to the network card. On tiny items \
                    MICA reaches 76.9 Mops with 16 cores, near what its network stack handles \
                    without a store.",
            here: "One EREW worker runs on one core and one client on another, over the same \
                   transport. Requests are native, one in each datagram, for a million tiny \
                   items. Sockets and AF_XDP use a pair of virtual interfaces between two network \
                   namespaces. AF_XDP runs in the kernel's driver of that pair, which copies each \
                   frame. DPDK's ports are memory that server and client share (`net_memif`), so \
                   no network card is part of any number. Sockets with single datagrams have a \
                   system call for each of them, as in the paper's time; with segment batches the \
                   kernel takes up to 64 datagrams as one. The kernel receives a frame of a \
                   virtual interface on the core that sends it, so each core pays for its own \
                   sending and the other's receiving. A DPDK worker polls and is always busy: its \
                   CPU time per request is the time between two requests. Many receiving calls \
                   per turn, in the data, mean that it found requests whenever it looked. The \
                   client has 4 sockets, or 4 devices, and as many requests in flight as the \
                   transport needs: 64 on each with single datagrams, 512 with segment batches, \
                   32 with AF_XDP, whose queues have 256 frames, and 128 with DPDK. The echo sends \
                   datagrams of a GET's length back, with as many in flight.",
            kind: Kind::Timing,
            needs: Needs::two_cores(16, 2048),
            columns: Columns {
                panel: "program",
                series: "transport",
                x: "workload",
                y: "requests or datagrams per s",
            },
            plot: Plot::bars("", "per second").columns(1).paper(
                "MICA, EREW, §5.2 and Tables 1 and 2, for one of its 16 cores: 76.9, 75.5, 70.4 \
                 and 65.6 Mops",
                PAPER.map(of_one_core).into(),
            ),
        }
    }

    fn measure(&self, run: &mut Run<'_>) -> Result<()> {
        let items = run.pick(ITEMS, ITEMS.only(2000));
        self.best_effort(run)?;
        let all = start(run, items)?;
        let mixes = run.pick(&Mix::ALL[..], &Mix::ALL[..1]);
        let loads = mixes.iter().map(Some).chain([None]);
        let can_run = |case: &Case<'_>| match case {
            Case::Server(..) => true,
            Case::Echo(carried) => carried.between.is_some(),
        };
        let of_all = |mix: Option<&Mix>| {
            let of_one = |carried| match mix {
                Some(mix) => Case::Server(carried, *mix),
                None => Case::Echo(carried),
            };
            all.iter().map(of_one).collect::<Vec<_>>()
        };
        let mut cases: Vec<Case<'_>> = loads.flat_map(of_all).filter(can_run).collect();
        run.rounds(run.repeat(7), &mut cases, |case, run, seed| match case {
            Case::Server(carried, mix) => carried.serves(*mix, items, run, seed),
            Case::Echo(carried) => carried.echoes(run),
        })
    }
}

/// A server over each transport that this machine can do, with these items.
pub(super) fn start(run: &mut Run<'_>, items: Items) -> Result<Vec<Carried>> {
    start_each(run, |system, run| system.start(run, items))
}

/// The same with the items of a workload.
pub(super) fn start_with(run: &mut Run<'_>, workload: &Workload) -> Result<Vec<Carried>> {
    start_each(run, |system, run| {
        system.start_with(run, workload, MEMORY_MIB)
    })
}

fn start_each(
    run: &mut Run<'_>,
    start: impl Fn(System, &Run<'_>) -> Result<Running>,
) -> Result<Vec<Carried>> {
    let ours = || System::native("erew").memory_mib(MEMORY_MIB);
    let mut all = Vec::new();
    for carrier in &ALL {
        if let Some(between) = run.between(carrier.kind, carrier.name) {
            if between.is_polled() {
                run.note(format!("{} is {}", carrier.name, between.name()));
            }
            all.push(Carried {
                server: start(ours().over(carrier.name, between.clone()), run)?,
                between: Some(between),
                in_flight: carrier.in_flight,
            });
        }
    }
    if all.is_empty() {
        run.note("sockets are on loopback");
        all.push(Carried {
            server: start(ours(), run)?,
            between: None,
            in_flight: BATCHES.in_flight,
        });
    }
    Ok(all)
}

impl Carriers {
    /// Replies to as many requests as a client can send, beside those of a closed loop.
    fn best_effort(&self, run: &mut Run<'_>) -> Result<()> {
        let mut all = Vec::new();
        for carrier in &ALL {
            let between = run.between(carrier.kind, carrier.name);
            all.extend(between.map(|between| (carrier.name, between)));
        }
        let mut names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        run.rounds_of_many(run.repeat(7), &mut names, |name, run, _| {
            let (_, between) = all.iter().find(|(known, _)| known == name).expect("known");
            let rates = between.reads_per_s(run.measured(ECHO_MS))?;
            let points = [CLOSED, FLOOD].into_iter().zip(rates);
            Ok(points
                .map(|(load, rate)| Point::new(READS, *name, load, rate))
                .collect())
        })
    }
}

impl Carried {
    fn serves(&self, mix: Mix, items: Items, run: &Run<'_>, seed: u64) -> Result<Point> {
        let in_flight = self.in_flight;
        let mut plan = mix.plan(run, items, 1, Pace::Closed { in_flight }, SERVER_MS);
        (plan.connections, plan.seed) = (SOCKETS, seed);
        let before = self.server.native_workers()?;
        let (outcome, kernel) = self.server.measure_in_parts(plan)?;
        let worker = self.server.native_workers()?[0].since(before[0]);
        let all = (outcome.tally.operations() + outcome.tally.lost).max(1) as f64;
        let rate = outcome.operations_per_s();
        let point = Point::new(SERVER, self.server.name(), mix.to_string(), rate);
        Ok(point
            .also(SERVER_NS, outcome.server_ns_per_operation())
            .also(KERNEL, kernel)
            .also(CLIENT_BUSY, outcome.client_busy())
            .also(LOST, outcome.tally.lost as f64 / all)
            .also(BURST, worker.burst())
            .also(RECEIVES, worker.receives_per_turn()))
    }

    fn echoes(&self, run: &Run<'_>) -> Result<Point> {
        let in_flight = SOCKETS * self.in_flight as usize;
        let between = self.between.as_ref().context("an echo has two ends")?;
        let rate = between.echoes_per_s(REQUEST_BYTES, in_flight, run.measured(ECHO_MS))?;
        Ok(Point::new(ECHO, self.server.name(), DATAGRAMS, rate))
    }
}
