//! Steps of a request that a running server does not show alone, measured in this process.

use std::{
    hint::black_box,
    io::ErrorKind,
    net::{Ipv4Addr, UdpSocket},
    thread::yield_now,
    time::Instant,
};

use anyhow::{Result, ensure};
use glimmer_base::sync::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};
use glimmer_dispatch::Histogram;
use glimmer_measure::{
    machine::{self, SERVER_CORE},
    stats::Spread,
};
use glimmer_node::forward::{mailbox::Mailbox, ring::ring};

use crate::{Run, calibration::Steps};

/// Requests of a batch.
const BATCH: usize = 32;
const REQUEST_BYTES: usize = 40;
/// Places of a software queue.
const QUEUE: usize = 512;

/// What moves from core to core for a request: a cache line.
type Moved = [u64; 8];

/// Measures each step several times, and takes the medians.
pub fn measure(run: &Run<'_>) -> Result<Steps> {
    let rounds = run.pick(15, 2);
    let median = |measure: &dyn Fn() -> Result<f64>| -> Result<f64> {
        let times = (0..rounds).map(|_| measure()).collect::<Result<Vec<_>>>()?;
        Ok(Spread::of(&times).median)
    };
    let count = run.pick(400_000, 2000);
    let batches = count / BATCH;
    let poll_ns = median(&|| poll(count))?;
    let put_ns = median(&|| Ok(hand_over(batches)?.put_ns))?;
    let take_ns = median(&|| Ok(hand_over(batches)?.take_ns))?;
    let by_any_ns = median(&|| Ok(take_by_any(batches)?.take_ns))?;
    Ok(Steps {
        poll_ns,
        receive_ns: (median(&|| receive(batches))? - poll_ns).max(0.0),
        put_ns,
        take_ns,
        steal_ns: (by_any_ns - take_ns).max(0.0),
        profile_ns: median(&|| Ok(profile(count)))?,
    })
}

fn each_ns(begin: Instant, count: usize) -> f64 {
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    socket.connect(socket.local_addr()?)?;
    Ok(socket)
}

fn poll(count: usize) -> Result<f64> {
    let socket = socket()?;
    let mut buffer = [0; REQUEST_BYTES];
    let begin = Instant::now();
    for _ in 0..count {
        let error = socket.recv(&mut buffer).expect_err("nothing was sent");
        ensure!(error.kind() == ErrorKind::WouldBlock, "{error}");
    }
    Ok(each_ns(begin, count))
}

/// The time of a datagram that waits, in a batch of them.
fn receive(batches: usize) -> Result<f64> {
    let socket = socket()?;
    let mut buffer = [0; REQUEST_BYTES];
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        for _ in 0..BATCH {
            socket.send(&buffer)?;
        }
        let begin = Instant::now();
        for _ in 0..BATCH {
            socket.recv(&mut buffer)?;
        }
        times.push(each_ns(begin, BATCH));
    }
    Ok(Spread::of(&times).median)
}

/// The times of putting a value and of taking it, in nanoseconds.
struct Both {
    put_ns: f64,
    take_ns: f64,
}

/// Two threads on the first two cores put a batch and take it, in turn. So each of them finds cache
/// lines that the other has changed, and none waits while its time counts.
fn in_turn(batches: usize, put: impl FnMut() + Send, take: impl FnMut() + Send) -> Result<Both> {
    let turn = AtomicUsize::new(0);
    let other = (machine::cores() > 1).then_some(SERVER_CORE + 1);
    std::thread::scope(|scope| {
        let producer =
            scope.spawn(|| machine::on_core(other, || each_turn(&turn, 0, batches, put)));
        let take_ns = machine::on_core(Some(SERVER_CORE), || each_turn(&turn, 1, batches, take))?;
        let put_ns = producer.join().expect("it does not panic")?;
        Ok(Both { put_ns, take_ns })
    })
}

/// Runs a batch in every second turn, beginning with `first`. Returns the median time of a step.
fn each_turn(turn: &AtomicUsize, first: usize, batches: usize, mut step: impl FnMut()) -> f64 {
    let mut times = Vec::with_capacity(batches);
    for batch in 0..batches {
        let mine = 2 * batch + first;
        while turn.load(Acquire) != mine {
            yield_now();
        }
        let begin = Instant::now();
        (0..BATCH).for_each(|_| step());
        times.push(each_ns(begin, BATCH));
        turn.store(mine + 1, Release);
    }
    Spread::of(&times).median
}

/// The ring between two cores.
fn hand_over(batches: usize) -> Result<Both> {
    let (mut producer, mut consumer) = ring::<Moved>(QUEUE);
    let put = || {
        let _ = black_box(producer.push(black_box([1; 8])));
    };
    let take = || {
        black_box(consumer.pop());
    };
    in_turn(batches, put, take)
}

/// A queue from which any core may take.
fn take_by_any(batches: usize) -> Result<Both> {
    let queue = Mailbox::<Moved>::for_each(1).pop().expect("one");
    let take = || {
        black_box(queue.take());
    };
    in_turn(batches, || queue.put(black_box([1; 8])), take)
}

fn profile(count: usize) -> f64 {
    let mut histogram = Histogram::default();
    let begin = Instant::now();
    for place in 0..count {
        histogram.record(black_box((place as u32).wrapping_mul(0x9E37_79B9) >> 12));
    }
    let spent = each_ns(begin, count);
    black_box(histogram);
    spent
}
