//! A worker's native sockets.

use glimmer_base::Moment;
use glimmer_base::limits::{DATAGRAM_BURSTS_PER_TURN_MAX, NATIVE_IDLE_TURNS_MAX};
use glimmer_engine::Engine;
use glimmer_proto::native::directory::Direction;
use glimmer_transport::udp::{DATAGRAMS_MAX, Socket, Train, Trains};
use std::net::SocketAddr;
use std::sync::Arc;

use super::handover::Handover;
use super::{NativeEndpoint, NativeFigures, Rules};
use crate::admin::alarm::Failure;
use crate::admin::stats::Tally;
use crate::budget::pool::{Budget, Charge};
use crate::forward::datagrams::ForwardedDatagrams;
use crate::worker::Worker;

/// Share of what a worker may keep for native clients that the batches for other workers have, where
/// the server directs requests.
const HANDOVER_SHARE: usize = 4;

/// One of a worker's native sockets.
pub(crate) struct NativeSource {
    pub socket: Arc<Socket>,
    /// The ports of all workers at this address.
    pub ports: Arc<[u16]>,
    /// The kernel's count of datagrams that it dropped, as last told.
    pub drops: u32,
}

/// What a worker serves native clients with.
pub(crate) struct NativeServer {
    pub sources: Vec<NativeSource>,
    endpoint: NativeEndpoint,
    /// Where the server directs requests, and there is anybody to direct them to.
    handover: Option<Handover>,
    trains: Trains,
    /// What the native endpoint had counted when it was last asked.
    figures: NativeFigures,
    /// What the worker's budget has been charged for what the native endpoint keeps.
    counted: Charge,
}

impl NativeServer {
    /// The admin handler of worker `me`, which may keep `bytes_max` bytes of what clients send over
    /// time.
    pub fn new(
        sources: Vec<NativeSource>,
        rules: Rules,
        me: usize,
        bytes_max: usize,
    ) -> NativeServer {
        let directs = rules.direction == Direction::Server && rules.workers > 1;
        let handover_bytes_max = match directs {
            true => bytes_max / HANDOVER_SHARE,
            false => 0,
        };
        NativeServer {
            sources,
            endpoint: NativeEndpoint::new(rules, me, bytes_max - handover_bytes_max),
            handover: directs.then(|| Handover::new(rules, me, handover_bytes_max)),
            trains: Trains::default(),
            figures: NativeFigures::default(),
            counted: Charge::default(),
        }
    }

    /// Shows what was counted since this was last called.
    fn publish(&mut self, tally: &mut Tally) {
        let figures = self.endpoint.figures();
        let before = std::mem::replace(&mut self.figures, figures);
        tally.datagrams_dropped += figures.dropped - before.dropped;
        tally.requests += figures.requests - before.requests;
        tally.batches += figures.batches - before.batches;
        tally.native_requests = figures.requests;
        tally.native_misdirected = figures.misdirected;
        tally.native_unproven = figures.unproven;
        tally.native_repeated = figures.repeated;
        tally.native_superseded = figures.superseded;
        tally.native_in_place = figures.in_place;
        if let Some(handover) = &self.handover {
            tally.native_handed_over = handover.datagrams;
            tally.native_handover_batches = handover.batches;
        }
    }

    fn charge(&mut self, budget: &mut Budget) {
        let batches = self.handover.as_ref().map_or(0, |handover| handover.bytes);
        let charge = Charge {
            bytes: self.endpoint.bytes() + batches,
            buffers: 0,
        };
        budget.recharge(self.counted, charge);
        self.counted = charge;
    }
}

