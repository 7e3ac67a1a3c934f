//! A server's side of the accelerator: what tests share.
#![allow(dead_code)]

use glimmer_base::{Keyhash, Seed};
use glimmer_hotset::layout::{HotItem, NEVER_NS, Piece, Tally};
use glimmer_hotset::{Filled, Guard, Memory, Reader};
use std::sync::Arc;

pub const SEED: Seed = Seed(7);

pub fn keyhash(key: &[u8]) -> Keyhash {
    SEED.keyhash(key)
}

/// An item that never expires.
pub fn item<'a>(key: &'a [u8], value: &'a [u8]) -> HotItem<'a> {
    HotItem {
        key,
        value,
        flags: 5,
        cas: 9,
        deadline_ns: NEVER_NS,
    }
}

pub fn guard_and_reader(slots: usize) -> (Guard, Reader) {
    let memory = Arc::new(Memory::new(slots, 1, 42));
    (Guard::new(memory.clone()), Reader::new(memory, 0))
}

/// Fills with the highest weight.
pub fn fill(guard: &Guard, item: &HotItem<'_>) -> Filled {
    let epoch = guard.epoch();
    guard.fill(epoch, keyhash(item.key), item, u32::MAX, |_| 0)
}

/// The value of a key at time zero.
pub fn value(reader: &Reader, key: &[u8]) -> Result<Vec<u8>, Tally> {
    value_at(reader, key, 0)
}

pub fn value_at(reader: &Reader, key: &[u8], now_ns: u64) -> Result<Vec<u8>, Tally> {
    piece(reader, key, now_ns, Piece::Value)
}

pub fn piece(reader: &Reader, key: &[u8], now_ns: u64, piece: Piece) -> Result<Vec<u8>, Tally> {
    let hit = reader.find(key, now_ns)?;
    let mut copied = vec![0; hit.peek().bytes(piece)];
    hit.peek().copy(piece, &mut copied);
    if hit.finish(Tally::HitGet) {
        Ok(copied)
    } else {
        Err(Tally::Torn)
    }
}

/// The n-th of these keys whose two slots are `places`, among this many slots.
pub fn key_at(guard: &Guard, places: [usize; 2], n: usize) -> Vec<u8> {
    let slots = guard.memory().slots().len();
    let seed = guard.memory().control().seed();
    (0u32..)
        .map(|number| format!("key:{number}").into_bytes())
        .filter(|key| glimmer_hotset::places(glimmer_hotset::hash(seed, key), slots) == places)
        .nth(n)
        .unwrap()
}
