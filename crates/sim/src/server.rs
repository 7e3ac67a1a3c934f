//! The server of a scenario.

use crate::clock::SimClock;
use crate::encrypted::over;
use crate::scenario::{Scenario, ServerPlan};
use glimmer_base::Moment;
use glimmer_base::limits::{HOT_SLOTS_MIN, ITEM_BYTES_MIN};
use glimmer_node::{AdminHandler, Devices, Part};
use glimmer_proto::Accepts;
use glimmer_proto::text::Shutdown;
use glimmer_server::memory_plan::Needs;
use glimmer_server::{
    Accelerate, Config, Direction, DrivenServer, HugepagePolicy, MemoryPlan, ServeError,
};
use glimmer_transport::packet::{PacketDevice, Switch};
use glimmer_transport::stream::{LocalListener, StreamListener};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The first worker's port for native clients; the others' follow.
const NATIVE_PORT: u16 = 4000;
/// Connections that are idle for so long are closed. No run is that long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// A server, and by what clients reach it.
pub struct Served {
    /// The server.
    pub server: DrivenServer,
    /// Where streams come in, by worker.
    pub listeners: Vec<LocalListener>,
    /// The same for those that are encrypted, if there are any.
    pub encrypted: Vec<LocalListener>,
    /// The network for datagrams.
    pub switch: Switch,
}

impl Served {
    /// Where connections are made that are encrypted, or not.
    pub fn streams(&self, is_encrypted: bool) -> Vec<LocalListener> {
        match is_encrypted {
            true => self.encrypted.clone(),
            false => self.listeners.clone(),
        }
    }

    /// What cuts the server off from its clients, as the end of its process does.
    pub fn cut(&self, scenario: &Scenario) -> impl FnOnce() + 'static {
        let listeners = self.listeners.iter().chain(&self.encrypted).cloned();
        let listeners: Vec<LocalListener> = listeners.collect();
        let switch = self.switch.clone();
        let workers = 0..scenario.server.workers;
        move || {
            listeners.iter().for_each(LocalListener::cut);
            for worker in workers {
                switch.cut(native_address(worker));
                switch.cut(memcached_address(worker));
            }
        }
    }
}

/// The port of connections that are encrypted.
const ENCRYPTED_PORT: u16 = 11212;

/// The first worker's port for memcached's datagrams; the others' follow. Sockets would share one,
/// and the kernel would choose the worker.
const MEMCACHED_PORT: u16 = 11211;

/// The address of a worker's port for memcached's datagrams.
pub fn memcached_address(worker: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], MEMCACHED_PORT + worker as u16))
}

/// The address of a worker's port for native clients.
pub fn native_address(worker: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], NATIVE_PORT + worker as u16))
}

/// The user that a server admits, if clients have to log in.
pub const USER: &str = "user";
/// Its password.
pub const PASSWORD: &str = "password";

/// Answers no `stats`.
pub struct Silent;

impl AdminHandler for Silent {
    fn stats(&self, _: &[u8], _: u64, _: Moment, out: &mut Vec<u8>) -> Part {
        out.extend_from_slice(b"END\r\n");
        Part::Last
    }

    fn admits(&self, user: &[u8], password: &[u8]) -> bool {
        (user, password) == (USER.as_bytes(), PASSWORD.as_bytes())
    }

    fn verbosity(&self, _: u32) {}

    fn shutdown(&self, _: Shutdown, _: &mut Vec<u8>) -> bool {
        false
    }
}

/// What a process of a scenario's server begins with.
pub struct Process<'a> {
    /// The network for datagrams.
    pub switch: &'a Switch,
    /// Where its memory lies, if that is a file.
    pub memory_file: Option<PathBuf>,
    /// How many processes were there before.
    pub number: u64,
}

/// Assembles the server of a scenario.
pub fn assemble(
    scenario: &Scenario,
    process: Process<'_>,
    clock: &SimClock,
) -> Result<Served, ServeError> {
    let plan = scenario.server;
    let switch = process.switch;
    let (mut listeners, mut encrypted) = (Vec::new(), Vec::new());
    let has_encrypted = scenario.clients.iter().any(|client| client.is_encrypted);
    let devices = (0..plan.workers).map(|worker| {
        let address = SocketAddr::from(([10, 0, 0, 1], 11211));
        let listener = LocalListener::new(address);
        listeners.push(listener.clone());
        let mut accepting: Vec<(Box<dyn StreamListener>, Accepts)> =
            vec![(Box::new(listener), accepts(plan))];
        if has_encrypted {
            let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], ENCRYPTED_PORT)));
            encrypted.push(listener.clone());
            accepting.push((over(Box::new(listener)), accepts(plan)));
        }
        let native: Box<dyn PacketDevice> = Box::new(switch.attach(native_address(worker)));
        let memcached: Box<dyn PacketDevice> = Box::new(switch.attach(memcached_address(worker)));
        Devices {
            memcached: match plan.is_locked {
                true => Vec::new(),
                false => vec![memcached],
            },
            native: (!plan.is_locked).then_some(native),
            listeners: accepting,
        }
    });
    let devices = devices.collect();
    let mut rng = SmallRng::seed_from_u64(!scenario.seed ^ process.number);
    let server = DrivenServer::assemble(
        &configure(plan, process.memory_file),
        devices,
        clock.shared(),
        Arc::new(Silent),
        &mut || rng.random(),
    )?;
    Ok(Served {
        server,
        listeners,
        encrypted,
        switch: switch.clone(),
    })
}

/// What clients may speak. Where they have to log in, that is the text protocol.
fn accepts(plan: ServerPlan) -> Accepts {
    match plan.is_locked {
        true => Accepts::Text,
        false => Accepts::Any,
    }
}

fn configure(plan: ServerPlan, memory_file: Option<PathBuf>) -> Config {
    let mut config = Config {
        tcp: Vec::new(),
        tcp_protocols: Vec::new(),
        native: match plan.is_locked {
            true => Vec::new(),
            false => vec![native_address(0)],
        },
        native_direction: match plan.directs_native {
            true => Direction::Server,
            false => Direction::Client,
        },
        turn_requests: plan.turn_requests,
        slice_bytes: plan.slice_bytes,
        watch_bytes: plan.watch_bytes,
        idle_timeout: plan.watches_idlers.then_some(IDLE_TIMEOUT),
        protocol: accepts(plan),
        // It is not read: what admits users is passed in.
        auth_file: plan.is_locked.then(|| "users".into()),
        memory_bytes: plan.memory_mib << 20,
        workers: plan.workers,
        item_bytes_max: plan.item_bytes_max.max(ITEM_BYTES_MIN),
        mode: plan.mode,
        access: plan.access,
        dispatch: Arc::new(plan.dispatch),
        table: plan.table,
        evict: plan.evict,
        hugepages: HugepagePolicy::Off,
        memory_file,
        ..Config::default()
    };
    if plan.is_accelerated {
        config.accelerate = Accelerate::Model;
        config.accelerate_slots = HOT_SLOTS_MIN;
        // Devices stand for this port.
        config.udp = vec![memcached_address(0)];
    }
    while MemoryPlan::make(Needs::of(&config)).is_err() {
        config.memory_bytes += 1 << 20;
    }
    config
}
