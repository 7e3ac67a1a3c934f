//! A worker's native sockets.

use glimmer_base::limits::DATAGRAM_BURSTS_PER_TURN_MAX;
use glimmer_proto::native::directory::Direction;
use glimmer_transport::Poller;
use glimmer_transport::udp::{DATAGRAMS_MAX, Socket, Train, Trains};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::endpoint::NativeEndpoint;
use super::figures::NativeFigures;
use super::handover::Handover;
use super::rules::Rules;
use crate::admin::alarm::Failure;
use crate::admin::stats::Tally;
use crate::budget::pool::{Budget, Charge};
use crate::core::Core;
use crate::forward::datagrams::ForwardedDatagrams;
use crate::forward::port::Port;
use crate::stream::registry::SocketEntry;

/// Share of what a worker may keep for native clients that the batches for other workers have, where
/// the server directs requests.
const HANDOVER_SHARE: usize = 4;

/// One of a worker's native sockets.
pub(crate) struct NativeSource {
    pub socket: Arc<Socket>,
    /// The ports of all workers at this address.
    pub ports: Arc<[u16]>,
    /// The kernel's count of datagrams that it dropped, as last told.
    drops: u32,
    /// Its token in the poller.
    token: u64,
}

/// What a worker serves native clients with.
pub(crate) struct NativeServer {
    sources: Vec<NativeSource>,
    endpoint: NativeEndpoint,
    /// Where the server directs requests, and there is anybody to direct them to.
    handover: Option<Handover>,
    trains: Trains,
    /// What the native endpoint had counted when it was last asked.
    figures: NativeFigures,
    /// What the worker's budget has been charged for what the native endpoint keeps.
    counted: Charge,
}

impl NativeSource {
    /// The same, which the poller will watch under this token.
    pub fn with_token(self, token: u64) -> NativeSource {
        NativeSource { token, ..self }
    }
}

impl NativeServer {
    /// The server of worker `me`, which may keep `bytes_max` bytes of what clients send over
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

    /// Has the poller watch the sockets.
    pub fn watch(&self, poller: &Poller) -> io::Result<()> {
        for source in &self.sources {
            poller.watch_level(&*source.socket, source.token)?;
        }
        Ok(())
    }

    /// Enters the sockets into the connection registry.
    pub fn register(&self, core: &Core) {
        for source in &self.sources {
            let entry = SocketEntry::listening(&*source.socket, true, core.now.ms);
            core.shared.registry.add(Arc::new(entry));
        }
    }

    /// Takes no more native datagrams.
    pub fn forget(&self, poller: &Poller) {
        for source in &self.sources {
            // It was watched, and stays open for what is yet to be sent.
            let _ = poller.forget(&*source.socket);
        }
    }

    /// Answers the trains that wait at one native socket.
    pub fn serve(&mut self, source: usize, core: &mut Core, port: &mut Port) {
        let NativeSource {
            socket,
            ports,
            drops,
            ..
        } = &mut self.sources[source];
        let mut lost = Lost::default();
        for _ in 0..DATAGRAM_BURSTS_PER_TURN_MAX {
            let tally = &mut core.tally;
            let received = socket.receive_trains(&mut self.trains);
            let mut datagrams = 0;
            for train in 0..received {
                let (bytes, stride) = (self.trains.bytes(train).len(), self.trains.stride(train));
                datagrams += bytes.div_ceil(stride) as u64;
                tally.bytes_read += bytes as u64;
            }
            if let Some(told) = self.trains.drops() {
                lost.overflowed += u64::from(told.wrapping_sub(*drops));
                *drops = told;
            }
            tally.native_receives += u64::from(received > 0);
            tally.native_datagrams += datagrams;
            tally.datagrams_received += datagrams;
            if let Some(handover) = &mut self.handover {
                handover.direct(&mut self.trains, socket, ports, port);
            }
            let at = (&**socket, &**ports);
            lost.unsent += answer(&mut self.endpoint, &mut self.trains, at, core);
            if received < DATAGRAMS_MAX {
                break;
            }
        }
        self.settle(lost, core);
    }

    /// Answers what other workers have handed over, and takes home its own batches. Returns whether
    /// there was anything to answer.
    pub fn take_handed_over(&mut self, core: &mut Core, port: &mut Port) -> bool {
        let Some(handover) = &mut self.handover else {
            return false;
        };
        let mut any = false;
        let mut lost = Lost::default();
        while let Some((from, mut batch)) = port.next_datagrams() {
            if batch.home() == core.me {
                handover.welcome(from, batch);
                continue;
            }
            let ForwardedDatagrams {
                trains,
                socket,
                ports,
                ..
            } = &mut *batch;
            let at = (&**socket, &**ports);
            lost.unsent += answer(&mut self.endpoint, trains, at, core);
            port.send_datagrams(from, batch);
            any = true;
        }
        if any {
            self.settle(lost, core);
        }
        any
    }

    /// Gives up what native clients have stopped sending.
    pub fn expire(&mut self, core: &mut Core) {
        self.endpoint.expire(core.now);
        self.charge(&mut core.memory.budget);
    }

    /// Shows what was counted, and what was lost.
    fn settle(&mut self, lost: Lost, core: &mut Core) {
        self.publish(&mut core.tally);
        self.charge(&mut core.memory.budget);
        if lost.overflowed > 0 {
            core.note_failure(Failure::Overflow, lost.overflowed, None);
        }
        if lost.unsent > 0 {
            core.note_failure(Failure::Send, lost.unsent, None);
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
    core: &mut Core,
) -> u64 {
    let mut unsent = 0;
    let tally = &mut core.tally;
    let mut send = |trains: &[Train<'_>]| {
        let departed = socket.send_trains(trains);
        tally.datagrams_sent += departed.datagrams;
        tally.bytes_written += departed.bytes;
        let datagrams = |train: &Train<'_>| train.bytes.len().div_ceil(train.stride) as u64;
        unsent += trains.iter().map(datagrams).sum::<u64>() - departed.datagrams;
    };
    endpoint.answer(trains, &mut *core.engine, core.now, ports, &mut send);
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
            token: 0,
        });
    }
    Ok(ports)
}
