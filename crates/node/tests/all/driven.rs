//! Workers without threads and sockets: a caller decides who takes a turn, and what time it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Access, Admin, Habits, config, engines};
use glimmer_base::Moment;
use glimmer_base::limits::{
    AWAKE_BYTES_MIN, AWAKE_IDLE_TURNS_MAX, BUFFERS_KEPT_PART, BURST_EXPECTED_BYTES_MAX,
    DISPATCH_EPOCH_MS, EPOCH_REQUESTS_MIN, LARGE_BUFFER_IDLE_MS, SHORT_SLEEP_NS,
};
use glimmer_dispatch::{Settings, SizeAware};
use glimmer_node::{Clock, Devices, DrivenNode, DrivenWorker, NodeConfig, Rest};
use glimmer_proto::Accepts;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// A clock that the test moves.
#[derive(Debug, Default)]
struct TestClock(AtomicU64, CpuTime);

/// What the clock tells about time that workers use.
#[derive(Debug, Default)]
struct CpuTime {
    /// Milliseconds by which the nanoseconds go on each time that they are asked for.
    step_ms: AtomicU64,
    stepped_ms: AtomicU64,
    /// CPU time of each worker in milliseconds.
    cpu_ms: AtomicU64,
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.0.load(Ordering::Relaxed),
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        0
    }

    fn ns(&self) -> u64 {
        let step_ms = self.1.step_ms.load(Ordering::Relaxed);
        let stepped_ms = self.1.stepped_ms.fetch_add(step_ms, Ordering::Relaxed);
        (self.now().ms + stepped_ms) * 1_000_000
    }

    fn cpu_ns(&self, _: usize, thread: u32) -> Option<u64> {
        assert_eq!(thread, 0, "driven workers have no threads");
        Some(self.1.cpu_ms.load(Ordering::Relaxed) * 1_000_000)
    }
}

/// Two workers of which each owns its keys, and the first one's listener.
fn two_workers(config: NodeConfig) -> (DrivenNode, LocalListener) {
    workers(2, config)
}

fn workers(count: usize, config: NodeConfig) -> (DrivenNode, LocalListener) {
    workers_with(count, config, Habits::EREW)
}

fn workers_with(count: usize, config: NodeConfig, habits: Habits) -> (DrivenNode, LocalListener) {
    let listener = LocalListener::new(SocketAddr::from(([10, 0, 0, 1], 1)));
    let mut devices: Vec<_> = (0..count).map(|_| Devices::default()).collect();
    let at_listener: Box<LocalListener> = Box::new(listener.clone());
    devices[0].listeners.push((at_listener, Accepts::Any));
    let engines = engines(count, habits);
    let node = DrivenNode::new(config, devices, engines, Arc::new(Admin)).unwrap();
    (node, listener)
}

fn connect(listener: &LocalListener, seed: u64) -> LocalStream {
    let faults = StreamFaults {
        short_read: 0.5,
        short_write: 0.5,
        ..StreamFaults::default()
    };
    listener.connect(SocketAddr::from(([10, 0, 0, 2], 1)), faults, seed)
}

/// Sends bytes, and lets workers that are called take turns until none is.
fn send(node: &mut DrivenNode, stream: &mut LocalStream, mut bytes: &[u8]) -> Vec<u8> {
    let mut replies = Vec::new();
    loop {
        replies.reserve(4096);
        match stream.send(bytes) {
            Sent::All => bytes = &[],
            Sent::Part(count) => bytes = &bytes[count..],
            Sent::Failed => panic!("the server closed the connection"),
        }
        let mut is_idle = true;
        for worker in &mut node.workers {
            if worker.rest() == Rest::Busy || worker.is_called() {
                worker.turn();
                is_idle = false;
            }
        }
        is_idle &= stream.receive(&mut replies) == Received::Drained(0);
        if is_idle && bytes.is_empty() && !stream.ready().readable {
            return replies;
        }
    }
}

