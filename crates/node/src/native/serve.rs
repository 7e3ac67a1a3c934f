//! A worker's native sockets.

use glimmer_base::limits::{DATAGRAM_BURSTS_PER_TURN_MAX, NATIVE_IDLE_TURNS_MAX};
use glimmer_transport::udp::{DATAGRAMS_MAX, Socket, Train, Trains};
use std::net::SocketAddr;
use std::sync::Arc;

use super::{Exchange, Figures};
use crate::pool::{Budget, Charge};
use crate::worker::Worker;

/// One of a worker's native sockets.
pub(crate) struct NativeDoor {
    pub socket: Socket,
    /// The ports of all workers at this address.
    pub ports: Arc<[u16]>,
}

/// What a worker serves native clients with.
pub(crate) struct NativeDesk {
    pub doors: Vec<NativeDoor>,
    pub exchange: Exchange,
    trains: Trains,
    /// What the exchange had counted when it was last asked.
    figures: Figures,
    /// What the worker's budget has been charged for what the exchange keeps.
    counted: Charge,
}

impl NativeDesk {
    pub fn new(doors: Vec<NativeDoor>, exchange: Exchange) -> NativeDesk {
        NativeDesk {
            doors,
            exchange,
            trains: Trains::default(),
            figures: Figures::default(),
            counted: Charge::default(),
        }
    }

    fn charge(&mut self, budget: &mut Budget) {
        let charge = Charge {
            bytes: self.exchange.bytes(),
            buffers: 0,
        };
        budget.recharge(self.counted, charge);
        self.counted = charge;
    }
}

impl Worker {
    /// Answers the trains that wait at one native socket.
    pub fn serve_native(&mut self, door: usize) {
        let Worker {
            native,
            engine,
            now,
            tally,
            budget,
            ..
        } = self;
        let Some(desk) = native.as_mut() else {
            return;
        };
        let NativeDoor { socket, ports } = &desk.doors[door];
        for _ in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = socket.receive_trains(&mut desk.trains);
            for train in 0..received {
                let (bytes, stride) = (desk.trains.bytes(train).len(), desk.trains.stride(train));
                tally.datagrams_received += bytes.div_ceil(stride) as u64;
                tally.bytes_read += bytes as u64;
            }
            let (sent, written) = (&mut tally.datagrams_sent, &mut tally.bytes_written);
            let mut send = |trains: &[Train<'_>]| {
                socket.send_trains(trains);
                for train in trains {
                    *sent += train.bytes.len().div_ceil(train.stride) as u64;
                    *written += train.bytes.len() as u64;
                }
            };
            (desk.exchange).answer(&mut desk.trains, &mut **engine, *now, ports, &mut send);
            if received < DATAGRAMS_MAX {
                break;
            }
        }
        let figures = desk.exchange.figures();
        let before = std::mem::replace(&mut desk.figures, figures);
        tally.datagrams_dropped += figures.dropped - before.dropped;
        tally.requests += figures.requests - before.requests;
        tally.batches += figures.batches - before.batches;
        tally.native_requests = figures.requests;
        tally.native_misdirected = figures.misdirected;
        tally.native_unproven = figures.unproven;
        tally.native_repeated = figures.repeated;
        tally.native_superseded = figures.superseded;
        tally.native_in_place = figures.in_place;
        desk.charge(budget);
        self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
    }

    /// The native sockets, if there are any.
    pub fn native_doors(&self) -> &[NativeDoor] {
        self.native.as_ref().map_or(&[], |desk| &desk.doors)
    }

    /// Takes no more native datagrams.
    pub fn forget_native(&self) {
        for door in self.native_doors() {
            // It was watched, and stays open for what is yet to be sent.
            let _ = self.poller.forget(&door.socket);
        }
    }

    /// Gives up what native clients have stopped sending.
    pub fn tick_native(&mut self) {
        if let Some(desk) = &mut self.native {
            desk.exchange.expire(self.now);
            desk.charge(&mut self.budget);
        }
    }
}

/// Gives every worker a socket of its own at one address: its port and those that follow, or any that are free if it is 0. Returns the ports.
pub(crate) fn listen(
    address: SocketAddr,
    doors: &mut [Vec<NativeDoor>],
) -> Result<Arc<[u16]>, (SocketAddr, std::io::Error)> {
    let mut sockets = Vec::with_capacity(doors.len());
    let mut ports = Vec::with_capacity(doors.len());
    for worker in 0..doors.len() {
        let port = match (address.port(), u16::try_from(worker)) {
            (0, _) => Some(0),
            (first, Ok(worker)) => first.checked_add(worker),
            (_, Err(_)) => None,
        };
        let none = || std::io::Error::other("there are fewer ports behind it than workers");
        let port = port.ok_or_else(|| (address, none()))?;
        let address = SocketAddr::new(address.ip(), port);
        let bound = Socket::bind_alone(address).and_then(|socket| {
            ports.push(socket.address()?.port());
            Ok(socket)
        });
        sockets.push(bound.map_err(|error| (address, error))?);
    }
    let ports: Arc<[u16]> = ports.into();
    for (doors, socket) in doors.iter_mut().zip(sockets) {
        let ports = ports.clone();
        doors.push(NativeDoor { socket, ports });
    }
    Ok(ports)
}
