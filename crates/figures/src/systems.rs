//! The servers that figures compare, started and loaded.

use std::fmt;

use anyhow::Result;
use glimmer_loadgen::{
    client::{closed, load::Pass, open},
    machine::{self, SERVER_CORE},
    servers::{Kind, Launch, Server},
};

use crate::Run;

/// A server in one configuration, and its name in figures.
#[derive(Clone, Debug)]
pub struct System {
    name: String,
    kind: Kind,
    threads: usize,
    arguments: Vec<String>,
}

impl System {
    /// Ours in an access mode, with one worker.
    pub fn glimmer(access: &str) -> System {
        System {
            name: format!("glimmer {access}"),
            kind: Kind::Glimmer,
            threads: 1,
            arguments: ["--access", access].map(str::to_owned).into(),
        }
    }

    /// One of the others, with one thread and nothing else set.
    pub fn peer(kind: Kind) -> System {
        System {
            name: kind.name().to_owned(),
            kind,
            threads: 1,
            arguments: Vec::new(),
        }
    }

    /// The same with so many threads.
    pub fn threads(mut self, threads: usize) -> System {
        self.threads = threads;
        self
    }

    /// Its name in figures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it on the first cores, as many as it has threads, and stores the keys.
    pub fn start(&self, run: &Run<'_>, items: Items) -> Result<Running> {
        let server = Launch {
            kind: self.kind,
            threads: self.threads,
            cores: (0..self.threads)
                .map(|thread| SERVER_CORE + thread)
                .collect(),
            memory_mib: items.memory_mib(),
            value_bytes: items.value_bytes,
            arguments: self.arguments.clone(),
        }
        .start()?;
        run.say(format!("{}: storing {} keys", self.name, items.keys));
        let running = Running {
            name: self.name.clone(),
            threads: self.threads,
            server,
        };
        running.at_client_core(|server| server.pass(Pass::Write, 0..items.keys, |_| {}))??;
        Ok(running)
    }
}

/// What a server is loaded with.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// How many.
    pub keys: u32,
    /// Bytes of every value.
    pub value_bytes: usize,
}

impl Items {
    /// A limit that none of the servers reaches.
    fn memory_mib(self) -> usize {
        // What memcached needs for an item beyond its value, generously, and one slab page for every class.
        let bytes = self.keys as usize * (self.value_bytes + 150) * 5 / 4;
        (bytes >> 20) + 256
    }
}

/// A server that has been loaded.
pub struct Running {
    name: String,
    threads: usize,
    server: Server,
}

impl Running {
    /// Its name in figures.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its worker threads, each with a core to itself unless the client has to share one.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Drives it as fast as it answers, from the client's core.
    pub fn closed(&self, plan: &closed::Plan) -> Result<closed::Outcome> {
        self.at_client_core(|server| server.closed(plan))?
    }

    /// Drives it at a fixed rate, from the client's core.
    pub fn open(&self, plan: &open::Plan) -> Result<open::Latencies> {
        self.at_client_core(|server| server.open(plan))?
    }

    /// Operations per second that its workers have CPU time for: what it would do if a client that costs nothing kept all of them busy. Unlike the
    /// rate itself it can be measured where client and server share cores, and where one client cannot keep many workers busy.
    pub fn capacity_per_s(&self, outcome: &closed::Outcome) -> f64 {
        self.threads as f64 * 1e9 / outcome.server_ns_per_operation()
    }

    /// The client has the core behind the server's, or none of its own if the server has them all.
    fn at_client_core<T: Send>(&self, work: impl FnOnce(&Server) -> T + Send) -> Result<T> {
        let core = Some(SERVER_CORE + self.threads).filter(|&core| core < machine::cores());
        Ok(machine::on_core(core, || work(&self.server))?)
    }
}

impl fmt::Display for Running {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

/// Those of the systems that are installed; `run` notes which are missing and how to get them.
pub fn installed(systems: Vec<System>, run: &mut Run<'_>) -> Vec<System> {
    let mut here = Vec::new();
    for system in systems {
        match system.kind.version() {
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
