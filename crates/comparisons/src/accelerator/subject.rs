//! The servers that are compared: memcached, ours without an accelerator, and ours with each of its
//! bodies.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use glimmer_loadgen::{
    load::{self, Outcome, Pace, Pass, Plan, Requests, WarmUp},
    workload::Workload,
};
use glimmer_measure::{
    machine::{self, CLIENT_CORE, SERVER_CORE},
    noise::machine_cpu,
};
use serde::Serialize;

use crate::{
    lab::{Cable, Lab, Place},
    servers::{CONNECTIONS_MAX, Kind, Launch, Server},
};

/// What answers reads of hot keys, as `--accelerate` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// Nothing but the server.
    Off,
    /// The model inside the server.
    Model,
    /// The packet program, at the driver or, where it cannot be there, behind it.
    Xdp,
    /// The packet program at the driver.
    XdpNative,
    /// The packet program behind the driver, beside others.
    Tcx,
}

impl Body {
    /// All of them.
    pub const ALL: [Body; 5] = [
        Body::Off,
        Body::Model,
        Body::Xdp,
        Body::XdpNative,
        Body::Tcx,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Body::Off => "off",
            Body::Model => "model",
            Body::Xdp => "xdp",
            Body::XdpNative => "xdp-native",
            Body::Tcx => "tcx",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Body::Off => "nothing but the server",
            Body::Model => "the model inside the server",
            Body::Xdp => "the packet program, at the driver if it can be there",
            Body::XdpNative => "the packet program at the driver",
            Body::Tcx => "the packet program behind the driver, beside others",
        }
    }

    /// Whether it is a packet program at a network interface.
    pub fn is_at_interface(self) -> bool {
        matches!(self, Body::Xdp | Body::XdpNative | Body::Tcx)
    }
}

/// A server in one configuration, with the cable that joins it to its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    kind: Kind,
    body: Body,
    cable: Cable,
}

/// Our server without an accelerator, over the kernel's usual cable.
pub const SOFTWARE: &str = "glimmer";
/// The same with a packet program that passes everything.
pub const CONTROL: &str = "glimmer, empty program";

impl Subject {
    /// memcached.
    pub fn memcached() -> Subject {
        Subject {
            kind: Kind::Memcached,
            body: Body::Off,
            cable: Cable::Plain,
        }
    }

    /// Ours with this body.
    pub fn ours(body: Body) -> Subject {
        Subject {
            kind: Kind::Glimmer,
            body,
            cable: match body.is_at_interface() {
                true => Cable::ForPackets,
                false => Cable::Plain,
            },
        }
    }

    /// Ours without an accelerator, with a program that passes everything in the place of ours: it
    /// tells what our program costs from what the kernel costs with any program.
    pub fn control() -> Subject {
        Subject {
            cable: Cable::Empty,
            ..Subject::ours(Body::Off)
        }
    }

    /// Ours with the packet program in the kernel's generic mode.
    pub fn generic() -> Subject {
        Subject {
            cable: Cable::ForGeneric,
            ..Subject::ours(Body::Xdp)
        }
    }

    /// Its name in tables.
    pub fn name(&self) -> String {
        match (self.kind, self.body, self.cable) {
            (Kind::Glimmer, Body::Off, Cable::Plain) => SOFTWARE.to_owned(),
            (Kind::Glimmer, Body::Off, _) => CONTROL.to_owned(),
            (Kind::Glimmer, body, Cable::ForGeneric) => {
                format!("glimmer {}, generic", body.name())
            }
            (Kind::Glimmer, body, _) => format!("glimmer {}", body.name()),
            (kind, ..) => kind.name().to_owned(),
        }
    }

    /// Which server it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What answers reads of hot keys.
    pub fn body(&self) -> Body {
        self.body
    }

    /// Starts the server on its core.
    ///
    /// # Errors
    ///
    /// If it does not start; the message contains what the server said.
    pub fn start(&self, lab: &mut Lab, setup: &Setup) -> Result<Running> {
        let place = lab.place(self.cable)?;
        let server = Launch {
            contender: self.kind.into(),
            threads: 1,
            cores: vec![SERVER_CORE],
            memory_mib: setup.memory_mib,
            value_bytes: 0,
            udp: true,
            connections_max: CONNECTIONS_MAX,
            arguments: self.arguments(&place, setup)?,
        }
        .start_at(&place)?;
        place.receive_on(SERVER_CORE)?;
        Ok(Running {
            subject: self.clone(),
            server,
            client_cores: setup.client_cores.clone(),
        })
    }

    fn arguments(&self, place: &Place, setup: &Setup) -> Result<Vec<String>> {
        let mut arguments = Vec::new();
        if self.kind != Kind::Glimmer {
            return Ok(arguments);
        }
        if self.body != Body::Off {
            let mut body = self.body.name().to_owned();
            if self.body.is_at_interface() {
                let interface = place.interface.as_ref();
                let interface = interface.context("there is no interface on loopback")?;
                body = format!("{body}:{interface}");
            }
            arguments.extend(["--accelerate".to_owned(), body]);
            arguments.extend(["--accelerate-slots".to_owned(), setup.slots.to_string()]);
        }
        arguments.extend(setup.arguments.iter().cloned());
        Ok(arguments)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name())
    }
}