impl Worker {
    /// Answers the trains that wait at one native socket.
    pub fn serve_native(&mut self, source: usize) {
        let Worker {
            native,
            engine,
            now,
            tally,
            budget,
            port,
            ..
        } = self;
        let Some(server) = native.as_mut() else {
            return;
        };
        let NativeSource {
            socket,
            ports,
            drops,
        } = &mut server.sources[source];
        let mut lost = Lost::default();
        for _ in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let received = socket.receive_trains(&mut server.trains);
            let mut datagrams = 0;
            for train in 0..received {
                let (bytes, stride) = (
                    server.trains.bytes(train).len(),
                    server.trains.stride(train),
                );
                datagrams += bytes.div_ceil(stride) as u64;
                tally.bytes_read += bytes as u64;
            }
            if let Some(told) = server.trains.drops() {
                lost.overflowed += u64::from(told.wrapping_sub(*drops));
                *drops = told;
            }
            tally.native_receives += u64::from(received > 0);
            tally.native_datagrams += datagrams;
            tally.datagrams_received += datagrams;
            if let Some(handover) = &mut server.handover {
                handover.direct(&mut server.trains, socket, ports, port);
            }
            let at = (&**socket, &**ports);
            let (trains, engine) = (&mut server.trains, &mut **engine);
            lost.unsent += answer(&mut server.endpoint, trains, at, engine, *now, tally);
            if received < DATAGRAMS_MAX {
                break;
            }
        }
        server.publish(tally);
        server.charge(budget);
        self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
        self.note_lost(lost);
    }

    fn note_lost(&mut self, lost: Lost) {
        if lost.overflowed > 0 {
            self.note_failure(Failure::Overflow, lost.overflowed, None);
        }
        if lost.unsent > 0 {
            self.note_failure(Failure::Send, lost.unsent, None);
        }
    }

    /// Answers what other workers have handed over, and takes home its own batches.
    pub fn take_handed_over(&mut self) {
        let Worker {
            native,
            engine,
            now,
            tally,
            budget,
            port,
            me,
            ..
        } = self;
        let Some(server) = native.as_deref_mut() else {
            return;
        };
        let Some(handover) = &mut server.handover else {
            return;
        };
        let mut any = false;
        let mut lost = Lost::default();
        while let Some((from, mut batch)) = port.next_datagrams() {
            if batch.home() == *me {
                handover.welcome(from, batch);
                continue;
            }
            let ForwardedDatagrams {
                trains,
                socket,
                ports,
                ..
            } = &mut *batch;
            let (endpoint, at) = (&mut server.endpoint, (&**socket, &**ports));
            lost.unsent += answer(endpoint, trains, at, &mut **engine, *now, tally);
            port.send_datagrams(from, batch);
            any = true;
        }
        if any {
            server.publish(tally);
            server.charge(budget);
            self.idle_turns_left = NATIVE_IDLE_TURNS_MAX;
            self.note_lost(lost);
        }
    }

    /// The native sockets, if there are any.
    pub fn native_sources(&self) -> &[NativeSource] {
        self.native.as_ref().map_or(&[], |server| &server.sources)
    }

    /// Takes no more native datagrams.
    pub fn forget_native(&self) {
        for source in self.native_sources() {
            // It was watched, and stays open for what is yet to be sent.
            let _ = self.poller.forget(&*source.socket);
        }
    }

    /// Gives up what native clients have stopped sending.
    pub fn tick_native(&mut self) {
        if let Some(server) = &mut self.native {
            server.endpoint.expire(self.now);
            server.charge(&mut self.budget);
        }
    }
}

/// Datagrams that did not reach the worker, or a client.
#[derive(Default)]
struct Lost {
    overflowed: u64,
    unsent: u64,
}

/// Answers trains by the socket at which they came in; beside it are the ports of all workers at
/// its address. Returns the number of datagrams that the socket did not take.
fn answer(
    endpoint: &mut NativeEndpoint,
    trains: &mut Trains,
    (socket, ports): (&Socket, &[u16]),
    engine: &mut dyn Engine,
    now: Moment,
    tally: &mut Tally,
) -> u64 {
    let mut unsent = 0;
    let mut send = |trains: &[Train<'_>]| {
        let departed = socket.send_trains(trains);
        tally.datagrams_sent += departed.datagrams;
        tally.bytes_written += departed.bytes;
        let datagrams = |train: &Train<'_>| train.bytes.len().div_ceil(train.stride) as u64;
        unsent += trains.iter().map(datagrams).sum::<u64>() - departed.datagrams;
    };
    endpoint.answer(trains, engine, now, ports, &mut send);
    unsent
}

/// Gives every worker a socket of its own at one address: its port and those that follow, or any
/// that are free if it is 0. Returns the ports.
pub(crate) fn listen(
    address: SocketAddr,
    sources: &mut [Vec<NativeSource>],
) -> Result<Arc<[u16]>, (SocketAddr, std::io::Error)> {
    let mut sockets = Vec::with_capacity(sources.len());
    let mut ports = Vec::with_capacity(sources.len());
    for worker in 0..sources.len() {
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
    for (sources, socket) in sources.iter_mut().zip(sockets) {
        let (socket, ports) = (Arc::new(socket), ports.clone());
        sources.push(NativeSource {
            socket,
            ports,
            drops: 0,
        });
    }
    Ok(ports)
}
