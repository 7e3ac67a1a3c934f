//! The servers that are compared.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
};

use anyhow::{Context, Result, ensure};
use glimmer_dispatch::{AccessMode, POLICIES};
use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Pass},
};
use glimmer_measure::machine;

use super::{Options, OurProtocol, client_core};
use crate::servers::{CONNECTIONS_MAX, Contender, Described, Kind, Launch, Server, free_ports};

/// A server with its number of threads.
pub struct Subject {
    /// Its name in tables: for ours, with the dispatch policy.
    pub name: String,
    contender: Contender,
    /// Server threads.
    pub threads: usize,
    arguments: Vec<String>,
    /// The first of the ports where native clients find our server, if they drive it.
    native_port: Option<u16>,
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} -t {}", self.name, self.threads)
    }
}

/// The dispatch policies that the default access mode of our server permits.
pub fn policies() -> Vec<String> {
    let usable = POLICIES
        .iter()
        .filter(|policy| policy.check(AccessMode::Crcw).is_ok());
    usable.map(|policy| policy.name().to_owned()).collect()
}

/// All servers that can take part, with what there is to say of them. The others are noted.
pub fn all(
    options: &Options,
    servers: &mut Vec<Described>,
    notes: &mut Vec<String>,
) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let ours = (!options.policies.is_empty()).then_some(Kind::Glimmer.into());
    let contenders = ours.into_iter().chain(options.peers.iter().cloned());
    let mut here = Vec::new();
    for contender in contenders {
        match contender.described() {
            Ok(described) => {
                servers.push(described);
                here.push(contender);
            }
            Err(error) => notes.push(format!("{} is left out: {error:#}", contender.name())),
        }
    }
    for &threads in &options.threads {
        for contender in &here {
            let subject = |name: String, arguments, native_port| Subject {
                name,
                contender: contender.clone(),
                threads,
                arguments,
                native_port,
            };
            match contender.kind() {
                Kind::Glimmer => {
                    for (policy, protocol) in options.ours() {
                        let native = protocol == OurProtocol::Native;
                        // Each worker has a native port.
                        let ports = threads as u16;
                        let port = native.then(|| free_ports(ports)).transpose()?;
                        let mut flags = vec!["--dispatch".to_owned(), policy.clone()];
                        flags.extend(port.map(|port| format!("--native-port={port}")));
                        flags.extend(options.glimmer_arguments.iter().cloned());
                        let over = if native { ", native" } else { "" };
                        let name = format!("{} {policy}{over}", contender.name());
                        subjects.push(subject(name, flags, port));
                    }
                }
                kind if kind.has_one_thread() && threads > 1 => {}
                _ => subjects.push(subject(contender.name().to_owned(), Vec::new(), None)),
            }
        }
    }
    Ok(subjects)
}

impl Options {
    /// Each policy of our server with each protocol.
    fn ours(&self) -> impl Iterator<Item = (&String, OurProtocol)> {
        let protocols = self.protocols.iter().copied();
        protocols.flat_map(|protocol| self.policies.iter().map(move |policy| (policy, protocol)))
    }
}

impl Subject {
    /// The server as the clients of this measurement see it.
    pub fn target(&self, server: &Server) -> Target {
        self.native_port.map_or_else(
            || server.target(),
            |port| {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                Target::new(Address::Udp(address), Dialect::Native)
            },
        )
    }

    /// Starts the server and stores all keys.
    pub fn start(&self, options: &Options) -> Result<Server> {
        let launch = Launch {
            contender: self.contender.clone(),
            threads: self.threads,
            cores: (0..self.threads.min(machine::cores())).collect(),
            memory_mib: options.memory_mib,
            value_bytes: 0,
            udp: false,
            connections_max: CONNECTIONS_MAX,
            arguments: self.arguments.clone(),
        };
        let server = launch.start()?;
        let (workload, target) = (&options.workload, server.target());
        let keys = 0..workload.keys;
        let store = || load::pass(&target, workload, Pass::Write, keys, &mut |_| {});
        let (core, _) = client_core(self.threads);
        let tally = machine::on_core(Some(core), store)?.context("storing the keys")?;
        ensure!(
            tally.refused == 0,
            "the server refused {} of {} keys: it needs more memory (-m)",
            tally.refused,
            workload.keys
        );
        Ok(server)
    }
}
