//! Tests for every packet device.

mod support;

use glimmer_base::limits::PACKET_BATCH_MAX;
use glimmer_transport::Poller;
use glimmer_transport::packet::{Message, PacketDevice, RxBatch, TxBatch, Wakeup};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use support::{Datagram, Pair, devices, longest};

/// Time that a device under test may take to deliver a packet.
const PATIENCE: Duration = Duration::from_secs(20);

/// Receives datagrams until there are this many, each with its sender.
fn receive(device: &mut dyn PacketDevice, batch: &mut RxBatch, count: usize) -> Vec<Datagram> {
    let deadline = Instant::now() + PATIENCE;
    let mut received = Vec::new();
    while received.len() < count {
        let segment_batches = device.receive(batch);
        assert_eq!(segment_batches, batch.count());
        for index in 0..segment_batches {
            let (peer, bytes) = (batch.peer(index), batch.bytes(index));
            let size = batch.segment_bytes(index);
            assert_eq!(batch.datagrams(index), bytes.chunks(size).count().max(1));
            let datagrams = batch.segments(index);
            received.extend(datagrams.map(|one| (peer, one.to_vec())));
        }
        assert!(Instant::now() < deadline, "{} of {count}", received.len());
        std::thread::yield_now();
    }
    received
}

fn pattern(random: &mut SmallRng, bytes: usize) -> Vec<u8> {
    let mut pattern = vec![0; bytes];
    random.fill(&mut pattern[..]);
    pattern
}

#[test]
fn what_is_sent_arrives_as_it_was_sent() {
    let seed = glimmer_seeds::seed();
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let (from, to) = (one.address().unwrap(), other.address().unwrap());
        let mut batch = RxBatch::default();
        assert_eq!(other.receive(&mut batch), 0, "{name}: nothing was sent");
        let mut random = SmallRng::seed_from_u64(seed);
        for round in 0..100 {
            let mut expected = Vec::new();
            let messages: Vec<(Option<[u8; 8]>, Vec<u8>, usize)> = (0..random.random_range(1..40))
                .map(|_| match random.random_bool(0.5) {
                    true => {
                        let bytes = random.random_range(0..1500.min(longest(&name)));
                        let header = random.random_bool(0.5).then(|| random.random());
                        let payload = pattern(&mut random, bytes);
                        let whole = header.iter().flatten().chain(&payload).copied();
                        expected.push((from, whole.collect()));
                        (header, payload, bytes)
                    }
                    false => {
                        let size = random.random_range(1..300);
                        let bytes = random.random_range(1..8 * size);
                        let payload = pattern(&mut random, bytes);
                        expected.extend(payload.chunks(size).map(|one| (from, one.to_vec())));
                        (None, payload, size)
                    }
                })
                .collect();
            let mut out = TxBatch::new(&mut *one);
            for (header, payload, size) in &messages {
                out.push(match header {
                    Some(header) => Message::framed(to, *header, payload),
                    None => Message::segments(to, payload, *size),
                });
            }
            let transmitted = out.finish();
            let bytes: usize = expected.iter().map(|(_, bytes)| bytes.len()).sum();
            assert_eq!(transmitted.datagrams, expected.len() as u64, "{name}");
            assert_eq!((transmitted.bytes, transmitted.lost), (bytes as u64, 0));
            let received = receive(&mut *other, &mut batch, expected.len());
            assert!(received == expected, "{name}, seed {seed}, round {round}");
        }
    }
}

#[test]
fn replies_are_written_over_requests() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let to = other.address().unwrap();
        let mut batch = RxBatch::default();
        // Requests of ten bytes, the last of six, and a single one.
        let payload: Vec<u8> = (0..36).collect();
        one.send(&[
            Message::segments(to, &payload, 10),
            Message::alone(to, b"header"),
        ]);
        let mut left = 5;
        while left > 0 {
            for index in 0..other.receive(&mut batch) {
                let bytes = batch.bytes_mut(index);
                bytes.iter_mut().for_each(|byte| *byte ^= 0xFF);
                // The last reply is shorter than its request.
                let bytes = bytes.len();
                left -= batch.datagrams(index);
                batch.truncate(index, bytes - 2);
            }
            let count = batch.count() as u64;
            assert!(other.send_back(&mut batch).datagrams >= count, "{name}");
            assert_eq!(batch.count() as u64, count, "{name}: senders stay");
        }
        let received = receive(&mut *one, &mut batch, 5);
        assert!(received.iter().all(|(from, _)| *from == to), "{name}");
        let bytes = |from: &[u8]| from.iter().map(|byte| byte ^ 0xFF).collect::<Vec<_>>();
        let all: Vec<u8> = received.iter().flat_map(|(_, one)| one.clone()).collect();
        let together = [bytes(&payload[..34]), bytes(b"head")].concat();
        // If the requests arrived separately, each reply is shorter.
        let pieces = payload.chunks(10).map(|one| bytes(&one[..one.len() - 2]));
        let apart = [pieces.collect::<Vec<_>>().concat(), bytes(b"head")].concat();
        assert!(all == together || all == apart, "{name}: {all:?}");
    }
}

