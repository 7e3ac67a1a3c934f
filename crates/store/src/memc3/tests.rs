use super::*;
use crate::access::Crew;
use crate::heap::{History, NewItem};
use crate::memory::PagePolicy;
use crate::table::{Announced, Begun, Headway, Stored, Table, TableWriter, Upload};
use glimmer_base::{Expiry, Moment, Seed};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

fn put(owner: &mut Owner<Crew>, flushes: u64, number: u32) {
    let key = number.to_be_bytes();
    let item = NewItem {
        key: &key,
        value: [&[7; 8], &[]],
        flags: 0,
        expiry: Expiry::NEVER,
        history: History::NEW,
    };
    let keyhash = Seed(0).keyhash(&key);
    owner.enter(flushes).put(keyhash, &item, NOW);
}

/// A flush leaves the pages of the index unused. Items get them once the batches that ran during
/// the flush are over: until then a reader may still note a read in one of them.
#[test]
fn pages_that_a_flush_leaves_wait_for_running_batches() {
    let config = Memc3Config {
        memory_bytes: 256 << 10,
        page_bytes: 1 << 10,
        item_bytes_max: 100,
        pages: PagePolicy::Small,
        ..Memc3Config::default()
    };
    let mut owner = Owner::<Crew>::new(&config).unwrap();
    let (batches, mut participants) = crate::batches::Batches::new(2);
    owner.join(&batches, 1);
    let figures = Table::figures(&owner);
    let empty = figures.index_bytes();
    for number in 0..20_000 {
        put(&mut owner, 0, number);
    }
    let full = figures.index_bytes();
    assert!(full > empty, "the index has grown");

    let batch = participants[0].begin();
    let at_flush = owner.enter(1).state.slabs.item_pages();
    let pages = |owner: &mut Owner<Crew>| owner.enter(1).state.slabs.item_pages();
    assert!(!owner.enter(1).take_unused_index_pages());
    assert_eq!(pages(&mut owner), at_flush);
    drop(batch);

    // A batch that has begun since cannot come to those pages.
    let _later = participants[1].begin();
    assert!(owner.enter(1).take_unused_index_pages());
    assert!(pages(&mut owner) > at_flush);
    assert_eq!(figures.index_bytes(), empty);
}

/// Pages of 32 KiB, each for one value of 20 KB.
const PAGE: usize = 32 << 10;
const VALUE: usize = 20_000;

fn pages(count: usize) -> Owner<Crew> {
    let config = Memc3Config {
        memory_bytes: count * (PAGE + Slabs::BYTES_PER_PAGE),
        page_bytes: PAGE,
        item_bytes_max: 16 * PAGE,
        pages: PagePolicy::Small,
        ..Memc3Config::default()
    };
    Owner::new(&config).unwrap()
}

fn value(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| (number as usize * 31 + at) as u8)
        .collect()
}

fn put_value(owner: &mut Owner<Crew>, number: u32, bytes: usize) {
    let (key, value) = (number.to_be_bytes(), value(number, bytes));
    let item = NewItem::new(&key, &value);
    let stored = owner.enter(0).put(Seed(0).keyhash(&key), &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
}

/// Begins to receive a value, of which one half arrives.
fn begin(owner: &mut Owner<Crew>, number: u32) -> Upload {
    let key = number.to_be_bytes();
    let announced = Announced {
        key: &key,
        keyhash: Seed(0).keyhash(&key),
        value_bytes: VALUE,
        part: 1,
        now: NOW,
    };
    let headway = &mut Headway::new(u64::MAX);
    let Begun::Yes(upload) = owner.begin_upload(Default::default(), 0, &announced, headway) else {
        panic!("there is room");
    };
    upload.write(0, &value(number, VALUE)[..VALUE / 2]);
    upload
}

/// Receives the rest, and stores and reads the value.
fn complete(owner: &mut Owner<Crew>, number: u32, upload: Upload) {
    let (key, value) = (number.to_be_bytes(), value(number, VALUE));
    let keyhash = Seed(0).keyhash(&key);
    upload.write(VALUE / 2, &value[VALUE / 2..]);
    owner.enter(0).with_upload(upload, &mut |writer, received| {
        let stored = writer.put(keyhash, &NewItem::new(&key, received), NOW);
        assert!(matches!(stored, Stored::Yes(_)));
    });
    let mut writer = owner.enter(0);
    let is_whole = writer.read(keyhash, &key, NOW, |item| item.value().equals(&value));
    assert_eq!(is_whole, Some(true), "{number}");
    writer.audit();
}

fn places(owner: &mut Owner<Crew>) -> Vec<u64> {
    let mut writer = owner.enter(0);
    writer.audit();
    let cells = writer.state.ledger.uploads.cells();
    cells.map(|cell| cell.place().at).collect()
}

/// Every fourth page has an upload, so there is no place for a value of sixteen pages until some of
/// them have moved.
#[test]
fn uploads_make_way_for_a_large_value() {
    let mut owner = pages(64);
    let mut uploads = Vec::new();
    for number in 0..60 {
        match number % 4 {
            3 if number > 4 => uploads.push((number, begin(&mut owner, number))),
            _ => put_value(&mut owner, number, VALUE),
        }
    }
    let before = places(&mut owner);
    put_value(&mut owner, 100, 16 * PAGE - 300);
    let after = places(&mut owner);
    let moved = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before != after);
    let moved = moved.count();
    assert!((2..5).contains(&moved), "{before:?} {after:?}");
    for (number, upload) in uploads {
        complete(&mut owner, number, upload);
    }
    assert_eq!(owner.enter(0).state.slabs.pinned_pages(), 0);
}

/// Uploads have the last pages, which the index takes one after the other.
#[test]
fn uploads_make_way_for_the_index() {
    let mut owner = pages(64);
    for number in 0..48 {
        put_value(&mut owner, number, VALUE);
    }
    let mut uploads: Vec<_> = (1_000..1_014)
        .map(|number| (number, begin(&mut owner, number)))
        .collect();
    let (_, last) = (places(&mut owner), owner.enter(0).state.slabs.item_pages());
    for number in 2_000..60_000 {
        put(&mut owner, 0, number);
    }
    let left = owner.enter(0).state.slabs.item_pages();
    assert!(left + 8 < last, "the index has taken pages: {last}, {left}");
    let end = (left * PAGE / 8) as u64;
    assert!(places(&mut owner).iter().all(|&at| at < end));
    while let Some((number, upload)) = uploads.pop() {
        complete(&mut owner, number, upload);
    }
    assert_eq!(owner.enter(0).state.slabs.pinned_pages(), 0);
}
