//! Files of snapshots, whatever their bytes are: no panic, and nothing that was not written.

use std::collections::BTreeMap;

use glimmer_engine::Marks;
use glimmer_engine::snapshot::{
    BLOCK_HEAD_BYTES, FILE_HEAD_BYTES, FileHead, Foreign, NextBlock, Record, Records,
    SnapshotReader, Totals, seal,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A file, where its blocks begin and end, and the item of each block by its key.
struct File {
    bytes: Vec<u8>,
    blocks: Vec<(usize, usize)>,
    items: BTreeMap<Vec<u8>, (usize, Vec<u8>)>,
}

fn file(rng: &mut SmallRng, blocks: usize) -> File {
    let (seed, begun_unix_ms) = (rng.random(), rng.random());
    let head = FileHead {
        begun_unix_ms,
        seed,
    };
    let mut file = File {
        bytes: head.encode().to_vec(),
        blocks: Vec::new(),
        items: BTreeMap::new(),
    };
    for nth in 0..blocks {
        let mut payload = Vec::new();
        let items = rng.random_range(1..10);
        for item in 0..items {
            let key = format!("key-{nth}-{item}").into_bytes();
            // Values with what looks like a block.
            let bytes = rng.random_range(0..80);
            let value = [seal(0, b"", 1).to_vec(), vec![b'v'; bytes]].concat();
            let record = Record {
                key: &key,
                value: &value,
                flags: rng.random_range(0..3),
                expiry_unix_ms: rng.random::<bool>().then(|| rng.random()),
                cas: rng.random_range(0..3),
                marks: Marks::STALE,
            };
            record.encode(&mut payload);
            assert_eq!(Records::of(&payload).last(), Some(record));
            file.items.insert(key, (nth, value));
        }
        let begin = file.bytes.len();
        file.bytes.extend_from_slice(&seal(seed, &payload, items));
        file.bytes.extend_from_slice(&payload);
        file.blocks.push((begin, file.bytes.len()));
    }
    let totals = Totals {
        blocks: blocks as u64,
        items: file.items.len() as u64,
        ..Totals::default()
    };
    file.bytes.extend_from_slice(&totals.encode(seed));
    file
}

/// What is read of a file: the numbers of its whole blocks, what was wrong, and whether there was
/// an end.
type Found = (Vec<usize>, (u64, u64), bool);

fn read(bytes: &[u8], of: &File) -> Result<Found, Foreign> {
    let mut reader = SnapshotReader::open(bytes).expect("memory is always read")?;
    let mut blocks = Vec::new();
    loop {
        match reader.next_block().expect("memory is always read") {
            NextBlock::Items(payload, items) => {
                let mut records = Records::of(payload);
                let mut count = 0;
                for record in records.by_ref() {
                    let (block, value) = &of.items[record.key];
                    assert_eq!(record.value, value);
                    blocks.push(*block);
                    count += 1;
                }
                assert!(records.is_at_end() && count == items);
            }
            NextBlock::End(totals) => {
                blocks.dedup();
                let damage = reader.damage();
                let is_complete = totals.is_some();
                return Ok((blocks, (damage.blocks, damage.gaps), is_complete));
            }
        }
    }
}

#[test]
fn damage_costs_what_it_hits_and_nothing_else() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for _ in 0..500 {
        let file = file(&mut rng, 6);
        let end = file.blocks[5].1;
        let mut bytes = file.bytes.clone();
        let (at, kind) = (
            rng.random_range(FILE_HEAD_BYTES..end),
            rng.random_range(0..4),
        );
        match kind {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => {
                let noise = (0..rng.random_range(1..100)).map(|_| rng.random());
                bytes.splice(at..at, noise.collect::<Vec<u8>>());
            }
            2 => drop(bytes.drain(at..(at + rng.random_range(1..100)).min(end))),
            _ => bytes.truncate(at),
        }
        let (whole, (blocks, gaps), is_complete) = read(&bytes, &file).unwrap();
        assert_eq!(is_complete, kind != 3, "{kind} at {at}");
        let hit = |nth: &usize| {
            let (begin, end) = file.blocks[*nth];
            match kind {
                3 => at < end,
                2 => at < end && at + file.bytes.len() - bytes.len() > begin,
                _ => (begin..end).contains(&at) && !(kind == 1 && at == begin),
            }
        };
        let expected: Vec<usize> = (0..6).filter(|nth| !hit(nth)).collect();
        // What comes after a gap may happen to be the bytes that are missing before it.
        let whole: Vec<usize> = match kind {
            0 => whole,
            _ => whole.into_iter().filter(|nth| !hit(nth)).collect(),
        };
        assert_eq!(whole, expected, "{kind} at {at} of {:?}", file.blocks);
        let is_at_border = kind > 1 && file.blocks.iter().any(|block| block.0 == at);
        assert!(blocks + gaps > 0 || is_at_border, "{kind} at {at}");
    }
}

#[test]
fn what_is_not_ours_is_refused() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    let file = file(&mut rng, 2);
    assert_eq!(read(&file.bytes, &file), Ok((vec![0, 1], (0, 0), true)));
    for bytes in [0, 1, 7, FILE_HEAD_BYTES - 1] {
        let found = read(&file.bytes[..bytes], &file).unwrap_err();
        let expected = if bytes < 8 {
            Foreign::NotOurs
        } else {
            Foreign::Head
        };
        assert_eq!(found, expected, "{bytes}");
    }
    let mut other = file.bytes.clone();
    other[8] = 2;
    assert_eq!(read(&other, &file), Err(Foreign::Version(2)));
    let mut damaged = file.bytes.clone();
    damaged[20] ^= 1;
    assert_eq!(read(&damaged, &file), Err(Foreign::Head));
    assert_eq!(read(b"#!/bin/sh\nexit 0\n", &file), Err(Foreign::NotOurs));
}

#[test]
fn arbitrary_bytes_are_no_items_or_some() {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    for _ in 0..5_000 {
        let len = rng.random_range(0..2 * BLOCK_HEAD_BYTES);
        let bytes: Vec<u8> = (0..len)
            .map(|_| rng.random::<u8>() >> rng.random_range(0..8))
            .collect();
        let mut again = Vec::new();
        let mut records = Records::of(&bytes);
        records
            .by_ref()
            .for_each(|record| record.encode(&mut again));
        // A field may be there and yet be zero, which is written without it.
        assert!(again.len() <= bytes.len());
    }
}
