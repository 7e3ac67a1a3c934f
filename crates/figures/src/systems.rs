//! The servers that figures compare: how to start and load them.

mod between;
mod measured;

use std::{collections::HashMap, fmt, net::Ipv4Addr, path::Path, sync::Arc};

use anyhow::{Result, ensure};
use glimmer_comparisons::{
    lab::Place,
    servers::{CONNECTIONS_MAX, Contender, Kind, Launch, Server, Worker, free_ports},
    transports::Between,
};
use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Pass},
    workload::{Law, Mix, Sizes, Workload},
};
use glimmer_measure::machine::{self, SERVER_CORE};

use crate::Run;

/// Requests in flight per connection where the server shall be the bottleneck.
pub const PIPELINE: u32 = 32;
/// A value for [`Launch`] that matters only for clients that are not used here.
const LAUNCH_VALUE_BYTES: usize = 64;

/// A server in one configuration, and its name in figures.
#[derive(Clone, Debug)]
pub struct System {
    name: String,
    contender: Contender,
    threads: usize,
    arguments: Vec<String>,
    /// Whether its clients use the native protocol.
    is_native: bool,
    /// Whether its clients use memcached's protocol over UDP.
    is_udp: bool,
    /// What is between a native server and its clients; sockets on loopback if there is nothing.
    between: Option<Arc<Between>>,
}

impl System {
    /// Glimmer in an access mode, with one worker.
    pub fn glimmer(access: &str) -> System {
        System {
            name: format!("glimmer {access}"),
            contender: Kind::Glimmer.into(),
            threads: 1,
            arguments: ["--access", access].map(str::to_owned).into(),
            is_native: false,
            is_udp: false,
            between: None,
        }
    }

    /// Glimmer over the native protocol, in an access mode, with one worker.
    pub fn native(access: &str) -> System {
        System {
            name: format!("glimmer {access}, native"),
            is_native: true,
            ..System::glimmer(access)
        }
    }

    /// Glimmer with MemC3's table instead of MICA's, with one worker.
    pub fn memc3() -> System {
        System {
            name: "glimmer memc3".to_owned(),
            arguments: ["--access", "crcw", "--table", "memc3"]
                .map(str::to_owned)
                .into(),
            ..System::glimmer("crcw")
        }
    }

    /// Another server with one thread and default settings.
    pub fn peer(kind: Kind) -> System {
        System {
            name: kind.name().to_owned(),
            contender: kind.into(),
            threads: 1,
            arguments: Vec::new(),
            is_native: false,
            is_udp: false,
            between: None,
        }
    }

    /// Another build of a peer: the program of this name on the search path. Whether it is there or
    /// not, `run` notes it: its version and how it was built, or that it is left out.
    pub fn build(name: &str, program: &str, run: &mut Run<'_>) -> Option<System> {
        let named = Contender::named(name, Path::new(program));
        match named.and_then(|contender| Ok((contender.described()?, contender))) {
            Ok((described, contender)) => {
                run.note(described.to_string());
                Some(System {
                    name: name.to_owned(),
                    contender,
                    ..System::peer(Kind::Memcached)
                })
            }
            Err(error) => {
                run.note(format!("{name} is left out: {error:#}"));
                None
            }
        }
    }

    /// Sets the number of threads.
    pub fn threads(mut self, threads: usize) -> System {
        self.threads = threads;
        self
    }

    /// Has its clients use memcached's protocol over UDP, and names it.
    pub fn udp(self, name: &str) -> System {
        System {
            name: name.to_owned(),
            is_udp: true,
            ..self
        }
    }

    /// Adds arguments.
    pub fn arguments(mut self, arguments: &[&str]) -> System {
        let more = arguments.iter().map(|argument| (*argument).to_owned());
        self.arguments.extend(more);
        self
    }

    /// Sets the memory limit, instead of what the items need. With more memory, workers remember
    /// more native clients, and every measurement uses new ones.
    pub fn memory_mib(mut self, mib: usize) -> System {
        self.arguments.extend(["-m".to_owned(), mib.to_string()]);
        self
    }

    /// Sets the dispatch policy, and names the system after it.
    pub fn dispatch(mut self, policy: &str) -> System {
        self.arguments.push(format!("--dispatch={policy}"));
        self.name = policy.to_owned();
        self
    }

    /// Lets workers forward requests to one another.
    pub fn directing(mut self) -> System {
        self.arguments.push("--native-direction=server".to_owned());
        self
    }

    /// Its name in figures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts the server on the first cores, one per thread, and stores the keys.
    pub fn start(&self, run: &Run<'_>, items: Items) -> Result<Running> {
        let workload = items.workload(Law::Uniform, Mix::reads(0.0));
        self.start_with(run, &workload, items.memory_mib())
    }

