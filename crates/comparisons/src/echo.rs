//! What the kernel can do: datagrams per second that one core sends back to another, as they are or as trains. No server of datagrams on this machine
//! can be faster.

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
    udp::{DATAGRAMS_MAX, Peer, Socket, TRAIN_DATAGRAMS_MAX, Train, Trains},
};

use glimmer_measure::machine;

/// How often a waiting thread looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
/// How much longer than asked for it waits for the first datagram to come back.
const PATIENCE: Duration = Duration::from_secs(5);
/// Sockets of the client.
const SOCKETS: usize = 4;

/// How datagrams cross the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each by itself, [`DATAGRAMS_MAX`] per system call.
    Plain,
    /// So many as one (`UDP_SEGMENT`, `UDP_GRO`), [`TRAIN_DATAGRAMS_MAX`] at most.
    Trains(usize),
}

/// Sends so many bytes back and forth, `in_flight` datagrams at a time on each of four sockets, one core against another; datagrams that came back per
/// second.
pub fn datagrams_per_s(
    way: Way,
    bytes: usize,
    in_flight: usize,
    (server_core, client_core): (Option<usize>, Option<usize>),
    measured: Duration,
) -> Result<f64> {
    let echo = Echo::start(way, server_core)?;
    let client = || drive(way, bytes, in_flight, echo.address, measured);
    machine::on_core(client_core, client)?
}

/// A running echo; ended when it is dropped.
struct Echo {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(way: Way, core: Option<usize>) -> Result<Echo> {
        let socket = Socket::bind_alone((Ipv4Addr::LOCALHOST, 0).into()).context("an echo")?;
        let address = socket.address()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                machine::pin([core]).expect("a core that this process may use");
            }
            let mut trains = Trains::default();
            let mut poller = Poller::new(1).expect("an epoll descriptor");
            poller.watch_level(&socket, 0).expect("a socket");
            while !told.load(Ordering::Relaxed) {
                poller.wait(Some(TICK)).expect("the poller is sound");
                while socket.receive_trains(&mut trains) > 0 {
                    send_back(&socket, &trains, way);
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

fn send_back(socket: &Socket, trains: &Trains, way: Way) {
    for train in 0..trains.count() {
        let (peer, bytes, stride) = (
            trains.peer(train),
            trains.bytes(train),
            trains.stride(train),
        );
        if way != Way::Plain && bytes.len() > stride {
            socket.send_trains(&[Train {
                peer,
                bytes,
                stride,
            }]);
        }
    }
    let mut alone = [Train {
        peer: trains.peer(0),
        bytes: &[],
        stride: 1,
    }; DATAGRAMS_MAX];
    let mut count = 0;
    for train in 0..trains.count() {
        let (bytes, stride) = (trains.bytes(train), trains.stride(train));
        if way != Way::Plain && bytes.len() > stride {
            continue;
        }
        for bytes in bytes.chunks(stride) {
            if count == DATAGRAMS_MAX {
                socket.send_trains(&alone);
                count = 0;
            }
            alone[count] = Train {
                peer: trains.peer(train),
                bytes,
                stride,
            };
            count += 1;
        }
    }
    socket.send_trains(&alone[..count]);
}

fn drive(
    way: Way,
    bytes: usize,
    in_flight: usize,
    server: SocketAddr,
    measured: Duration,
) -> Result<f64> {
    let peer = Peer::from(server);
    let burst = vec![0x5A; bytes * in_flight];
    let send = |socket: &Socket, datagrams: usize| {
        let bytes_of = &burst[..bytes * datagrams];
        let together = match way {
            Way::Plain => 1,
            Way::Trains(datagrams) => datagrams.clamp(1, TRAIN_DATAGRAMS_MAX),
        };
        let trains: Vec<Train<'_>> = bytes_of
            .chunks(bytes * together)
            .map(|bytes_of| Train {
                peer: &peer,
                bytes: bytes_of,
                stride: bytes,
            })
            .collect();
        socket.send_trains(&trains);
    };
    let mut poller = Poller::new(SOCKETS)?;
    let mut sockets = Vec::new();
    for number in 0..SOCKETS {
        let socket = Socket::bind_alone((Ipv4Addr::LOCALHOST, 0).into())?;
        poller.watch_level(&socket, number as u64)?;
        send(&socket, in_flight);
        sockets.push((socket, 0));
    }
    let mut trains = Trains::default();
    let begin = Instant::now();
    let mut back = 0u64;
    // A machine that gives the echo no time at all lets nothing come back: then it takes longer.
    while begin.elapsed() < measured || back == 0 && begin.elapsed() < measured + PATIENCE {
        poller.wait(Some(TICK))?;
        if poller.ready_count() == 0 {
            // What did not come back was lost: begin again.
            for (socket, received) in &mut sockets {
                *received = 0;
                send(socket, in_flight);
            }
        }
        for index in 0..poller.ready_count() {
            let (socket, received) = &mut sockets[poller.ready(index).token as usize];
            while socket.receive_trains(&mut trains) > 0 {
                for train in 0..trains.count() {
                    *received += trains.bytes(train).len().div_ceil(trains.stride(train));
                }
            }
            if *received >= in_flight {
                back += *received as u64;
                *received = 0;
                send(socket, in_flight);
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
            Way::Plain,
            Way::Trains(32),
            Way::Trains(TRAIN_DATAGRAMS_MAX),
        ] {
            let time = Duration::from_millis(60);
            let rate = datagrams_per_s(way, 60, 128, (None, None), time).unwrap();
            assert!(rate > 0.0);
        }
    }
}
