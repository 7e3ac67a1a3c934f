//! Watchers that do not read: what they cost the others, and when they are closed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::{Admin, Habits, config, engines};
use glimmer_base::Moment;
use glimmer_base::limits::{WATCH_BYTES_MAX, WATCH_FULL_MS_MAX, WATCHERS_MAX};
use glimmer_node::{Clock, Devices, DrivenNode, Observers, Rest};
use glimmer_proto::Accepts;
use glimmer_transport::stream::{ByteStream, LocalListener, LocalStream, StreamFaults};
use glimmer_transport::{Received, Sent};

/// A clock that the test moves, in milliseconds. It counts how often the time of day is asked for:
/// once for each line about an event.
#[derive(Debug, Default)]
struct TestClock {
    ms: AtomicU64,
    lines: AtomicU64,
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment {
            ms: Moment::EPOCH_LEAD_MS + self.ms.load(Ordering::Relaxed),
            epoch_unix_ms: 0,
        }
    }

    fn unix_us(&self) -> u128 {
        self.lines.fetch_add(1, Ordering::Relaxed);
        0
    }

    fn ns(&self) -> u64 {
        self.now().ms * 1_000_000
    }
}

/// One worker, whose events are those of its connections.
struct Rig {
    node: DrivenNode,
    listener: LocalListener,
    clock: Arc<TestClock>,
}

impl Rig {
    fn new() -> Rig {
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        let (listener, clock) = (LocalListener::new(address), Arc::new(TestClock::default()));
        let mut config = config();
        config.clock = clock.clone();
        // Nobody has to give up memory.
        config.buffer_bytes = 64 << 20;
        config.observers = Observers::new(clock.clone(), b':', false);
        let devices = Devices {
            listeners: vec![(Box::new(listener.clone()), Accepts::Any)],
            ..Devices::default()
        };
        let engines = engines(1, Habits::EREW);
        let node = DrivenNode::new(config, vec![devices], engines, Arc::new(Admin)).unwrap();
        Rig {
            node,
            listener,
            clock,
        }
    }

    fn connect(&self) -> LocalStream {
        let from = SocketAddr::from(([10, 0, 0, 2], 1));
        self.listener.connect(from, StreamFaults::default(), 1)
    }

    fn turn(&mut self, turns: usize) -> Rest {
        let worker = &mut self.node.workers[0];
        for _ in 0..turns {
            worker.rest();
            worker.turn();
        }
        worker.rest()
    }

    fn watch(&mut self) -> LocalStream {
        let mut watcher = self.connect();
        assert_eq!(watcher.send(b"watch connevents\r\n"), Sent::All);
        self.turn(3);
        assert_eq!(received(&mut watcher), "OK\r\n");
        watcher
    }

    /// Connections that come and go. Returns how many lines were made of that.
    fn come_and_go(&mut self, count: usize) -> u64 {
        let before = self.clock.lines.load(Ordering::Relaxed);
        for _ in 0..count {
            drop(self.connect());
            self.turn(3);
        }
        self.clock.lines.load(Ordering::Relaxed) - before
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / 1_000 {
            self.clock.ms.fetch_add(1_000, Ordering::Relaxed);
            self.turn(2);
        }
    }
}

fn received(stream: &mut LocalStream) -> String {
    let mut all = Vec::with_capacity(2 * WATCH_BYTES_MAX);
    while let Received::Full(1..) | Received::Drained(1..) = stream.receive(&mut all) {}
    String::from_utf8(all).unwrap()
}

/// More events than all that a watcher may leave unread.
const EVENTS: usize = 2 * WATCH_BYTES_MAX / 80;

#[test]
fn events_that_nobody_has_room_for_are_counted_and_nothing_else() {
    for watchers in [1, WATCHERS_MAX] {
        let mut rig = Rig::new();
        let mut streams: Vec<_> = (0..watchers).map(|_| rig.watch()).collect();
        let lines = rig.come_and_go(EVENTS);
        assert!(lines > 0 && lines < 2 * EVENTS as u64);
        assert_eq!(rig.come_and_go(100), 0, "all of them are full");
        let figures = rig.node.figures().watch();
        let skipped = figures.skipped;
        assert!(skipped >= 200 * watchers as u64);

        // One that reads is shown what waited for it, told how many it was not, and shown the next.
        let mut text = String::new();
        for _ in 0..20 {
            text += &received(&mut streams[0]);
            rig.turn(3);
        }
        let shown = text.matches("type=conn_").count() as u64;
        let notes = text
            .lines()
            .filter_map(|line| line.strip_prefix("skipped="));
        let told: u64 = notes.map(|count| count.parse::<u64>().unwrap()).sum();
        assert!(told >= 200, "{told}");
        let connected = 2 * (EVENTS as u64 + 100) + 1;
        // The first watchers have seen the others come.
        assert_eq!(shown + told, connected + watchers as u64 - 2);
        assert_eq!(rig.come_and_go(1), 2, "there is room again");
        assert_eq!(received(&mut streams[0]).matches("type=conn_").count(), 2);
    }
}

#[test]
fn a_watcher_that_takes_nothing_is_closed() {
    let mut rig = Rig::new();
    let (mut reads, idle) = (rig.watch(), rig.watch());
    for _ in 0..EVENTS {
        rig.come_and_go(1);
        received(&mut reads);
    }
    assert_eq!(rig.turn(1), Rest::Asleep(Some(Duration::from_secs(1))));
    rig.pass(WATCH_FULL_MS_MAX - 1_000);
    assert_eq!(rig.node.figures().watch().watchers, 2);
    rig.pass(3_000);
    assert_eq!(rig.node.figures().watch().watchers, 1);
    assert_eq!(rig.node.figures().tallies()[0].stalled_kicks, 1);
    assert!(idle.ready().hung_up && !reads.ready().hung_up);

    // One that takes all that waits now and then stays, and so does one that has nothing to take.
    let mut slow = rig.watch();
    for _ in 0..10 {
        rig.come_and_go(EVENTS / 2);
        rig.pass(WATCH_FULL_MS_MAX / 2);
        for _ in 0..10 {
            received(&mut reads);
            received(&mut slow);
            rig.turn(2);
        }
    }
    drop(idle);
    rig.pass(2 * WATCH_FULL_MS_MAX);
    assert_eq!(rig.node.figures().watch().watchers, 2);
    drop((reads, slow));
    rig.turn(3);
    assert_eq!(
        rig.turn(1),
        Rest::Asleep(None),
        "nothing is left to be looked at"
    );
}
