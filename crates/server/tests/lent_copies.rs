//! Values that slow readers are lent, and that are then replaced or evicted: what their copies
//! take, as it is counted and as the allocator sees it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use glimmer_base::limits::{ASIDES_PART, SHORT_TICK_MS, STALLED_MS_MAX};
use glimmer_dispatch::{Settings, SizeAware};
use glimmer_server::Config;
use glimmer_server::config::{AccessMode, Mode, TableKind};
use glimmer_transport::stream::{ByteStream, LocalStream};
use glimmer_transport::{Received, Sent};
use support::Rig;

mod support;

struct Counting;

thread_local! {
    /// Bytes that a test has allocated. Its server has no threads.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(LIVE.get()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Every table, by the mode and the kind.
const TABLES: [(Mode, TableKind); 3] = [
    (Mode::Cache, TableKind::Mica),
    (Mode::Store, TableKind::Mica),
    (Mode::Cache, TableKind::Memc3),
];

/// A server of 64 MiB with two workers. The second one serves large requests.
fn rig((mode, table): (Mode, TableKind)) -> Rig {
    let settings = Settings::DEFAULT;
    Rig::with(Config {
        memory_bytes: 64 << 20,
        workers: 2,
        access: AccessMode::Crcw,
        mode,
        table,
        dispatch: Arc::new(SizeAware {
            settings,
            threshold: Some(100_000),
        }),
        ..Config::default()
    })
}

/// Bytes that copies may take.
fn copies_max(rig: &Rig) -> usize {
    2 * rig.server.plan.buffer_bytes_per_worker / ASIDES_PART
}

fn value(letter: u8, bytes: usize) -> Vec<u8> {
    vec![letter; bytes]
}

fn set(rig: &mut Rig, stream: &mut LocalStream, key: &str, value: &[u8]) {
    let head = format!("set {key} 0 0 {}\r\n", value.len());
    let said = [head.as_bytes(), value, b"\r\n"].concat();
    assert_eq!(rig.ask(stream, &said, 8), b"STORED\r\n", "{key}");
}

/// What a client is told of a value.
fn shown(key: &str, value: &[u8]) -> Vec<u8> {
    let head = format!("VALUE {key} 0 {}\r\n", value.len());
    [head.as_bytes(), value, b"\r\nEND\r\n"].concat()
}

/// Clients that ask for a value and read nothing.
fn readers(rig: &mut Rig, count: usize, key: &str) -> Vec<LocalStream> {
    let mut readers: Vec<_> = (0..count).map(|_| rig.connect(50_000)).collect();
    for reader in &mut readers {
        assert_eq!(reader.send(format!("get {key}\r\n").as_bytes()), Sent::All);
    }
    while rig.turn() {}
    readers
}

/// Lets time pass in steps that are shorter than workers wait between two looks at slow readers.
fn pass(rig: &mut Rig, ms: u64) {
    for _ in 0..ms.div_ceil(SHORT_TICK_MS / 2) {
        (rig.clock.0).fetch_add(SHORT_TICK_MS / 2, Ordering::Relaxed);
        rig.server
            .node
            .workers
            .iter_mut()
            .for_each(|worker| _ = worker.turn());
        while rig.turn() {}
    }
}

/// Many clients read nothing of the same values, which then leave the table. However many they are,
/// there is one copy of each value, and it is freed with the last of them. No connection is closed.
#[test]
fn slow_readers_share_the_copies_of_their_values() {
    const BYTES: usize = 200_000;
    const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
    const READERS_OF_EACH: usize = 25;
    let old = value(b'o', BYTES);
    for table in TABLES {
        let mut rig = rig(table);
        let mut writer = rig.connect(1 << 20);
        for key in KEYS {
            set(&mut rig, &mut writer, key, &old);
        }
        let mut readers = KEYS.map(|key| readers(&mut rig, READERS_OF_EACH, key));
        assert!(rig.total().visits > 0, "{table:?}");
        let held = rig.held_bytes() as usize;
        let new = value(b'n', 4 * BYTES);
        PEAK.set(LIVE.get());
        let before = LIVE.get();
        match table {
            // The log's head comes round.
            (Mode::Cache, TableKind::Mica) => {
                for n in 0..150 {
                    set(&mut rig, &mut writer, &format!("n{n}"), &new);
                }
            }
            _ => KEYS
                .map(|key| set(&mut rig, &mut writer, key, &new))
                .into_iter()
                .collect(),
        }
        pass(&mut rig, 2 * STALLED_MS_MAX);
        let copied = KEYS.len() * BYTES;
        let counted = rig.held_bytes() as usize - held;
        assert!(
            counted.abs_diff(copied) < copied / 10,
            "{table:?}: {counted}"
        );
        // The writer's request and the buffers of the turn take some memory, too.
        let peak = (PEAK.get() - before) as usize;
        assert!(peak < copied + 8 * new.len(), "{table:?}: {peak}");
        for (key, readers) in KEYS.iter().zip(&mut readers) {
            let expected = shown(key, &old);
            for reader in readers {
                let reply = rig.ask(reader, &[], expected.len());
                assert!(reply == expected, "{table:?}: {}", reply.len());
            }
        }
        drop(readers);
        pass(&mut rig, 2 * SHORT_TICK_MS);
        assert_eq!(rig.total().stalled_kicks, 0, "{table:?}");
        let held = rig.held_bytes() as usize;
        assert!(held < copied / 2, "{table:?}: {held}");
    }
}

/// Clients read nothing of values that are replaced again and again, for as long as it takes. The
/// copies stay within their memory: the clients that read nothing lose their connections, and one
/// that reads slowly does not.
#[test]
fn readers_without_progress_make_room_for_copies() {
    const BYTES: usize = 700_000;
    const READERS: usize = 5;
    const ROUNDS: u8 = 12;
    for table in &TABLES[1..] {
        let mut rig = rig(*table);
        let max = copies_max(&rig);
        assert!(BYTES * usize::from(ROUNDS) > 2 * max);
        let mut writer = rig.connect(1 << 20);
        let first = value(0, BYTES);
        set(&mut rig, &mut writer, "key", &first);
        let [mut slow] = readers(&mut rig, 1, "key").try_into().ok().unwrap();
        let (mut reply, expected) = (Vec::new(), shown("key", &first));
        let mut crowd = Vec::new();
        let before = rig.held_bytes() as usize;
        for round in 1..=ROUNDS {
            crowd.extend(readers(&mut rig, READERS, "key"));
            set(&mut rig, &mut writer, "key", &value(round, BYTES));
            for _ in 0..20 {
                pass(&mut rig, SHORT_TICK_MS);
                reply.reserve(4_000);
                slow.receive_at_most(&mut reply, 4_000);
                let held = rig.held_bytes() as usize;
                assert!(held <= before + max, "{table:?}, {round}: {held}");
            }
        }
        reply.extend(rig.ask(&mut slow, &[], expected.len() - reply.len()));
        assert!(reply == expected, "{table:?}: {}", reply.len());
        let closed = crowd.iter_mut().filter_map(|reader| {
            let mut rest = Vec::with_capacity(100_000);
            while !matches!(reader.receive(&mut rest), Received::Drained(0)) {
                if matches!(reader.receive(&mut rest), Received::Ended) {
                    return Some(());
                }
            }
            None
        });
        let closed = closed.count();
        assert_eq!(rig.total().stalled_kicks, closed as u64, "{table:?}");
        assert!((1..crowd.len()).contains(&closed), "{table:?}: {closed}");
    }
}
