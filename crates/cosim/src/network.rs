//! The circuit as a network interface: frames between two TAP devices pass it, and a server fills
//! it over a socket.

use crate::machine::{Machine, Settings, Waveform};
use crate::tap::Tap;
use anyhow::{Context, Result};
use glimmer_accel_device::device::DeviceCounters;
use glimmer_accel_device::link::{Answer, Host, Request};
use glimmer_accel_rtl::tools::Tools;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

/// Cycles between two looks at devices and sockets.
const CYCLES_PER_TURN: usize = 256;
/// Frames that wait on either side of the circuit, at most. The kernel keeps the others.
const FRAMES_MAX: usize = 32;
/// Cycles without a movement after which the clock stops until something comes.
const QUIET_CYCLES: u64 = 4000;
/// Nanoseconds without work after which the caller has its turn.
const IDLE_NS_MAX: i64 = 100_000_000;

/// See the module's text.
#[derive(Debug)]
pub struct Network {
    machine: Machine,
    mac: Tap,
    cpu: Tap,
    listener: UnixListener,
    host: Option<Host>,
}

impl Network {
    /// A circuit between a TAP device that is the MAC, and one behind the rings.
    ///
    /// # Errors
    ///
    /// If the listener fails.
    pub fn new(
        tools: &Tools,
        settings: Settings,
        seed: u64,
        [mac, cpu]: [Tap; 2],
        listener: UnixListener,
        waveform: Option<Waveform>,
    ) -> Result<Network> {
        listener.set_nonblocking(true)?;
        Ok(Network {
            machine: Machine::new(tools, settings, seed, waveform),
            mac,
            cpu,
            listener,
            host: None,
        })
    }

    /// Simulates some cycles, and moves frames and operations. While nothing comes, it sleeps for
    /// up to a second at a time.
    ///
    /// # Errors
    ///
    /// Those of devices and sockets.
    pub fn turn(&mut self) -> Result<()> {
        if self.machine.is_quiet(QUIET_CYCLES) {
            self.wait()?;
        }
        while self.machine.rx.waiting() < FRAMES_MAX
            && let Some(frame) = self.mac.receive()?
        {
            self.machine.rx.push(frame);
        }
        while self.machine.from_cpu.len() < FRAMES_MAX
            && let Some(frame) = self.cpu.receive()?
        {
            self.machine.from_cpu.push_back(frame);
        }
        self.serve()?;
        for _ in 0..CYCLES_PER_TURN {
            self.machine.step();
        }
        while let Some(frame) = self.machine.to_cpu.pop_front() {
            self.cpu.send(&frame)?;
        }
        self.send_to_network()
    }

    /// What the circuit has counted since its last reset.
    pub fn counters(&self) -> DeviceCounters {
        self.machine.counters()
    }

    /// Frames leave only while the server that has filled the slots is there: nobody would tell the
    /// circuit of changes otherwise.
    fn send_to_network(&mut self) -> Result<()> {
        while let Some(frame) = self.machine.tx.frames.pop_front() {
            if self.host.as_ref().is_some_and(|host| !host.is_there()) {
                self.leave("the server has gone");
                return Ok(());
            }
            self.mac.send(&frame)?;
        }
        Ok(())
    }

    /// Empties the slots when their server has gone.
    fn leave(&mut self, why: &str) {
        eprintln!("cosim: {why}; all slots are empty");
        self.host = None;
        self.machine.reset();
    }

    /// Carries out what the server asks for.
    fn serve(&mut self) -> Result<()> {
        if self.host.is_none()
            && let Ok((stream, _)) = self.listener.accept()
        {
            eprintln!("cosim: a server fills the slots");
            self.host = Some(Host::new(stream, self.machine.capabilities())?);
        }
        let Some(host) = &mut self.host else {
            return Ok(());
        };
        let machine = &mut self.machine;
        let served = host.serve(|request| match request {
            Request::Operate(operation) => Answer::Done {
                rd: machine.execute(&operation.registers()),
            },
            _ => Answer::Counts(machine.counters()),
        });
        match served {
            Ok(true) => {}
            Ok(false) => self.leave("the server has gone"),
            Err(error) => self.leave(&error.to_string()),
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let host = self.host.as_ref().map(AsFd::as_fd);
        let server = host.unwrap_or(self.listener.as_fd());
        let mut fds = [
            PollFd::new(&self.mac, PollFlags::IN),
            PollFd::new(&self.cpu, PollFlags::IN),
            PollFd::from_borrowed_fd(server, PollFlags::IN),
        ];
        let most = Timespec {
            tv_sec: 0,
            tv_nsec: IDLE_NS_MAX,
        };
        match poll(&mut fds, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }
}