/// A batch that was filled by pushing is sent back like a received one.
#[test]
fn what_another_worker_received_is_sent_back() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let mut batch = RxBatch::with_slots(64);
        batch.push(one.address().unwrap(), b"first,secon", 6);
        batch.push(one.address().unwrap(), b"", 1);
        assert_eq!(other.send_back(&mut batch).datagrams, 2, "{name}");
        let received = receive(&mut *one, &mut RxBatch::default(), 2);
        let from = other.address().unwrap();
        let expected = [(from, b"first,".to_vec()), (from, b"secon".to_vec())];
        assert_eq!(received, expected, "{name}");
    }
}

#[test]
fn one_call_brings_a_batch_at_most_and_the_next_the_rest() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let to = other.address().unwrap();
        let lengths: Vec<usize> = (0..PACKET_BATCH_MAX + 7).map(|n| 1 + n % 2 * n).collect();
        let payload = [9; 100];
        let mut out = TxBatch::new(&mut *one);
        for &length in &lengths {
            out.push(Message::alone(to, &payload[..length]));
        }
        assert_eq!(out.finish().datagrams, lengths.len() as u64);
        let mut batch = RxBatch::default();
        let received = receive(&mut *other, &mut batch, lengths.len());
        let received: Vec<usize> = received.iter().map(|(_, one)| one.len()).collect();
        assert_eq!(received, lengths, "{name}");
        assert_eq!(other.receive(&mut batch), 0, "{name}");
    }
}

#[test]
fn the_longest_and_the_shortest_datagram_fit() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let (from, to) = (one.address().unwrap(), other.address().unwrap());
        let longest = vec![7; longest(&name)];
        one.send(&[
            Message::alone(to, &longest),
            Message::alone(to, &[]),
            Message::alone(to, b"x"),
        ]);
        let mut received = receive(&mut *other, &mut RxBatch::default(), 3);
        let mut expected = [longest, Vec::new(), b"x".to_vec()].map(|bytes| (from, bytes));
        // What travels in pieces may arrive later.
        received.sort();
        expected.sort();
        assert!(received == expected, "{name}");
    }
}

#[test]
fn one_batch_serves_several_devices() {
    for (name, make) in devices() {
        let mut pairs = [make(), make()];
        let mut batch = RxBatch::default();
        for round in 0..100u8 {
            for (number, Pair { one, other }) in pairs.iter_mut().enumerate() {
                let payload = [round, number as u8];
                one.send(&[Message::alone(other.address().unwrap(), &payload)]);
                let received = receive(&mut **other, &mut batch, 1);
                assert_eq!(received[0].1, payload, "{name}");
                // Sometimes the buffers are returned before the next device uses the batch.
                if round % 2 == 0 {
                    batch.clear();
                }
            }
        }
    }
}

#[test]
fn another_thread_sends_from_the_same_address() {
    for (name, make) in devices() {
        let Pair { one, mut other } = make();
        let (from, to) = (one.address().unwrap(), other.address().unwrap());
        let mut twin = one.twin();
        let sender = std::thread::spawn(move || {
            let mut batch = RxBatch::with_slots(64);
            batch.push(to, b"sent back", 9);
            twin.send(&[Message::alone(to, b"by a twin")]).datagrams
                + twin.send_back(&mut batch).datagrams
        });
        assert_eq!(sender.join().unwrap(), 2, "{name}");
        let received = receive(&mut *other, &mut RxBatch::default(), 2);
        let expected = [&b"by a twin"[..], b"sent back"].map(|one| (from, one.to_vec()));
        assert_eq!(received, expected, "{name}");
    }
}

#[test]
fn a_device_wakes_its_worker_or_says_that_it_does_not() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let mut poller = match other.wakeup() {
            Wakeup::Signal(_) => Poller::local(8),
            _ => Poller::new(8).unwrap(),
        };
        let watches = !matches!(other.wakeup(), Wakeup::Poll);
        assert_eq!(poller.watch_level(other.wakeup(), 7).is_ok(), watches);
        let mut is_woken = |patience| {
            poller.wait(Some(patience)).unwrap();
            (0..poller.ready_count()).any(|index| poller.ready(index).token == 7)
        };
        assert!(!is_woken(Duration::ZERO), "{name}");
        let to = other.address().unwrap();
        one.send(&[Message::alone(to, b"wake up"); 2]);
        assert_eq!(
            is_woken(PATIENCE / if watches { 1 } else { 1000 }),
            watches,
            "{name}"
        );
        receive(&mut *other, &mut RxBatch::default(), 2);
        assert!(!is_woken(Duration::ZERO), "{name}");
    }
}

