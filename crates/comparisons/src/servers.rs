//! Runs servers as child processes: ours and its competitors, as far as they are installed. They
//! are pinned to cores and stop with this process.

mod build;
mod busy_time;
mod contender;
mod datagrams;
mod encryption;
mod kind;
mod workers;

use std::{
    ffi::OsStr,
    fs::File,
    io::{Read, Seek},
    net::{SocketAddr, TcpStream},
    os::{fd::AsFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{MemfdFlags, memfd_create},
    process::{Pid, Signal, geteuid, kill_process, set_parent_process_death_signal},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    client::{self, closed, open},
    lab::Place,
};
use glimmer_connect::Admission;
use glimmer_loadgen::{
    driver::{Address, Target},
    load::{self, Pass, Tally},
    workload::Workload,
};
use glimmer_measure::machine;

pub use build::{Build, Described, list};
pub use busy_time::BusyTime;
pub use contender::Contender;
pub use encryption::Encryption;
pub use glimmer_measure::ports::free_ports;
pub use kind::Kind;
pub use workers::Worker;

const START_MAX: Duration = Duration::from_secs(20);
const STOP_MAX: Duration = Duration::from_secs(5);
/// What servers are started with, unless a measurement needs more connections.
pub const CONNECTIONS_MAX: usize = 1024;

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The server.
    pub contender: Contender,
    /// Its worker threads (Redis and Valkey have one).
    pub threads: usize,
    /// Cores that it may use.
    pub cores: Vec<usize>,
    /// Its `-m` in MiB (Redis and Valkey have no limit by default).
    pub memory_mib: usize,
    /// Length in bytes of the values that its clients write.
    pub value_bytes: usize,
    /// Whether to serve UDP on the TCP port, if the server can.
    pub udp: bool,
    /// Its largest number of connections (Redis and Valkey have their own).
    pub connections_max: usize,
    /// More arguments.
    pub arguments: Vec<String>,
}

/// A running server. It stops when this value is dropped, and when this process ends in any way.
pub struct Server {
    child: Child,
    contender: Contender,
    address: SocketAddr,
    value_bytes: usize,
    /// What it wants of its clients.
    admission: Admission,
    /// Its standard error output.
    said: File,
}

impl Launch {
    /// A cache on all cores that evicts at its limit, as memcached and ours do unasked.
    pub fn evicting(
        contender: Contender,
        threads: usize,
        memory_mib: usize,
        mut arguments: Vec<String>,
    ) -> Launch {
        if let Kind::Redis | Kind::Valkey = contender.kind() {
            let limit = format!("{memory_mib}mb");
            let limits = ["--maxmemory", &limit, "--maxmemory-policy", "allkeys-lru"];
            arguments.extend(limits.map(String::from));
        }
        Launch {
            contender,
            threads,
            cores: (0..machine::cores()).collect(),
            memory_mib,
            value_bytes: 0,
            udp: false,
            connections_max: CONNECTIONS_MAX,
            arguments,
        }
    }

    /// Starts the server on loopback and waits until it accepts connections.
    pub fn start(&self) -> Result<Server> {
        self.start_at(&Place::loopback())
    }