/// How servers are started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Each server's `-m`.
    pub memory_mib: usize,
    /// Items for which an accelerator has room.
    pub slots: usize,
    /// Cores with a client thread each.
    pub client_cores: Vec<usize>,
    /// More arguments for our server.
    pub arguments: Vec<String>,
}

/// How requests reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// memcached's UDP protocol in plain datagrams.
    Datagrams,
    /// The same in segment batches.
    Batches,
    /// memcached's text protocol over TCP.
    Tcp,
}

/// A running server.
pub struct Running {
    subject: Subject,
    pub(super) server: Server,
    client_cores: Vec<usize>,
}

impl fmt::Display for Running {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(out)
    }
}

/// What one measurement gave.
pub struct Measured {
    /// What the client saw.
    pub outcome: Outcome,
    /// CPU time of the whole machine, in seconds.
    pub machine_cpu_s: f64,
    /// The share of reads that the accelerator answered; `None` without one.
    pub hit_share: Option<f64>,
}

impl Measured {
    /// CPU time of the whole machine per request, in microseconds.
    pub fn machine_us(&self) -> f64 {
        self.machine_cpu_s * 1e6 / self.outcome.tally.operations() as f64
    }

    /// The part of it that client and server used. It includes the kernel's work on what they send.
    pub fn own_us(&self) -> f64 {
        let client_s: f64 = self.outcome.client_cpu_s.iter().sum();
        let own_s = client_s + self.outcome.server_cpu_s;
        own_s * 1e6 / self.outcome.tally.operations() as f64
    }
}

/// Reads by who answered them, since the start of the server.
#[derive(Clone, Copy)]
pub(super) struct Reads {
    all: u64,
    pub accelerated: u64,
}

impl Running {
    /// Which server it is.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Stores all items of a workload.
    pub fn store(&self, items: &Workload) -> Result<()> {
        let (target, keys) = (self.server.target(), 0..items.keys);
        let store = || load::pass(&target, items, Pass::Write, keys, &mut |_| {});
        let tally = machine::on_core(Some(CLIENT_CORE), store)?;
        let tally = tally.with_context(|| format!("storing items in {self}"))?;
        ensure!(
            tally.refused == 0,
            "{self} refused {} of {} items: it needs more memory (-m)",
            tally.refused,
            items.keys
        );
        Ok(())
    }

    /// Sends requests for this long without measuring, so that an accelerator learns which keys
    /// are hot. Returns how many were answered.
    pub fn settle(&self, requests: &Workload, time: Duration) -> Result<u64> {
        let plan = Plan {
            connections: 4,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            measured: Some(time),
            // Other requests than those that are measured, and others each time.
            seed: rand::random(),
            ..Plan::new(
                Requests::Drawn(requests.clone()),
                Pace::Closed { in_flight: 16 },
            )
        };
        let measured = self.measure(Way::Datagrams, &plan)?;
        Ok(measured.outcome.tally.operations())
    }

    /// Executes a plan on the client's cores.
    pub fn measure(&self, way: Way, plan: &Plan) -> Result<Measured> {
        let target = match way {
            Way::Datagrams => self.server.udp_target(false),
            Way::Batches => self.server.udp_target(true),
            Way::Tcp => self.server.target(),
        };
        let plan = plan.clone().on_cores(&self.client_cores);
        let before = self.reads()?;
        // The time of the server is asked for at both ends of the measured time, and so is that of
        // the machine.
        let machine = Mutex::new(Vec::new());
        let cpu = || {
            let now = machine_cpu()?;
            machine
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(now);
            self.server.cpu()
        };
        let drive = || load::run(&target, &plan, Some(&cpu), &mut |_| {});
        let outcome = machine::on_core(Some(CLIENT_CORE), drive)?;
        let outcome = outcome.with_context(|| format!("measuring {self}"))?;
        let hit_share = match (before, self.reads()?) {
            (Some(before), Some(after)) if after.all > before.all => {
                let hits = (after.accelerated - before.accelerated) as f64;
                Some(hits / (after.all - before.all) as f64)
            }
            (Some(_), _) => Some(0.0),
            (None, _) => None,
        };
        let machine = machine.into_inner().unwrap_or_else(PoisonError::into_inner);
        let machine_cpu_s = match (machine.first(), machine.last()) {
            (Some(&first), Some(&last)) => last.saturating_sub(first).as_secs_f64(),
            _ => 0.0,
        };
        Ok(Measured {
            outcome,
            machine_cpu_s,
            hit_share,
        })
    }

    /// Reads so far; `None` without an accelerator.
    pub(super) fn reads(&self) -> Result<Option<Reads>> {
        if self.subject.body == Body::Off {
            return Ok(None);
        }
        let of = |argument, name: &str| -> Result<u64> {
            let figures = self.server.stats(argument)?;
            let figure = figures.get(name).copied();
            figure.with_context(|| format!("stats {argument} of {self} has no {name}"))
        };
        Ok(Some(Reads {
            accelerated: of("accelerator", "hits")?,
            all: of("", "cmd_get")?,
        }))
    }
}
