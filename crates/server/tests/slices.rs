//! `--slice-bytes`: how much of a large value has its turn before others do.

use std::sync::Arc;

use glimmer_base::limits::SLICE_BYTES;
use glimmer_dispatch::{POLICIES, Settings};
use glimmer_server::config::{AccessMode, Mode, SLICE_BYTES_MIN};
use glimmer_server::{Config, SliceBytes};
use glimmer_transport::Sent;
use glimmer_transport::stream::{ByteStream, LocalStream};
use support::Rig;

mod support;

/// Lengths of large values.
const LENGTHS: [usize; 3] = [100_000, 1_000_000, 10_000_000];
/// Bytes that a stream holds: any value.
const ROOMY: usize = 16 << 20;
/// Bytes of small requests, and around a value, in one turn at most.
const AROUND: usize = 100;
const SMALL: &[u8] = b"get small\r\n";
const SMALL_SHOWN: &[u8] = b"VALUE small 0 1\r\nx\r\nEND\r\n";

fn config(slice: SliceBytes) -> Config {
    Config {
        memory_bytes: 512 << 20,
        item_bytes_max: 16 << 20,
        slice_bytes: slice.0,
        ..Config::default()
    }
}

fn value(bytes: usize) -> Vec<u8> {
    let letters = (b'a'..=b'z').cycle().take(bytes.div_ceil(1_000));
    let mut value: Vec<u8> = letters.flat_map(|letter| [letter; 1_000]).collect();
    value.truncate(bytes);
    value
}

fn set(bytes: usize) -> Vec<u8> {
    let head = format!("set large 0 0 {bytes}\r\n");
    [head.as_bytes(), &value(bytes), b"\r\n"].concat()
}

fn shown(bytes: usize) -> Vec<u8> {
    let head = format!("VALUE large 0 {bytes}\r\n");
    [head.as_bytes(), &value(bytes), b"\r\nEND\r\n"].concat()
}

/// What has come to a client.
fn received(stream: &mut LocalStream) -> Vec<u8> {
    let mut all = Vec::with_capacity(ROOMY);
    while stream.ready().readable {
        stream.receive(&mut all);
    }
    all
}

/// One turn of a server of one worker, in which it answers a small request. Returns the bytes that
/// it received and sent.
fn turn_beside(rig: &mut Rig, small: &mut LocalStream) -> usize {
    let bytes = |rig: &Rig| rig.total().bytes_read + rig.total().bytes_written;
    assert_eq!(small.send(SMALL), Sent::All);
    let before = bytes(rig);
    rig.turn();
    assert_eq!(received(small), SMALL_SHOWN);
    (bytes(rig) - before) as usize
}

/// What a reply with a value of this length had in each turn, beside a small request in each.
fn turns_of(bytes: usize, slice: SliceBytes) -> Vec<usize> {
    let mut rig = Rig::with(Config {
        workers: 1,
        ..config(slice)
    });
    let [mut small, mut large] = [rig.connect(ROOMY), rig.connect(ROOMY)];
    let stored = rig.say(&mut small, b"set small 0 0 1\r\nx\r\n");
    assert_eq!(stored, b"STORED\r\n");
    assert_eq!(rig.say(&mut large, &set(bytes)), b"STORED\r\n");
    assert_eq!(large.send(b"get large\r\n"), Sent::All);
    let expected = shown(bytes);
    let (mut turns, mut reply) = (Vec::new(), Vec::new());
    while reply.len() < expected.len() {
        turns.push(turn_beside(&mut rig, &mut small));
        reply.extend(received(&mut large));
    }
    assert!(reply == expected, "{bytes} bytes, slices {slice}");
    turns
}

#[test]
fn a_turn_sends_one_slice_or_the_whole_value() {
    for bytes in LENGTHS {
        for slice in [SliceBytes(SLICE_BYTES_MIN), SliceBytes(SLICE_BYTES)] {
            let turns = turns_of(bytes, slice);
            let most = turns.iter().max().unwrap();
            assert!(*most <= slice.0 + AROUND, "{slice}: {most}");
        }
        let turns = turns_of(bytes, SliceBytes::OFF);
        assert_eq!(turns.len(), 1, "{bytes}: {turns:?}");
    }
}

/// Values come and go whole under every policy and access mode, also where clients are slow.
#[test]
fn whole_values_under_every_policy() {
    for policy in POLICIES {
        let policy = glimmer_dispatch::named(policy.name(), &Settings::DEFAULT).unwrap();
        for access in [AccessMode::Erew, AccessMode::Crew, AccessMode::Crcw] {
            if policy.check(access).is_err() {
                continue;
            }
            for mode in [Mode::Cache, Mode::Store] {
                let mut rig = Rig::with(Config {
                    workers: 4,
                    access,
                    mode,
                    dispatch: Arc::clone(&policy),
                    ..config(SliceBytes::OFF)
                });
                // The largest takes long in a test, so not all have it.
                let lengths = match (access, mode) {
                    (AccessMode::Crcw, Mode::Cache) => &LENGTHS[..],
                    _ => &LENGTHS[..2],
                };
                for &bytes in lengths {
                    for room in [ROOMY, bytes / 10] {
                        let what = format!("{}, {access}, {bytes} through {room}", policy.name());
                        let mut client = rig.connect(room);
                        let stored = rig.say(&mut client, &set(bytes));
                        assert_eq!(stored, b"STORED\r\n", "{what}");
                        let reply = rig.say(&mut client, b"get large\r\n");
                        assert!(reply == shown(bytes), "{what}");
                    }
                }
                for _ in 0..10 {
                    rig.turn();
                }
                // Buffers that are kept, and nothing of a value.
                let held = rig.held_bytes() as usize;
                assert!(held < LENGTHS[0], "{}, {access}: {held}", policy.name());
            }
        }
    }
}