    /// The same somewhere else.
    pub fn start_at(&self, place: &Place) -> Result<Server> {
        let name = self.contender.name();
        let address = SocketAddr::from((place.ip, free_ports(1)?));
        let encryption = self.contender.encryption();
        let admission = Admission {
            tls: encryption.map(Encryption::client).transpose()?,
            ..Admission::default()
        };
        let mut command = self.command(address)?;
        let (cores, namespace) = (self.cores.clone(), place.namespace.clone());
        let start = move || {
            // So that no server outlives a benchmark that is interrupted or killed.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if let Some(namespace) = &namespace {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            }
            machine::pin(cores.iter().copied())
        };
        // SAFETY: between fork and exec, the closure makes three system calls and does not
        // allocate.
        unsafe { command.pre_exec(start) };
        let said = File::from(memfd_create("stderr", MemfdFlags::CLOEXEC)?);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(said.try_clone()?);
        let child = command
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let mut server = Server {
            child,
            contender: self.contender.clone(),
            address,
            value_bytes: self.value_bytes,
            admission,
            said,
        };
        let begin = Instant::now();
        loop {
            // If it has ended, somebody else has its port and accepts.
            let accepts = TcpStream::connect(address).is_ok();
            if let Some(status) = server.child.try_wait()? {
                let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
                bail!(
                    "{name} did not start ({status}): {name} {}\n{}",
                    arguments.join(" "),
                    server.said()
                );
            }
            if accepts {
                return Ok(server);
            }
            if begin.elapsed() > START_MAX {
                bail!("{name} accepts no connections at {address}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn command(&self, address: SocketAddr) -> Result<Command> {
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let threads = self.threads.to_string();
        let memory = self.memory_mib.to_string();
        let connections = self.connections_max.to_string();
        let udp_port = if self.udp { port.as_str() } else { "0" };
        let program = self.contender.program()?;
        let mut command = match self.contender.kind() {
            // A client that leaves with replies on their way would end it by this signal.
            Kind::Masstree => {
                let mut command = Command::new("env");
                command.arg("--ignore-signal=PIPE").arg(program);
                command
            }
            _ => Command::new(program),
        };
        match self.contender.kind() {
            Kind::Glimmer => {
                command
                    .arg("serve")
                    .args(["-l", &ip, "-p", &port, "-t", &threads]);
                command.args(["-m", &memory, "-U", udp_port, "-c", &connections]);
            }
            Kind::Memcached => {
                command.args(["-l", &ip, "-p", &port, "-t", &threads]);
                command.args(["-m", &memory, "-U", udp_port, "-c", &connections]);
                if geteuid().is_root() {
                    // Root must say explicitly that it wants to run the server. Another user would
                    // be safer in general, but a process that changes its user is no longer
                    // notified when its parent ends.
                    command.args(["-u", "root"]);
                }
            }
            Kind::Redis | Kind::Valkey => {
                let (plain, encrypted) = match self.contender.encryption() {
                    Some(_) => ("0", Some(["--tls-port", &port])),
                    None => (port.as_str(), None),
                };
                command.args(["--bind", &ip, "--port", plain, "--io-threads", "1"]);
                command.args(encrypted.into_iter().flatten());
                command.args(["--save", "", "--appendonly", "no", "--loglevel", "warning"]);
            }
            Kind::Pogocache => {
                command.args(["-h", &ip, "-p", &port, "--threads", &threads]);
                command.args(["--maxmemory", &format!("{memory}M"), "--evict", "yes"]);
                command.args(["--maxconns", &connections]);
            }
            Kind::Masstree => {
                command.args(["--no-log", "--port", &port, "--threads", &threads]);
            }
            Kind::Echo => {
                let value_bytes = self.value_bytes.to_string();
                command.args([
                    "echo",
                    "-l",
                    &ip,
                    "-p",
                    &port,
                    "--value-bytes",
                    &value_bytes,
                ]);
            }
        }
        if let Some(encryption) = self.contender.encryption() {
            command.args(encryption.arguments(self.contender.kind()));
        }
        command.args(&self.arguments);
        Ok(command)
    }
}

impl Server {
    /// The server that runs.
    pub fn contender(&self) -> &Contender {
        &self.contender
    }

    /// Its name in tables.
    pub fn name(&self) -> &str {
        self.contender.name()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it stand still, or go on.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        let signal = if is_paused {
            Signal::STOP
        } else {
            Signal::CONT
        };
        let pid = Pid::from_raw(self.child.id() as i32).context("a process has a number")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Its standard error output.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        // An error while reading an error message is ignored.
        let _ = self.said.rewind();
        let _ = self.said.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Where it listens, over UDP as well if it was told to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CPU time that it has used so far.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(machine::process_cpu(self.pid())?)
    }

    /// The server as clients see it.
    pub fn target(&self) -> Target {
        let dialect = self.contender.kind().dialect();
        Target {
            admission: self.admission.clone(),
            ..Target::new(Address::Tcp(self.address), dialect)
        }
    }

    /// Goes through a range of keys once.
    pub fn pass(
        &self,
        pass: Pass,
        numbers: std::ops::Range<u32>,
        progress: impl FnMut(u64),
    ) -> Result<Tally> {
        let like = client::items(0, self.value_bytes);
        self.pass_like(&like, pass, numbers, progress)
    }

    /// Goes through a range of keys once, whose lengths and values are those of this workload.
    pub fn pass_like(
        &self,
        like: &Workload,
        pass: Pass,
        numbers: std::ops::Range<u32>,
        mut progress: impl FnMut(u64),
    ) -> Result<Tally> {
        let items = Workload {
            keys: u64::from(numbers.end).max(1),
            ..like.clone()
        };
        let numbers = u64::from(numbers.start)..u64::from(numbers.end);
        load::pass(&self.target(), &items, pass, numbers, &mut progress)
            .with_context(|| format!("loading {}", self.name()))
    }

    /// Executes a plan.
    pub fn drive(&self, plan: &load::Plan) -> Result<load::Outcome> {
        self.drive_at(&self.target(), plan)
    }

    /// Executes a plan at a different address of the server, or in a different dialect.
    pub fn drive_at(&self, target: &Target, plan: &load::Plan) -> Result<load::Outcome> {
        load::run(target, plan, Some(&|| self.cpu()), &mut |_| {})
            .with_context(|| format!("measuring {}", self.name()))
    }

    /// The same at a server of ours with this many workers, whose CPU time is without the looks in
    /// vain of workers that never sleep.
    pub fn drive_by_busy_time(
        &self,
        target: &Target,
        plan: &load::Plan,
        workers: usize,
    ) -> Result<load::Outcome> {
        let busy = BusyTime::of(self, workers);
        let outcome = load::run(target, plan, Some(&|| busy.look()), &mut |_| {})
            .with_context(|| format!("measuring {}", self.name()))?;
        Ok(load::Outcome {
            server_cpu_s: outcome.server_cpu_s * busy.part(),
            ..outcome
        })
    }

    /// The version and the cipher of its encrypted connections, once there has been one.
    pub fn encrypted(&self) -> Option<&str> {
        self.admission.tls.as_ref()?.agreed()
    }

    /// The server over UDP, if it was started with it, with or without segment batches.
    pub fn udp_target(&self, segmented: bool) -> Target {
        Target {
            address: match segmented {
                true => Address::UdpTrains(self.address),
                false => Address::Udp(self.address),
            },
            ..self.target()
        }
    }

    /// Drives it in a closed loop.
    pub fn closed(&self, plan: &closed::Plan) -> Result<closed::Outcome> {
        self.closed_at(&self.target(), plan)
    }

    /// Drives it in a closed loop with a different target.
    pub fn closed_at(&self, target: &Target, plan: &closed::Plan) -> Result<closed::Outcome> {
        self.drive_at(target, &plan.with_values(self.value_bytes))
    }

    /// Drives it at a fixed rate.
    pub fn open(&self, plan: &open::Plan) -> Result<open::Latencies> {
        self.open_at(&self.target(), plan)
    }

    /// Drives it at a fixed rate with a different target.
    pub fn open_at(&self, target: &Target, plan: &open::Plan) -> Result<open::Latencies> {
        Ok(self
            .drive_at(target, &plan.with_values(self.value_bytes))?
            .into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If the server has ended by itself, its output explains why the measurement failed.
        if let Ok(Some(status)) = self.child.try_wait() {
            let said = self.said();
            eprintln!("{} has ended ({status}): {said}", self.name());
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begin = Instant::now();
        while begin.elapsed() < STOP_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
