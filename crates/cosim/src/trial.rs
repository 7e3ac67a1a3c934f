//! The whole circuit with real clients in front and a real server behind, and what came of it.

use crate::bed::{self, Bed, Server};
use crate::clients::{self, Hammered, Reads};
use anyhow::{Context, Result, ensure};
use glimmer_accel_device::device::DeviceCounters;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Time between two lines about work that is not done yet.
const TELL: Duration = Duration::from_secs(5);
/// One request of this many is made once more by libmemcached's load generator, and as many with
/// memcached behind the circuit.
const FEWER: u64 = 10;
/// How a process ends that was interrupted.
const INTERRUPTED: i32 = 130;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Requests of the load generator.
    pub requests: u64,
    /// For how long keys are changed and read at a time.
    pub hammered: Duration,
    /// The circuit.
    pub circuit: bed::Circuit,
    /// The program whose command `serve` is the server behind the circuit: this one.
    pub server: PathBuf,
}

/// Tries it and prints a report.
///
/// # Errors
///
/// At the first answer that is wrong, outdated or lost, and if the circuit has answered nothing, or
/// everything.
pub fn run(trial: &Trial) -> Result<()> {
    let tools = Bed::check()?;
    let bed::Circuit { width, slots, .. } = trial.circuit;
    println!("circuit: {width} bytes in a cycle, {slots} slots");
    let bed = Bed::new(&tools, trial.circuit.clone())?;
    clean_up_if_interrupted(&bed)?;
    let begun = Instant::now();
    eprintln!("building the simulation, if it is not there yet, and starting glimmer");
    let mut server = bed.glimmer(&trial.server)?;
    before(&bed, trial).context("glimmer behind the circuit")?;
    server.kill();
    ensure!(
        Reads::new()?.is_without_answer(0)?,
        "the circuit answers although its server is gone"
    );
    println!("  killed: the circuit answers nothing any more");
    match bed.memcached() {
        Ok(server) => beside(&bed, trial, server).context("memcached behind the circuit")?,
        Err(error) => println!("memcached is left out: {error:#}"),
    }
    bed.close()?;
    println!(
        "nothing was wrong, outdated or lost; {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Glimmer is behind the circuit, and fills it.
fn before(bed: &Bed, trial: &Trial) -> Result<()> {
    println!("glimmer behind it:");
    load(bed, "load generator", trial.requests, trial.circuit.seed)?.check_filled()?;
    let at = bed.counters();
    let requests = trial.requests / FEWER;
    match clients::memcaslap(requests)? {
        Some(requests) => Answered::since(bed, &at, requests).print("memcaslap, text"),
        None => println!("  memcaslap is left out: apt-get install libmemcached-tools"),
    }
    let at = bed.counters();
    let (begun, news) = (Instant::now(), News::new());
    let Hammered { reads, changes } = clients::hammer(|done| {
        news.tell(|| {
            let Hammered { reads, changes } = done;
            format!("hammer: {reads} reads, {changes} changes")
        });
        begun.elapsed() < trial.hammered
    })?;
    let answered = Answered::since(bed, &at, reads);
    answered.print("hammer, raw sockets");
    println!("  {changes} changes meanwhile, and no read was told of an outdated value");
    ensure!(answered.by_circuit > 0, "the circuit answered nothing");
    let DeviceCounters {
        cycles,
        bypassed,
        defer_high_water,
        ..
    } = bed.counters();
    println!(
        "  {cycles} cycles; {bypassed} reads passed on in write mode; at most {defer_high_water} \
         bytes in the defer buffer"
    );
    Ok(())
}

/// memcached is behind the circuit, and nobody fills it.
fn beside(bed: &Bed, trial: &Trial, mut server: Server) -> Result<()> {
    println!("memcached behind it, which fills no slots:");
    let requests = trial.requests / FEWER;
    let answered = load(bed, "load generator", requests, trial.circuit.seed)?;
    ensure!(answered.by_circuit == 0, "the circuit answered by itself");
    server.kill();
    Ok(())
}

fn load(bed: &Bed, name: &str, requests: u64, seed: u64) -> Result<Answered> {
    let (at, news) = (bed.counters(), News::new());
    let tally = clients::load(requests, seed, |done| {
        news.tell(|| format!("{name}: {done} of {requests} requests"));
    })?;
    ensure!(tally.lost == 0, "{} requests were lost", tally.lost);
    ensure!(tally.refused == 0, "{} were refused", tally.refused);
    ensure!(tally.misses == 0, "{} keys were not found", tally.misses);
    let answered = Answered::since(bed, &at, tally.operations());
    answered.print(name);
    Ok(answered)
}

/// Who has answered.
#[derive(Clone, Copy, Debug)]
struct Answered {
    requests: u64,
    by_circuit: u64,
}

impl Answered {
    fn since(bed: &Bed, before: &DeviceCounters, requests: u64) -> Answered {
        Answered {
            requests,
            by_circuit: bed.counters().hits - before.hits,
        }
    }

    fn print(&self, client: &str) {
        println!(
            "  {client}: {} requests, {} answered by the circuit and {} by the server",
            self.requests,
            self.by_circuit,
            self.requests - self.by_circuit
        );
    }

    /// Whether both have answered.
    fn check_filled(&self) -> Result<()> {
        ensure!(self.by_circuit > 0, "the circuit answered nothing");
        ensure!(
            self.by_circuit < self.requests,
            "the server answered nothing"
        );
        Ok(())
    }
}

/// Lines about work that is not done yet.
#[derive(Debug)]
struct News(Mutex<Instant>);

impl News {
    fn new() -> News {
        News(Mutex::new(Instant::now()))
    }

    /// Prints a line, if the last one was a while ago.
    fn tell(&self, line: impl FnOnce() -> String) {
        let mut last = self.0.lock().expect("not poisoned");
        if last.elapsed() >= TELL {
            *last = Instant::now();
            eprintln!("{}", line());
        }
    }
}

/// Servers, namespaces and devices go with this process. The socket's folder does not.
fn clean_up_if_interrupted(bed: &Bed) -> Result<()> {
    let folder = bed.folder();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = std::fs::remove_dir_all(folder);
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}
