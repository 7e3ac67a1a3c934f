//! An echo over a transport, and the client that keeps datagrams under way.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use glimmer_measure::machine;
use glimmer_transport::{
    Poller,
    packet::{Message, PacketDevice, RxBatch, TxBatch, Wakeup},
};

use super::ways::{End, Halves, Way};

/// A client that hears nothing for so long sends again.
const TICK: Duration = Duration::from_millis(20);
/// Time for the first reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Datagrams that come back from an echo in a second, with so many of these requests under way.
pub fn datagrams_per_s(
    halves: &Halves,
    way: &Way,
    requests: (&[u8], usize),
    measured: Duration,
) -> Result<f64> {
    let device = way.echo.open(halves)?;
    let address = device.address()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(device, &stop));
        let rate = drive_from(halves, &way.echo_client, address, requests, measured);
        stop.store(true, Ordering::Relaxed);
        echo.join().expect("an echo does not panic")?;
        rate
    })
}

/// Sends requests from one core, and returns the replies per second.
pub fn drive_from(
    halves: &Halves,
    client: &End,
    to: SocketAddr,
    requests: (&[u8], usize),
    measured: Duration,
) -> Result<f64> {
    let mut device = client.open(halves)?;
    let core = machine::client_cores(1).first().copied();
    machine::on_core(core, || drive(&mut *device, to, requests, measured))?
}

/// Sends back what arrives.
fn echo(mut device: Box<dyn PacketDevice>, stop: &AtomicBool) -> Result<()> {
    machine::pin([machine::SERVER_CORE])?;
    let mut waiting = Waiting::of(&*device)?;
    let mut received = RxBatch::default();
    while !stop.load(Ordering::Relaxed) {
        waiting.wait()?;
        while device.receive(&mut received) > 0 {
            device.send_back(&mut received);
        }
    }
    Ok(())
}

/// How a thread waits for datagrams: until it is woken, or by looking again and again.
struct Waiting(Option<Poller>);

impl Waiting {
    fn of(device: &dyn PacketDevice) -> Result<Waiting> {
        if let Wakeup::Poll = device.wakeup() {
            return Ok(Waiting(None));
        }
        let poller = Poller::new(1)?;
        poller.watch_level(device.wakeup(), 0)?;
        Ok(Waiting(Some(poller)))
    }

    fn wait(&mut self) -> Result<()> {
        if let Some(poller) = &mut self.0 {
            poller.wait(Some(TICK))?;
        }
        Ok(())
    }
}

/// Keeps requests under way, and counts replies.
fn drive(
    device: &mut dyn PacketDevice,
    to: SocketAddr,
    (request, in_flight): (&[u8], usize),
    measured: Duration,
) -> Result<f64> {
    let send = |device: &mut dyn PacketDevice, count: usize| {
        let mut out = TxBatch::new(device);
        (0..count).for_each(|_| out.push(Message::alone(to, request)));
        out.finish();
    };
    let mut waiting = Waiting::of(device)?;
    let mut received = RxBatch::default();
    let mut heard = Instant::now();
    // The first one finds the way, and its reply shows it.
    send(device, 1);
    let (mut begin, mut back, mut is_warm) = (Instant::now(), 0u64, false);
    while begin.elapsed() < measured || !is_warm && begin.elapsed() < PATIENCE {
        waiting.wait()?;
        let mut more = 0;
        while device.receive(&mut received) > 0 {
            more += (0..received.count())
                .map(|at| received.datagrams(at))
                .sum::<usize>();
        }
        back += more as u64;
        if more == 0 && heard.elapsed() < TICK {
            continue;
        }
        heard = Instant::now();
        match (is_warm, more) {
            (false, 1..) => {
                (begin, back, is_warm) = (Instant::now(), 0, true);
                send(device, in_flight);
            }
            (false, 0) => send(device, 1),
            // Everything that was under way is lost.
            (true, 0) => send(device, in_flight),
            (true, _) => send(device, more),
        }
    }
    ensure!(back > 0, "no datagram came back from {to}");
    Ok(back as f64 / begin.elapsed().as_secs_f64())
}
