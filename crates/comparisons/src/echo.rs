//! The kernel's limit: datagrams per second that one core echoes to another, singly or in segment
//! batches. No UDP server on this machine can be faster.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use glimmer_transport::{
    Poller,
    packet::{Message, PacketDevice, PacketSender, RxBatch, SEGMENTS_MAX, TxBatch},
    udp::UdpDevice,
};

use glimmer_measure::machine;

/// Interval at which a waiting thread checks whether to end.
const TICK: Duration = Duration::from_millis(20);
/// Additional time to wait for the first datagram to come back.
const PATIENCE: Duration = Duration::from_secs(5);
/// Sockets of the client.
const SOCKETS: usize = 4;

/// How datagrams pass through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoMode {
    /// Each separately, [`PACKET_BATCH_MAX`](glimmer_transport::packet::PACKET_BATCH_MAX) per
    /// system call.
    Plain,
    /// This many as one segment batch (`UDP_SEGMENT`, `UDP_GRO`), up to [`SEGMENTS_MAX`].
    Segmented(usize),
}

/// Sends datagrams of this length back and forth between two cores, with `in_flight` datagrams at a
/// time on each of four sockets. Returns the datagrams per second that came back.
pub fn datagrams_per_s(
    way: EchoMode,
    bytes: usize,
    in_flight: usize,
    (server_core, client_core): (Option<usize>, Option<usize>),
    measured: Duration,
) -> Result<f64> {
    let echo = Echo::start(way, server_core)?;
    let client = || drive(way, bytes, in_flight, echo.address, measured);
    machine::on_core(client_core, client)?
}

/// A running echo server. Dropping it stops it.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(way: EchoMode, core: Option<usize>) -> Result<Echo> {
        let mut device = bind(way).context("an echo")?;
        let address = device.address()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                machine::pin([core]).expect("a core that this process may use");
            }
            let mut received = RxBatch::default();
            let mut poller = Poller::new(1).expect("an epoll descriptor");
            poller.watch_level(&device, 0).expect("a socket");
            while !told.load(Ordering::Relaxed) {
                poller.wait(Some(TICK)).expect("the poller is sound");
                while device.receive(&mut received) > 0 {
                    send_back(&mut device, &mut received, way);
                }
            }
        });
        Ok(Echo {
            address,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket that sends and receives datagrams in this way.
fn bind(way: EchoMode) -> std::io::Result<UdpDevice> {
    let device = UdpDevice::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(match way {
        EchoMode::Plain => device.without_coalescing(),
        EchoMode::Segmented(_) => device,
    })
}

fn send_back(device: &mut UdpDevice, received: &mut RxBatch, way: EchoMode) {
    if way != EchoMode::Plain {
        device.send_back(received);
        return;
    }
    let mut out = TxBatch::new(device);
    for batch in 0..received.count() {
        let size = received.segment_bytes(batch);
        for datagram in received.bytes(batch).chunks(size) {
            out.push(Message::alone(received.peer(batch), datagram));
        }
    }
    out.finish();
}

fn drive(
    way: EchoMode,
    bytes: usize,
    in_flight: usize,
    server: SocketAddr,
    measured: Duration,
) -> Result<f64> {
    let burst = vec![0x5A; bytes * in_flight];
    let send = |device: &mut UdpDevice, datagrams: usize| {
        let bytes_of = &burst[..bytes * datagrams];
        let together = match way {
            EchoMode::Plain => 1,
            EchoMode::Segmented(datagrams) => datagrams.clamp(1, SEGMENTS_MAX),
        };
        let mut out = TxBatch::new(device);
        for payload in bytes_of.chunks(bytes * together) {
            out.push(Message::segments(server, payload, bytes));
        }
        out.finish();
    };
    let mut poller = Poller::new(SOCKETS)?;
    let mut devices = Vec::new();
    for number in 0..SOCKETS {
        let mut device = bind(way)?;
        poller.watch_level(&device, number as u64)?;
        send(&mut device, in_flight);
        devices.push((device, 0));
    }
    let mut received = RxBatch::default();
    let begin = Instant::now();
    let mut back = 0u64;
    // On a machine that gives the echo no CPU time, nothing comes back: wait longer.
    while begin.elapsed() < measured || back == 0 && begin.elapsed() < measured + PATIENCE {
        poller.wait(Some(TICK))?;
        if poller.ready_count() == 0 {
            // Datagrams that did not come back were lost: start again.
            for (device, returned) in &mut devices {
                *returned = 0;
                send(device, in_flight);
            }
        }
        for index in 0..poller.ready_count() {
            let (device, returned) = &mut devices[poller.ready(index).token as usize];
            while device.receive(&mut received) > 0 {
                for batch in 0..received.count() {
                    *returned += received.datagrams(batch);
                }
            }
            if *returned >= in_flight {
                back += *returned as u64;
                *returned = 0;
                send(device, in_flight);
            }
        }
    }
    ensure!(back > 0, "no datagram came back");
    Ok(back as f64 / begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_back_either_way() {
        for way in [
            EchoMode::Plain,
            EchoMode::Segmented(32),
            EchoMode::Segmented(SEGMENTS_MAX),
        ] {
            let time = Duration::from_millis(60);
            let rate = datagrams_per_s(way, 60, 128, (None, None), time).unwrap();
            assert!(rate > 0.0);
        }
    }
}