    /// The same with the items of a workload, for which the server needs this much memory.
    pub fn start_with(
        &self,
        run: &Run<'_>,
        workload: &Workload,
        memory_mib: usize,
    ) -> Result<Running> {
        // Each worker has a native port.
        let ports = self.threads as u16;
        let native_port = self.is_native.then(|| free_ports(ports)).transpose()?;
        let mut arguments = self.arguments.clone();
        arguments.extend(self.contender.arguments_for(PIPELINE));
        arguments.extend(native_port.map(|port| format!("--native-port={port}")));
        // Whether the server accepts is seen from where its clients are.
        let _visit = (self.between.as_ref().map(|it| it.visit_clients())).transpose()?;
        let place = (self.between.as_ref()).map_or_else(Place::loopback, |it| it.place());
        let server = Launch {
            contender: self.contender.clone(),
            threads: self.threads,
            cores: (0..self.threads)
                .map(|thread| SERVER_CORE + thread)
                .collect(),
            memory_mib,
            value_bytes: LAUNCH_VALUE_BYTES,
            udp: self.is_udp,
            connections_max: CONNECTIONS_MAX,
            arguments,
        }
        .start_at(&place)?;
        let running = Running {
            name: self.name.clone(),
            threads: self.threads,
            target: match (native_port, &self.between) {
                (Some(port), Some(between)) => between.native_target(port, Dialect::Native)?,
                (Some(port), None) => {
                    let address = Address::Udp((Ipv4Addr::LOCALHOST, port).into());
                    Target::new(address, Dialect::Native)
                }
                (None, _) if self.is_udp => server.udp_target(false),
                (None, _) => server.target(),
            },
            between: self.between.clone(),
            server,
        };
        running.store(run, workload)?;
        Ok(running)
    }
}

/// The items in a server.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// Number of items.
    pub keys: u64,
    /// Length of every key in bytes.
    pub key_bytes: usize,
    /// Length of every value in bytes.
    pub value_bytes: u32,
}

impl Items {
    /// MICA's tiny items (§5.1).
    pub const fn tiny(keys: u64) -> Items {
        Items {
            keys,
            key_bytes: 8,
            value_bytes: 8,
        }
    }

    /// The same items, but only this many of them.
    pub fn only(self, keys: u64) -> Items {
        Items { keys, ..self }
    }

    /// Requests for these items.
    pub fn workload(self, law: Law, mix: Mix) -> Workload {
        Workload {
            keys: self.keys,
            law,
            key_bytes: self.key_bytes,
            sizes: Sizes::Fixed(self.value_bytes),
            mix,
        }
    }

    /// A memory limit that no server reaches.
    fn memory_mib(self) -> usize {
        // A generous estimate of memcached's overhead per item, and a slab page for every class.
        let item_bytes = self.key_bytes + self.value_bytes as usize + 150;
        ((self.keys as usize * item_bytes * 5 / 4) >> 20) + 256
    }
}

/// A running server with its items.
pub struct Running {
    name: String,
    threads: usize,
    target: Target,
    between: Option<Arc<Between>>,
    server: Server,
}

impl Running {
    /// Its name in figures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Stores the items of a workload, over a protocol that loses nothing.
    pub fn store(&self, run: &Run<'_>, workload: &Workload) -> Result<()> {
        run.say(format!("{}: storing {} keys", self.name, workload.keys));
        let target = self.server.target();
        let _at_work = self.at_work()?;
        let load = || {
            load::pass(
                &target,
                workload,
                Pass::Write,
                0..workload.keys,
                &mut |_| {},
            )
        };
        let tally = machine::on_core(self.client_cores().first().copied(), load)??;
        ensure!(
            tally.writes == workload.keys,
            "{} stored {} of {} keys",
            self.name,
            tally.writes,
            workload.keys
        );
        Ok(())
    }

    /// Whether its client has cores of its own.
    pub fn has_client_cores(&self) -> bool {
        !self.client_cores().is_empty()
    }

    /// Its worker threads. Each has its own core, unless the client must share one.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What each worker has done for native clients.
    pub fn native_workers(&self) -> Result<Vec<Worker>> {
        let _at_work = self.at_work()?;
        self.server.native_workers()
    }

    /// The numbers in its reply to `stats` with an argument.
    pub fn stats(&self, argument: &str) -> Result<HashMap<String, u64>> {
        let _at_work = self.at_work()?;
        self.server.stats(argument)
    }

    /// The cores of its workers.
    fn cores(&self) -> Vec<usize> {
        (SERVER_CORE..SERVER_CORE + self.threads).collect()
    }

    /// The cores after the server's for the client; empty if the server uses all of them.
    fn client_cores(&self) -> Vec<usize> {
        (SERVER_CORE + self.threads..machine::cores()).collect()
    }
}

impl fmt::Display for Running {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// The systems that are installed. `run` notes which are missing and how to install them.
pub fn installed(systems: Vec<System>, run: &mut Run<'_>) -> Vec<System> {
    let mut here = Vec::new();
    for system in systems {
        match system.contender.version() {
            Ok(_) => here.push(system),
            Err(error) => run.note(format!("{} is left out: {error:#}", system.name)),
        }
    }
    here
}

/// Numbers of threads up to `most`: powers of two, and `most` itself.
pub fn thread_counts(most: usize) -> Vec<usize> {
    let powers = (0..).map(|power| 1 << power);
    let powers = powers.take_while(|&count| count < most);
    powers.chain([most]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_and_all_cores() {
        assert_eq!(thread_counts(1), [1]);
        assert_eq!(thread_counts(2), [1, 2]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6]);
        assert_eq!(thread_counts(16), [1, 2, 4, 8, 16]);
    }
}