#[test]
fn workers_take_turns_on_one_thread() {
    let (mut node, listener) = two_workers(config());
    for seed in 0..20 {
        let mut stream = connect(&listener, seed);
        let (mut requests, mut expected) = (String::new(), String::new());
        for key in 0..20 {
            requests += &format!("set key{key} 0 0 1\r\nx\r\nget key{key}\r\n");
            expected += &format!("STORED\r\nVALUE key{key} 0 1\r\nx\r\nEND\r\n");
        }
        let replies = send(&mut node, &mut stream, requests.as_bytes());
        assert_eq!(String::from_utf8(replies).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn a_worker_tells_how_long_it_would_sleep() {
    let clock = Arc::new(TestClock::default());
    let mut config = config();
    config.clock = clock.clone();
    config.idle_timeout = Some(Duration::from_secs(5));
    let (mut node, listener) = two_workers(config);
    assert_eq!(node.workers[1].rest(), Rest::Asleep(None));
    let mut stream = connect(&listener, 1);
    send(&mut node, &mut stream, b"get key\r\n");
    let second = Rest::Asleep(Some(Duration::from_secs(1)));
    assert!(
        node.workers
            .iter_mut()
            .any(|worker| worker.rest() == second)
    );
    // Nothing but time passes until the connection has been idle for too long.
    clock.0.store(5_000, Ordering::Relaxed);
    node.workers.iter_mut().for_each(|worker| _ = worker.turn());
    assert!(stream.ready().hung_up);
}

/// Buffers that grew for large values are kept for the next ones, up to a bound, and are freed when
/// nothing has used them for a while. The worker sleeps without a limit again then.
#[test]
fn large_buffers_are_kept_while_they_are_used() {
    const VALUE_BYTES: usize = 100 << 10;
    const CLIENTS: u64 = 100;
    let clock = Arc::new(TestClock::default());
    let mut config = config();
    config.clock = clock.clone();
    config.buffer_bytes = 8 << 20;
    let kept_bytes_max = (2 * config.buffer_bytes / BUFFERS_KEPT_PART) as u64;
    let (mut node, listener) = two_workers(config);
    let figures = node.figures();
    let unused = || {
        let free = |tally: &glimmer_node::Tally| tally.buffer_bytes_free;
        figures.tallies().iter().map(free).max().unwrap()
    };

    let value = "v".repeat(VALUE_BYTES);
    let set = format!("set key 0 0 {VALUE_BYTES}\r\n{value}\r\n");
    let mut streams: Vec<_> = (0..CLIENTS).map(|seed| connect(&listener, seed)).collect();
    for stream in &mut streams {
        assert_eq!(send(&mut node, stream, set.as_bytes()), b"STORED\r\n");
        assert!(unused() >= VALUE_BYTES as u64, "the receive buffer is kept");
        let reply = send(&mut node, stream, b"get key\r\n");
        assert_eq!(
            reply.len(),
            VALUE_BYTES + "VALUE key 0 102400\r\n\r\nEND\r\n".len()
        );
        assert!(unused() >= VALUE_BYTES as u64, "the reply buffer is kept");
    }
    assert!(unused() <= kept_bytes_max);

    // All at once, each with most of a value: together they have more buffers than are kept.
    for stream in &mut streams[..40] {
        send(&mut node, stream, &set.as_bytes()[..VALUE_BYTES - 1]);
    }
    for stream in &mut streams[..40] {
        let stored = send(&mut node, stream, &set.as_bytes()[VALUE_BYTES - 1..]);
        assert_eq!(stored, b"STORED\r\n");
        assert!(unused() <= kept_bytes_max, "{} bytes", unused());
    }

    let second = Rest::Asleep(Some(Duration::from_secs(1)));
    assert!(
        node.workers
            .iter_mut()
            .any(|worker| worker.rest() == second)
    );
    let before = unused();
    // Time passes, second by second.
    for ms in (1_000..=2 * LARGE_BUFFER_IDLE_MS + 2_000).step_by(1_000) {
        clock.0.store(ms, Ordering::Relaxed);
        node.workers.iter_mut().for_each(|worker| _ = worker.turn());
    }
    println!("{before} bytes were unused, now {}", unused());
    assert!(before >= VALUE_BYTES as u64 + unused());
    assert!(
        unused() < VALUE_BYTES as u64,
        "those that are not large may be kept"
    );
    assert!((node.workers.iter_mut()).all(|worker| worker.rest() == Rest::Asleep(None)));
}

/// A burst ends when it has much to store or to send, so that neither leaves the core's cache
/// before, and a turn has several such bursts.
#[test]
fn large_requests_and_large_replies_end_a_burst() {
    const CLIENTS: usize = 8;
    for value_bytes in [10 << 10, 100 << 10] {
        let mut config = config();
        config.buffer_bytes = 16 << 20;
        let (mut node, listener) = workers(1, config);
        let figures = node.figures();
        let batches = || figures.tallies()[0].batches as usize;

        let value = "v".repeat(value_bytes);
        let set = format!("set key 0 0 {value_bytes}\r\n{value}\r\n");
        let clients = 0..CLIENTS as u64;
        let calm = StreamFaults::default();
        let from = SocketAddr::from(([10, 0, 0, 2], 1));
        let connect = |seed| listener.connect(from, calm, seed);
        let mut streams: Vec<_> = clients.map(connect).collect();
        let (most, last) = set.as_bytes().split_at(set.len() - 1);
        for stream in &mut streams {
            assert_eq!(send(&mut node, stream, most), b"");
        }
        let before = batches();
        for stream in &mut streams {
            assert_eq!(stream.send(last), Sent::All);
        }
        for stream in &mut streams {
            assert_eq!(send(&mut node, stream, b""), b"STORED\r\n");
        }
        // Values of which one is large are stored one at a time; their lengths are known.
        let is_large = value_bytes > BURST_EXPECTED_BYTES_MAX;
        let bursts = if is_large { CLIENTS } else { 1 };
        assert_eq!(batches() - before, bursts, "{value_bytes} bytes stored");

        for stream in &mut streams {
            send(&mut node, stream, b"get key\r\n");
        }
        let before = batches();
        for stream in &mut streams {
            assert_eq!(stream.send(b"get key\r\n"), Sent::All);
        }
        let worker = &mut node.workers[0];
        worker.rest();
        worker.turn();
        // No reply but the first crosses the limit.
        let at_a_time = (BURST_EXPECTED_BYTES_MAX / value_bytes).max(1);
        let bursts = CLIENTS.div_ceil(at_a_time);
        assert_eq!(
            batches() - before,
            bursts,
            "{value_bytes} bytes, in one turn"
        );
        for stream in &mut streams {
            let reply = send(&mut node, stream, b"");
            assert!(reply.len() > value_bytes && reply.ends_with(b"END\r\n"));
        }
    }
}

#[test]
fn a_worker_that_is_woken_soon_after_large_requests_sleeps_later() {
    let clock = Arc::new(TestClock::default());
    let mut config = config();
    config.clock = clock.clone();
    let (mut node, listener) = workers(1, config);
    let from = SocketAddr::from(([10, 0, 0, 2], 1));
    let mut stream = listener.connect(from, StreamFaults::default(), 1);
    let value = "v".repeat(AWAKE_BYTES_MIN);
    let set = format!("set key 0 0 {AWAKE_BYTES_MIN}\r\n{value}\r\n");
    send(&mut node, &mut stream, set.as_bytes());
    // Wakes the worker after a time. Returns how many idle turns it takes after the request.
    let mut idle_turns_after = |request: &[u8], slept_ms| {
        let worker = &mut node.workers[0];
        assert!(matches!(worker.rest(), Rest::Asleep(_)));
        clock.0.fetch_add(slept_ms, Ordering::Relaxed);
        stream.send(request);
        worker.turn();
        stream.receive(&mut Vec::with_capacity(2 * AWAKE_BYTES_MIN));
        let is_busy = |worker: &mut DrivenWorker| worker.rest() == Rest::Busy;
        std::iter::from_fn(|| is_busy(worker).then(|| worker.turn())).count()
    };
    let (large, idle_turns) = (b"get key\r\n", AWAKE_IDLE_TURNS_MAX as usize);
    let long_ms = SHORT_SLEEP_NS.div_ceil(1_000_000) + 1;
    assert_eq!(idle_turns_after(large, long_ms), 0);
    assert_eq!(idle_turns_after(large, long_ms), 0, "after a long sleep");
    assert_eq!(
        idle_turns_after(large, 0),
        idle_turns,
        "after a short sleep"
    );
    assert_eq!(idle_turns_after(b"get none\r\n", 0), 0);
    assert_eq!(
        idle_turns_after(large, 0),
        idle_turns,
        "small requests change nothing"
    );
    assert_eq!(idle_turns_after(large, 0), 0, "it was in vain twice");
    assert_eq!(idle_turns_after(large, 0), idle_turns);
    for _ in 0..2 {
        assert_eq!(idle_turns_after(large, 0), 0, "it was in vain once more");
    }
    assert_eq!(idle_turns_after(large, 0), idle_turns);
    assert_eq!(idle_turns_after(large, long_ms), 0);
}

/// Values of this many bytes are large before the first epoch.
const LARGE_MIN: u32 = 64;

/// A size-aware server of two workers, its clock, and a connection of the first worker, which
/// serves small requests.
fn size_aware() -> (DrivenNode, Arc<TestClock>, LocalStream) {
    let clock = Arc::new(TestClock::default());
    let mut config = config();
    config.clock = clock.clone();
    config.dispatch = Arc::new(SizeAware::with(Settings {
        large_min: LARGE_MIN,
        ..Settings::DEFAULT
    }));
    let habits = Habits {
        access: Access::Crcw,
        ..Habits::EREW
    };
    let (node, listener) = workers_with(2, config, habits);
    let from = SocketAddr::from(([10, 0, 0, 2], 1));
    let stream = listener.connect(from, StreamFaults::default(), 1);
    (node, clock, stream)
}

/// Stores this many values of this many bytes. Returns how often the connection visited
/// the other worker.
fn store(node: &mut DrivenNode, stream: &mut LocalStream, count: u64, bytes: u32) -> u64 {
    let visits = |node: &DrivenNode| -> u64 {
        let tallies = node.figures().tallies();
        tallies.iter().map(|tally| tally.visits).sum()
    };
    let before = visits(node);
    let value = "v".repeat(bytes as usize);
    let request = format!("set key 0 0 {bytes}\r\n{value}\r\n");
    for _ in 0..count {
        assert_eq!(send(node, stream, request.as_bytes()), b"STORED\r\n");
    }
    visits(node) - before
}

#[test]
fn the_plan_follows_the_requests_of_the_last_epoch() {
    let (mut node, clock, mut stream) = size_aware();
    let bytes = LARGE_MIN;
    assert_eq!(store(&mut node, &mut stream, 5, bytes - 1), 0);
    assert_eq!(
        store(&mut node, &mut stream, EPOCH_REQUESTS_MIN, bytes),
        EPOCH_REQUESTS_MIN
    );
    clock.0.store(DISPATCH_EPOCH_MS - 1, Ordering::Relaxed);
    assert_eq!(
        store(&mut node, &mut stream, 1, bytes),
        1,
        "the epoch is not over"
    );
    clock.0.store(DISPATCH_EPOCH_MS, Ordering::Relaxed);
    assert_eq!(
        store(&mut node, &mut stream, 1, bytes),
        0,
        "all values have one size"
    );
    assert_eq!(store(&mut node, &mut stream, 1, 4 * bytes), 1);
}

/// A large request takes a twenty-fifth of an epoch here. In the epochs in which they keep their
/// worker busy, connections are at home with the other one only.
#[test]
fn connections_leave_a_worker_that_large_requests_keep_busy() {
    let (mut node, clock, mut stream) = size_aware();
    clock
        .1
        .step_ms
        .store(DISPATCH_EPOCH_MS / 25, Ordering::Relaxed);
    let mut epoch = 0;
    let mut spend = |node: &mut DrivenNode, large| {
        store(node, &mut stream, EPOCH_REQUESTS_MIN, 1);
        assert_eq!(store(node, &mut stream, large, 1_000), large);
        epoch += 1;
        clock.0.store(epoch * DISPATCH_EPOCH_MS, Ordering::Relaxed);
        // Small ones cost a tenth of each worker's time.
        let cpu_ms = epoch * DISPATCH_EPOCH_MS / 10;
        clock.1.cpu_ms.store(cpu_ms, Ordering::Relaxed);
        store(node, &mut stream, 1, 1);
        let plan = node.figures().dispatch().unwrap().plan;
        assert!(plan.is_home(0));
        plan.is_home(1)
    };
    assert!(spend(&mut node, 9), "nothing is known of the time before");
    assert!(spend(&mut node, 1));
    assert!(!spend(&mut node, 6));
    assert!(!spend(&mut node, 4), "they are not far fewer");
    assert!(spend(&mut node, 1));
    assert!(!spend(&mut node, 9));
}

#[test]
fn few_requests_keep_the_plan() {
    let (mut node, clock, mut stream) = size_aware();
    let (few, bytes) = (EPOCH_REQUESTS_MIN - 1, LARGE_MIN);
    for epoch in 1..3 {
        assert_eq!(store(&mut node, &mut stream, few, bytes), few);
        clock.0.store(epoch * DISPATCH_EPOCH_MS, Ordering::Relaxed);
    }
}

#[test]
fn an_idle_server_has_no_timer_for_epochs() {
    let (mut node, _, mut stream) = size_aware();
    store(&mut node, &mut stream, 5, LARGE_MIN);
    for worker in &mut node.workers {
        assert_eq!(worker.rest(), Rest::Asleep(None));
    }
}