#[test]
fn a_peer_that_is_gone_costs_others_nothing() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let to = other.address().unwrap();
        // No device gets this port: that of one that was closed may be another test's by now.
        let gone = SocketAddr::new(to.ip(), u16::MAX);
        for _ in 0..3 {
            one.send(&[Message::alone(gone, b"nobody")]);
        }
        let messages = [gone, to, gone, to].map(|to| Message::alone(to, b"somebody"));
        let mut arrived = 0;
        while arrived < 2 {
            // A pending error of an earlier datagram may cost one message.
            one.send(&messages);
            arrived += receive(&mut *other, &mut RxBatch::default(), 1).len();
        }
        assert!(arrived >= 2, "{name}");
    }
}

/// Each datagram is received by one of two twins, whichever asks first.
#[test]
fn twins_receive_from_one_queue() {
    for (name, make) in devices() {
        let Pair { mut one, mut other } = make();
        let to = other.address().unwrap();
        let mut twin = other.twin();
        assert_eq!(twin.address().unwrap(), to, "{name}");
        let payloads: Vec<[u8; 1]> = (0..40).map(|number| [number]).collect();
        for payload in &payloads {
            one.send(&[Message::alone(to, payload)]);
        }
        let mut batch = RxBatch::default();
        batch.bound(3);
        let mut received = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while received.len() < payloads.len() {
            for device in [&mut other, &mut twin] {
                assert!(device.receive(&mut batch) <= 3, "{name}");
                for index in 0..batch.count() {
                    received.extend(batch.segments(index).map(<[u8]>::to_vec));
                }
            }
            assert!(Instant::now() < deadline, "{name}: {}", received.len());
        }
        assert!(received.iter().eq(payloads.iter()), "{name}: {received:?}");
        drop(other);
        one.send(&[Message::alone(to, b"x")]);
        assert_eq!(next_of(&mut *twin), [b"x".to_vec()], "{name}");
    }
}

/// The next datagram.
fn next_of(device: &mut dyn PacketDevice) -> Vec<Vec<u8>> {
    let received = receive(device, &mut RxBatch::default(), 1);
    received.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Of two pollers, one at least is told of what arrives, and both of what waits when they begin to
/// watch.
#[test]
fn pollers_share_a_device() {
    for (name, make) in devices() {
        let Pair { mut one, other } = make();
        let mut twin = other.twin();
        if matches!(other.wakeup(), Wakeup::Poll) {
            continue;
        }
        let mut pollers = [0, 1].map(|_| match other.wakeup() {
            Wakeup::Signal(_) => Poller::local(8),
            _ => Poller::new(8).unwrap(),
        });
        let wakeups = [other.wakeup(), twin.wakeup()];
        for (poller, wakeup) in pollers.iter().zip(wakeups) {
            poller.watch_shared(wakeup, 7).unwrap();
        }
        let told = |pollers: &mut [Poller; 2]| {
            pollers.each_mut().map(|poller| {
                poller.wait(Some(Duration::ZERO)).unwrap();
                poller.ready_count() == 1 && poller.ready(0).token == 7
            })
        };
        assert_eq!(told(&mut pollers), [false, false], "{name}");
        one.send(&[Message::alone(other.address().unwrap(), b"x")]);
        let deadline = Instant::now() + PATIENCE;
        while !told(&mut pollers).contains(&true) {
            assert!(Instant::now() < deadline, "{name}");
        }
        // Who begins to watch is told of what waits already.
        for (poller, wakeup) in pollers.iter().zip([other.wakeup(), twin.wakeup()]) {
            poller.forget(wakeup).unwrap();
            poller.watch_shared(wakeup, 7).unwrap();
        }
        assert_eq!(told(&mut pollers), [true, true], "{name}");
        assert_eq!(twin.receive(&mut RxBatch::default()), 1);
        assert_eq!(told(&mut pollers), [false, false], "{name}");
    }
}

/// Of two pollers that watch a socket, the kernel passes over the one that is not waiting.
#[test]
fn who_waits_is_woken() {
    for (name, make) in devices() {
        let Pair { mut one, other } = make();
        if other.wakeup().descriptor().is_none() {
            continue;
        }
        let twin = other.twin();
        let busy = Poller::new(8).unwrap();
        let mut waiting = Poller::new(8).unwrap();
        busy.watch_shared(other.wakeup(), 7).unwrap();
        waiting.watch_shared(twin.wakeup(), 7).unwrap();
        let to = other.address().unwrap();
        for _ in 0..20 {
            std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    waiting.wait(Some(PATIENCE)).unwrap();
                    waiting.ready_count()
                });
                one.send(&[Message::alone(to, b"x")]);
                assert_eq!(sleeper.join().unwrap(), 1, "{name}");
            });
            let mut twin = twin.twin();
            receive(&mut *twin, &mut RxBatch::default(), 1);
        }
    }
}
