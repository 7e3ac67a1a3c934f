//! A dummy server without a store: it computes the value of every key that it is asked for. A
//! measurement against it shows the ceiling set by loopback and the client.

mod answers;
mod datagrams;
mod streams;

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use glimmer_transport::udp::UdpDevice;

use crate::client::closed;
pub use answers::Answers;
use datagrams::Datagrams;
use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Outcome},
};
use glimmer_measure::machine;
use streams::Streams;

/// A running dummy server with one thread. Dropping it stops it.
pub struct Trivial {
    target: Target,
    value_bytes: usize,
    life: Arc<Life>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the server continues, and the CPU time that it has used.
#[derive(Debug, Default)]
struct Life {
    ended: AtomicBool,
    cpu_ns: AtomicU64,
}

impl Life {
    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Relaxed)
    }

    /// Called by the server's thread.
    fn note_cpu(&self) {
        let cpu_ns = machine::thread_cpu().as_nanos() as u64;
        self.cpu_ns.store(cpu_ns, Ordering::Relaxed);
    }
}

/// Regular stalls of a server, to test an open loop.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Time from the start of one stall to the start of the next.
    pub every: Duration,
    /// Length of a stall.
    pub lasts: Duration,
}

impl Trivial {
    /// Serves memcached's `set`, and `get` for any number of the load generator's keys with values
    /// of `value_bytes`, over TCP, pinned to a core if one is given. With `stall`, it stalls
    /// regularly.
    pub fn start(value_bytes: usize, core: Option<usize>, stall: Option<Stall>) -> Result<Trivial> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a port")?;
        let address = Address::Tcp(listener.local_addr()?);
        Trivial::run(address, value_bytes, core, move |answers, life| {
            let streams = Streams {
                listener,
                answers,
                stall,
                life,
            };
            streams.serve()
        })
    }

    /// The same over UDP with memcached's frames. Each reply is one datagram.
    pub fn start_udp(value_bytes: usize, core: Option<usize>, segmented: bool) -> Result<Trivial> {
        let device =
            UdpDevice::bind_shared((Ipv4Addr::LOCALHOST, 0).into()).context("binding a port")?;
        let address = match segmented {
            true => Address::UdpTrains(device.address()?),
            false => Address::Udp(device.address()?),
        };
        Trivial::run(address, value_bytes, core, move |answers, life| {
            let mut datagrams = Datagrams {
                device,
                answers,
                life,
            };
            datagrams.serve()
        })
    }

    fn run(
        address: Address,
        value_bytes: usize,
        core: Option<usize>,
        serve: impl FnOnce(Answers, Arc<Life>) -> Result<()> + Send + 'static,
    ) -> Result<Trivial> {
        let life = Arc::<Life>::default();
        let (answers, its_life) = (Answers { value_bytes }, life.clone());
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                machine::pin([core]).expect("a core that this process may use");
            }
            serve(answers, its_life).expect("loopback works");
        });
        Ok(Trivial {
            target: Target::new(address, Dialect::Text),
            value_bytes,
            life,
            thread: Some(thread),
        })
    }

    /// The server as clients see it.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Drives it in a closed loop.
    pub fn closed(&self, plan: &closed::Plan) -> Result<Outcome> {
        let cpu = || Ok(self.cpu());
        let plan = plan.with_values(self.value_bytes);
        load::run(&self.target, &plan, Some(&cpu), &mut |_| {})
    }

    /// The CPU time of its thread as of its last burst.
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.life.cpu_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Trivial {
    fn drop(&mut self) {
        self.life.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
