//! The body of the fuzz target.

use super::{FileHead, NextBlock, Record, Records, SnapshotReader, seal};

/// Reads bytes as a file, as what follows the head of a file, and as the payload of a block that
/// has the right checksum: no fuzzer finds one.
pub fn file(bytes: &[u8]) {
    let head = FileHead {
        begun_unix_ms: 0,
        seed: 0,
    };
    let head = head.encode();
    read(bytes);
    read(&[&head, bytes].concat());
    let whole = [&head, &seal(0, bytes, 0)[..], bytes].concat();
    assert!(read(&whole) >= 1, "the block is read");
}

/// Reads a file. Returns how many blocks were whole.
fn read(bytes: &[u8]) -> usize {
    let mut blocks = 0;
    let Ok(mut reader) = SnapshotReader::open(bytes).expect("memory is always read") else {
        return 0;
    };
    while let NextBlock::Items(payload, _) = reader.next_block().expect("memory is always read") {
        blocks += 1;
        let mut again = Vec::new();
        for record in Records::of(payload) {
            record.encode(&mut again);
        }
        let same = |(one, other): (Record<'_>, Record<'_>)| assert_eq!(one, other);
        Records::of(payload).zip(Records::of(&again)).for_each(same);
    }
    assert!(reader.bytes() <= bytes.len() as u64);
    blocks
}
