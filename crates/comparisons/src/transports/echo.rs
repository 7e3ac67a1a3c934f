//! An echo over a transport, and the client that keeps datagrams under way.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use glimmer_measure::machine::{self, SERVER_CORE};
use glimmer_transport::{
    Poller,
    packet::{Message, PACKET_BATCH_MAX, PacketDevice, RxBatch, TxBatch, Wakeup},
};

use super::ways::{End, Halves, Way};

/// A client that hears nothing for so long sends again.
const TICK: Duration = Duration::from_millis(20);
/// Time for the first reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// Devices of a client for each queue, if there are several, so that each queue gets some of them.
const DEVICES_PER_QUEUE: usize = 4;

/// How many requests a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// This many are in flight. Another one is sent for each reply.
    InFlight(usize),
    /// All that it can send, whether they are answered or not.
    Flood,
}

impl Pace {
    /// Requests in flight of each of several devices, at first.
    fn begins_with(self, devices: usize) -> usize {
        match self {
            Pace::InFlight(all) => all / devices,
            Pace::Flood => PACKET_BATCH_MAX,
        }
    }

    /// Requests to send after this many replies.
    fn goes_on_with(self, replies: usize) -> usize {
        match self {
            Pace::InFlight(_) => replies,
            Pace::Flood => PACKET_BATCH_MAX,
        }
    }
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub struct Driven {
    /// Replies.
    pub replies: u64,
    /// In this time.
    pub time: Duration,
    /// CPU time of the server meanwhile.
    pub server_cpu: Duration,
}

impl Driven {
    /// Replies in a second.
    pub fn per_s(&self) -> f64 {
        self.replies as f64 / self.time.as_secs_f64()
    }
}

/// The core of a server's thread, and of a client beside this many of them.
pub fn core_of(thread: usize) -> usize {
    (SERVER_CORE + thread).min(machine::cores() - 1)
}

/// Measures how many datagrams an echo returns in a second. `requests` is the request that is sent,
/// and how many of them. The echo has a thread for each queue.
pub fn datagrams_per_s(
    halves: &Halves,
    way: &Way,
    requests: (&[u8], Pace),
    measured: Duration,
) -> Result<f64> {
    let devices = way.echo.open(halves, halves.queues)?;
    let address = devices[0].address()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let start = |(thread, device)| scope.spawn(move || echo(device, core_of(thread), stop));
        let echoes: Vec<_> = devices.into_iter().enumerate().map(start).collect();
        let idle = || Ok(Duration::ZERO);
        let driven = drive_from(
            halves,
            &way.echo_client,
            (address, requests),
            measured,
            &idle,
        );
        stop.store(true, Ordering::Relaxed);
        for echo in echoes {
            echo.join().expect("an echo does not panic")?;
        }
        Ok(driven?.per_s())
    })
}

/// Sends requests from one core. `cpu` tells the CPU time that the server has used.
pub fn drive_from(
    halves: &Halves,
    client: &End,
    (to, requests): (SocketAddr, (&[u8], Pace)),
    measured: Duration,
    cpu: &(dyn Fn() -> Result<Duration> + Sync),
) -> Result<Driven> {
    let count = match halves.queues {
        1 => 1,
        queues => queues * DEVICES_PER_QUEUE,
    };
    let devices = client.open(halves, count)?;
    let core = core_of(halves.queues);
    machine::on_core(Some(core), || drive(devices, to, requests, measured, cpu))?
}

/// Sends back what arrives.
fn echo(device: Box<dyn PacketDevice>, core: usize, stop: &AtomicBool) -> Result<()> {
    machine::pin([core])?;
    let mut devices = [device];
    let mut waiting = Waiting::of(&devices)?;
    let mut received = RxBatch::default();
    while !stop.load(Ordering::Relaxed) {
        waiting.wait()?;
        while devices[0].receive(&mut received) > 0 {
            devices[0].send_back(&mut received);
        }
    }
    Ok(())
}

/// How a thread waits for datagrams: until it is woken, or by looking again and again.
struct Waiting(Option<Poller>);

impl Waiting {
    fn of(devices: &[Box<dyn PacketDevice>]) -> Result<Waiting> {
        let poller = Poller::new(devices.len())?;
        for device in devices {
            match device.wakeup() {
                Wakeup::Poll => return Ok(Waiting(None)),
                wakeup => poller.watch_level(wakeup, 0)?,
            }
        }
        Ok(Waiting(Some(poller)))
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(poller) = &mut self.0 {
            poller.wait(Some(TICK))?;
        }
        Ok(())
    }
}

/// A device of the client.
struct Client {
    device: Box<dyn PacketDevice>,
    heard: Instant,
    /// It has heard something.
    is_warm: bool,
}

impl Client {
    fn send(&mut self, to: SocketAddr, request: &[u8], count: usize) {
        let mut out = TxBatch::new(&mut *self.device);
        (0..count).for_each(|_| out.push(Message::alone(to, request)));
        out.finish();
    }

    fn receive(&mut self, received: &mut RxBatch) -> usize {
        let mut datagrams = 0;
        while self.device.receive(received) > 0 {
            let all = 0..received.count();
            datagrams += all.map(|at| received.datagrams(at)).sum::<usize>();
        }
        datagrams
    }
}

/// Keeps requests under way, and counts replies from when every device has heard one.
fn drive(
    devices: Vec<Box<dyn PacketDevice>>,
    to: SocketAddr,
    (request, pace): (&[u8], Pace),
    measured: Duration,
    cpu: &dyn Fn() -> Result<Duration>,
) -> Result<Driven> {
    let mut waiting = Waiting::of(&devices)?;
    let in_flight = pace.begins_with(devices.len());
    let client = |device| Client {
        device,
        heard: Instant::now(),
        is_warm: false,
    };
    let mut clients: Vec<Client> = devices.into_iter().map(client).collect();
    let mut received = RxBatch::default();
    // The first one finds the way, and its reply shows it.
    clients.iter_mut().for_each(|it| it.send(to, request, 1));
    let (mut begin, mut used) = (Instant::now(), Duration::ZERO);
    let (mut back, mut cold) = (0u64, clients.len());
    while begin.elapsed() < measured || cold > 0 && begin.elapsed() < PATIENCE {
        if pace != Pace::Flood {
            waiting.wait()?;
        }
        for client in &mut clients {
            let more = client.receive(&mut received);
            back += more as u64;
            let is_flooding = pace == Pace::Flood && client.is_warm;
            if more == 0 && !is_flooding && client.heard.elapsed() < TICK {
                continue;
            }
            client.heard = Instant::now();
            match (client.is_warm, more) {
                (false, 1..) => {
                    client.is_warm = true;
                    cold -= 1;
                    if cold == 0 {
                        (begin, back, used) = (Instant::now(), 0, cpu()?);
                    }
                    client.send(to, request, in_flight);
                }
                (false, 0) => client.send(to, request, 1),
                // Everything that was under way is lost.
                (true, 0) => client.send(to, request, in_flight),
                (true, _) => client.send(to, request, pace.goes_on_with(more)),
            }
        }
    }
    ensure!(back > 0, "no datagram came back from {to}");
    Ok(Driven {
        replies: back,
        time: begin.elapsed(),
        server_cpu: cpu()?.saturating_sub(used),
    })
}
