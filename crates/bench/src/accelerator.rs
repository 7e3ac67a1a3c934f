//! `glimmer bench accelerator`.

use std::{path::PathBuf, time::Duration};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use glimmer_base::limits::{HOT_SLOTS_DEFAULT, HOT_SLOTS_MAX, HOT_SLOTS_MIN};
use glimmer_comparisons::{
    accelerator::{self, Body, Keys, Options, Scenario},
    lab::Receiver,
};
use glimmer_measure::machine;
use glimmer_notation as notation;

use crate::{Placed, progress::Watch};
use glimmer_cli::vocabulary::{self, client_threads, memory_mib, repetitions, seconds};

/// Measure the hot-key accelerator beside memcached and this server without it
///
/// The command makes two network namespaces and a veth pair for each server, starts
/// memcached, this server, and this server with each body of --accelerate, and asks
/// all of them in turn over memcached's UDP protocol. It prints requests per second,
/// latencies, the CPU time of the whole machine per request, and the share of reads
/// that the accelerator answered, with ratios over memcached and over this server
/// without an accelerator, and what the accelerator is held to.
///
/// The namespaces have no names, and nothing of them is seen outside. They end with
/// the command, however it ends, and so do the servers.
///
/// It needs root, or CAP_SYS_ADMIN for namespaces, CAP_NET_ADMIN for veth pairs, and
/// CAP_BPF for packet programs; and `ip`, of the package iproute2. With --loopback it
/// needs nothing of that, and measures no packet program. What cannot take part is
/// left out, and the report says why.
///
/// `glimmer, empty program` is this server without an accelerator, with a program at
/// its interface that passes everything. On a veth pair the kernel then copies each
/// packet, cuts segment batches and computes checksums. It tells what our program
/// costs from what the kernel costs with any program.
///
/// A network card interrupts a core of the server, and a packet program runs there. On a
/// veth pair it runs on the client's core, which then has less time for requests. With
/// --receive-thread it runs on the server's core (threaded NAPI, Linux 5.12 or later).
///
/// Examples:
///
///   glimmer bench accelerator                           all of it, about ten minutes
///
///   glimmer bench accelerator --scenario alone,sockets64 --keys-by one
///
///   glimmer bench accelerator --receive-thread --scenario plain,sockets64,ycsb-a
///
///   glimmer bench accelerator --receive-thread --client-threads 4
///
///   glimmer bench accelerator --body model --loopback   without root
///
///   glimmer bench accelerator --body off,xdp --keys-by uniform,normal,pareto,etc
///
///   glimmer bench accelerator --scenario hit-ratio --json hit-ratio.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// What answers reads of hot keys, as --accelerate of the server has it; `off` is the server
    /// without, and always takes part
    #[arg(
        long,
        value_name = "BODY",
        value_delimiter = ',',
        default_value = "off,model,xdp",
        value_parser = bodies(),
    )]
    body: Vec<Body>,
    /// Leave memcached out
    #[arg(long)]
    without_memcached: bool,
    /// How the servers are loaded [default: all of these]
    #[arg(long, value_delimiter = ',', value_parser = scenarios())]
    scenario: Vec<Scenario>,
    /// Which keys are asked for in sockets64, plain, batches and alone
    #[arg(
        long,
        value_name = "LAW",
        value_delimiter = ',',
        default_value = "one,zipf",
        value_parser = laws(),
    )]
    keys_by: Vec<Keys>,
    /// Run everything on loopback, which needs no rights
    #[arg(long)]
    loopback: bool,
    /// Let a thread of each interface with a packet program receive, on the server's core; without
    /// it, the client receives for the server in its system calls
    #[arg(long, conflicts_with = "loopback")]
    receive_thread: bool,
    /// Number of keys; the hit ratio takes four times as many
    #[arg(long, default_value = "1m", value_parser = vocabulary::count)]
    keys: u64,
    /// Items for which the accelerator has room: 256 to 65536
    #[arg(long, value_name = "N", default_value_t = HOT_SLOTS_DEFAULT, value_parser = slots())]
    slots: usize,
    /// Client threads, each with a core of its own
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = client_threads)]
    client_threads: usize,
    /// Length of one measurement in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Repetitions of every measurement
    #[arg(long, default_value_t = 5, value_parser = repetitions)]
    repeat: u16,
    /// Memory limit of every server in MiB, except for the hit ratio
    #[arg(short, long, value_name = "MIB", default_value_t = 1024, value_parser = memory_mib)]
    memory_limit: usize,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

/// Reads one of these by its name. The help lists all of them with what they are.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    about: fn(T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    let listed = all.map(|one| {
        let (name, about) = about(one);
        PossibleValue::new(name).help(about)
    });
    PossibleValuesParser::new(listed).map(move |text| {
        let mut all = all.into_iter();
        let found = all.find(|&one| about(one).0 == text);
        found.expect("only names of the list are accepted")
    })
}

fn bodies() -> impl TypedValueParser<Value = Body> {
    one_of(Body::ALL, |body| (body.name(), body.about()))
}

fn scenarios() -> impl TypedValueParser<Value = Scenario> {
    one_of(Scenario::ALL, |scenario| {
        (scenario.name(), scenario.title())
    })
}

fn laws() -> impl TypedValueParser<Value = Keys> {
    one_of(Keys::ALL, |keys| (keys.name(), keys.about()))
}

fn slots() -> impl TypedValueParser<Value = usize> {
    let range = HOT_SLOTS_MIN as u64..=HOT_SLOTS_MAX as u64;
    notation::within::<usize>(notation::count, range)
}

impl Arguments {
    /// Runs the comparison and prints its tables.
    pub fn run(&self) -> anyhow::Result<()> {
        let report = accelerator::run(&self.options(), &Watch::new("accelerator"))?;
        print!("{report}");
        super::write_json(&self.json, &Placed::here(&report))
    }

    fn options(&self) -> Options {
        // Without the server alone there is nothing to compare with.
        let mut bodies = vec![Body::Off];
        for &body in &self.body {
            if !bodies.contains(&body) {
                bodies.push(body);
            }
        }
        Options {
            bodies,
            memcached: !self.without_memcached,
            scenarios: match self.scenario.is_empty() {
                true => Scenario::ALL.into(),
                false => self.scenario.clone(),
            },
            keys_by: self.keys_by.clone(),
            loopback: self.loopback,
            receiver: match self.receive_thread {
                true => Receiver::Thread,
                false => Receiver::Sender,
            },
            keys: self.keys,
            slots: self.slots,
            measured: Duration::from_secs_f64(self.seconds),
            repeat: usize::from(self.repeat),
            client_cores: machine::client_cores(self.client_threads),
            memory_mib: self.memory_limit,
            glimmer_arguments: super::words(&self.glimmer_args),
        }
    }
}
