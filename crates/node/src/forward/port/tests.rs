//! Workers that send without a pause, and what becomes of the others.

use super::*;
use crate::forward::bell::EventBell;
use glimmer_base::Moment;
use glimmer_base::limits::FORWARD_DATAGRAM_BYTES_MAX;
use glimmer_dispatch::Layout;
use glimmer_engine::{Done, Engine, Figures, Job, LentParts, ListCursor, Listed, Status};
use glimmer_proto::text::Reply;
use glimmer_proto::{Form, Verb};
use glimmer_transport::Bell;
use glimmer_transport::packet::{RxBatch, SEGMENTS_MAX};
use std::sync::Mutex;

const NOW: Moment = Moment {
    ms: 0,
    epoch_unix_ms: 0,
};

/// Answers every request with one byte, and notes which worker sent it. While it executes, the
/// busy workers take their batches home and send new requests.
struct Busy {
    busy: Vec<Arc<Mutex<Port>>>,
    /// By request, in the order of execution: the worker that sent it.
    ran: Vec<usize>,
}

/// More requests than one turn may take.
const ENDLESS: usize = 100 * FORWARD_BATCHES_PER_TURN_MAX;

impl Busy {
    fn new(busy: Vec<Arc<Mutex<Port>>>) -> Busy {
        Busy {
            busy,
            ran: Vec::new(),
        }
    }
}

impl Engine for Busy {
    fn run_with(
        &mut self,
        _: Moment,
        jobs: &[Job<'_>],
        outs: &mut [Vec<u8>],
        _: &mut LentParts,
        done: &mut [Done],
    ) {
        for (job, done) in jobs.iter().zip(done) {
            self.ran.push(usize::from(job.request.key[0]));
            outs[0].push(b'x');
            *done = Done {
                status: Status::Done,
                kind: None,
                end: outs[0].len(),
                read_bytes: 0,
            };
        }
        assert!(self.ran.len() < ENDLESS, "the turn does not end");
        for port in &self.busy {
            let mut port = port.lock().unwrap();
            let mut engine = Busy::new(Vec::new());
            drain(&mut port, &mut engine);
            send_all(&mut port);
        }
    }

    fn layout(&self) -> Layout {
        unreachable!("ports do not ask where a request belongs")
    }

    fn flush(&mut self, _: Moment, _: u64) {}

    fn list(
        &mut self,
        _: Moment,
        _: &mut ListCursor,
        _: usize,
        _: &mut dyn FnMut(&Listed<'_>),
    ) -> bool {
        false
    }

    fn expire(&mut self, _: Moment, _: &mut ListCursor, _: usize) -> Option<u64> {
        None
    }

    fn figures(&self) -> Arc<dyn Figures> {
        unimplemented!("nobody asks")
    }
}

/// Executes what came in.
fn drain(port: &mut Port, engine: &mut Busy) {
    let me = port.me;
    port.drain(|batch| {
        if batch.home() != me {
            batch.run(engine, NOW, None);
        }
    });
}

/// Sends worker 0 one request.
fn send(port: &mut Port) {
    let key = [port.me as u8];
    let tag = CompletionTag {
        asker: Asker::Datagram(0),
        slot: 0,
        client: 0,
    };
    let request = Request {
        key: &key,
        verb: Verb::Get,
        form: Form::Text(Reply::to_one(false)),
    };
    port.put(0, tag, Keyhash(0), &request);
    port.ship();
}

/// Sends worker 0 as many batches as it has credit for.
fn send_all(port: &mut Port) {
    while port.has_credit(0) {
        send(port);
    }
}

fn ports(workers: usize) -> Vec<Port> {
    let bells = (0..workers).map(|_| Arc::new(Doorbell::new(EventBell(Bell::new().unwrap()))));
    connect(&bells.collect::<Vec<_>>())
}

/// Lets every worker but the first two send one request, and the second without a pause. Returns
/// the first worker's port and its engine.
fn one_busy(workers: usize) -> (Port, Busy) {
    let mut ports = ports(workers).into_iter();
    let (mut first, mut busy) = (ports.next().unwrap(), ports.next().unwrap());
    send_all(&mut busy);
    for mut quiet in ports {
        assert!(quiet.has_credit(0));
        send(&mut quiet);
    }
    first.first = 1;
    (first, Busy::new(vec![Arc::new(Mutex::new(busy))]))
}

#[test]
fn a_turn_ends_although_a_peer_sends_without_a_pause() {
    let (mut first, mut engine) = one_busy(2);
    for turn in 1..5 {
        drain(&mut first, &mut engine);
        assert_eq!(engine.ran.len(), turn * FORWARD_BATCHES_PER_TURN_MAX);
        // The worker does not sleep before it has taken the rest.
        assert!(first.has_incoming());
    }
}

#[test]
fn a_busy_peer_does_not_starve_a_quiet_one() {
    let (mut first, mut engine) = one_busy(4);
    drain(&mut first, &mut engine);
    assert_eq!(engine.ran[..4], [1, 2, 3, 1]);
}

#[test]
fn more_busy_peers_than_a_turn_takes_boxes_have_their_turns() {
    let workers = 2 * FORWARD_BATCHES_PER_TURN_MAX + 3;
    let mut ports = ports(workers).into_iter();
    let mut first = ports.next().unwrap();
    let busy = ports.map(|mut port| {
        send_all(&mut port);
        Arc::new(Mutex::new(port))
    });
    let mut engine = Busy::new(busy.collect());
    for _ in 0..6 {
        drain(&mut first, &mut engine);
    }
    let of = |worker| engine.ran.iter().filter(|&&ran| ran == worker).count();
    for worker in 1..workers {
        let ran = of(worker);
        assert!((2..=3).contains(&ran), "worker {worker} ran {ran} times");
    }
}

/// Native datagrams of one length from one peer leave as one segment batch, as many as the kernel
/// sends at once. They need credit like any request, and wait for none.
#[test]
fn native_datagrams_travel_in_segment_batches() {
    let mut ports = ports(2);
    let peer = SocketAddr::from(([127, 0, 0, 1], 9000));
    let mut put = |bytes: usize| ports[1].put_datagram(0, 3, peer, &vec![7; bytes], 40);
    let count = 2 * SEGMENTS_MAX;
    assert!((0..count).all(|_| put(40)) && put(9) && put(40));
    ports[1].ship();
    let mut received = RxBatch::default();
    let mut came = Vec::new();
    ports[0].drain(|batch| {
        assert!(batch.has_datagrams());
        assert_eq!((batch.home(), batch.source()), (1, 3));
        batch.unload(&mut received);
        came.extend((0..received.count()).map(|index| received.bytes(index).len()));
    });
    assert_eq!(came, [40 * SEGMENTS_MAX, 40 * SEGMENTS_MAX, 9, 40]);
    let is_home = |port: &mut Port| {
        port.drain(|batch| batch.take_replies(|_, _, _| panic!("nobody waits for it")));
        port.take_freed()
    };
    assert!(is_home(&mut ports[1]));
    let mut fits = 0;
    while ports[1].put_datagram(0, 3, peer, &[7; 1_400], 1_400) {
        fits += 1;
    }
    let expected = FORWARD_BATCHES_PER_PEER * (FORWARD_DATAGRAM_BYTES_MAX / 1_400);
    assert_eq!(fits, expected);
    assert!(!ports[1].has_credit(0), "requests need credit as well");
    ports[1].ship();
    ports[0].drain(|_| {});
    assert!(is_home(&mut ports[1]) && ports[1].has_credit(0));
}
