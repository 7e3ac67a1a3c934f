//! Items that are not whole, and files whose words of record, header or notes are damaged.

use super::load::{BEGINNING, Load, NOW};
use super::place::{Kept, Kind, Place, SEED, Store};
use glimmer_seeds::each_seed;
use glimmer_store::access::Crew;
use glimmer_store::evict::RULES;
use glimmer_store::heap::NewItem;
use glimmer_store::table::{Stored, TableWriter};
use glimmer_store::{memc3, mica_cache, mica_store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Nothing but a key of an item has these bytes.
const KEY: &[u8] = b"a key like no other one";
/// The words of the header from the state on that change.
const STATE: Range<usize> = 3..16;
/// The words of the first record.
const RECORD: Range<usize> = 512..1536;
/// Words of it that are kept up to date, up to the length of the journal and its first entry, and
/// those of a slide.
const KEPT: [Range<usize>; 2] = [512..522, 1001..1006];
const PAGE: usize = 4096;
const HUGE_PAGE_WORDS: usize = (2 << 20) / 8;

fn kind_of(seed: u64) -> Kind {
    let mut rng = SmallRng::seed_from_u64(seed);
    Kind {
        partitions: 1,
        rule: RULES[rng.random_range(0..RULES.len())].with_threshold(0.5),
        bytes: rng.random_range(100..200) << 10,
        main_buckets: rng.random_range(1..8),
        item_bytes_max: 24 << 10,
        in_common: rng.random(),
    }
}

fn run<T: Kept>(store: &mut Store<T>, load: &mut Load, requests: usize) {
    for _ in 0..requests {
        let request = load.request();
        load.run(store, request);
    }
}

/// Has the file be as if the item with [`KEY`] were being written over: its header is a filler's.
fn unsettle(place: &Place) {
    let mut bytes = std::fs::read(&place.0).unwrap();
    let found = bytes.windows(KEY.len()).rposition(|part| part == KEY);
    let header = found.unwrap() - 8..found.unwrap();
    bytes[header].copy_from_slice(&(4u64 << 24).to_ne_bytes());
    std::fs::write(&place.0, &bytes).unwrap();
}

/// Says how many items are lost as the next process finds a file in which one item is not whole,
/// and as the one after that does, if the first is ended before it serves.
fn lost<T: Kept>(seed: u64, closes: bool) -> [u64; 2] {
    let (kind, place) = (kind_of(seed), Place::new());
    let mut store: Store<T> = kind.store(&place);
    let mut load = Load::new(seed, 300, 20 << 10);
    // Few, so that store mode has room for one more item.
    run(&mut store, &mut load, 40);
    let item = NewItem::new(KEY, b"value");
    let mut writer = store.partitions[0].enter(load.flushes);
    let stored = writer.put(SEED.keyhash(KEY), &item, NOW);
    assert!(matches!(stored, Stored::Yes(_)));
    drop(writer);
    match closes {
        true => store.close(load.flushes),
        false => drop(store),
    }
    unsettle(&place);
    let found = || {
        let store: Store<T> = kind.attached(&place).unwrap();
        store.lost()
    };
    let lost = [found(), found()];
    if !closes {
        let served: Store<T> = kind.store(&place);
        assert_eq!(served.lost(), 1);
        drop(served);
        let mut next: Store<T> = kind.store(&place);
        assert_eq!(next.lost(), 0, "it was counted");
        run(&mut next, &mut load, 1_000);
        next.contents_for(&load);
    }
    lost
}

/// What was lost is not forgotten if the process that noticed it is ended before it can say so.
#[test]
fn what_is_lost_is_counted_until_a_process_serves() {
    each_seed(&[], |seed| {
        assert_eq!(lost::<mica_cache::Owner<Crew>>(seed, false), [1, 1]);
        assert_eq!(lost::<mica_store::Owner<Crew>>(seed, false), [1, 1]);
        assert_eq!(lost::<memc3::Owner<Crew>>(seed, false), [1, 1]);
    });
}

/// An image that was written is believed, so the item that is not whole is not noticed.
#[test]
fn after_a_stop_no_item_is_looked_at() {
    each_seed(&[], |seed| {
        assert_eq!(lost::<mica_cache::Owner<Crew>>(seed, true), [0, 0]);
        assert_eq!(lost::<mica_store::Owner<Crew>>(seed, true), [0, 0]);
        assert_eq!(lost::<memc3::Owner<Crew>>(seed, true), [0, 0]);
    });
}

/// A file as a store has left it.
struct Left {
    kind: Kind,
    place: Place,
    load: Load,
    flushes: u64,
    whole: Vec<u8>,
}

impl Left {
    fn by<T: Kept>(seed: u64, closes: bool) -> Left {
        let (kind, place) = (kind_of(seed), Place::new());
        let mut store: Store<T> = kind.store(&place);
        let mut load = Load::new(seed, 300, 20 << 10);
        run(&mut store, &mut load, 1_000);
        match closes {
            true => store.close(load.flushes),
            false => drop(store),
        }
        let whole = std::fs::read(&place.0).unwrap();
        Left {
            kind,
            place,
            flushes: load.flushes,
            load,
            whole,
        }
    }

    /// What a word is.
    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.whole[8 * at..][..8].try_into().unwrap())
    }

    fn file(&self) -> File {
        let mut options = File::options();
        options.read(true).write(true).open(&self.place.0).unwrap()
    }

    /// Changes one word of the file.
    fn damage(&self, at: usize, value: u64) {
        let word = value.to_ne_bytes();
        self.file().write_all_at(&word, 8 * at as u64).unwrap();
    }

    /// Makes the file as it was. Much of it is holes.
    fn restore(&self) {
        let file = self.file();
        let mut now = vec![0; PAGE];
        for (nth, page) in self.whole.chunks(PAGE).enumerate() {
            let at = (nth * PAGE) as u64;
            file.read_exact_at(&mut now[..page.len()], at).unwrap();
            if now[..page.len()] != *page {
                file.write_all_at(page, at).unwrap();
            }
        }
    }
}

/// What a word may have become: each value differs from what it was.
fn values(was: u64, rng: &mut SmallRng) -> impl Iterator<Item = u64> {
    let flipped = |bits: Range<u32>, rng: &mut SmallRng| was ^ 1 << rng.random_range(bits);
    let values = [
        0,
        1,
        u64::MAX,
        rng.random(),
        flipped(0..64, rng),
        flipped(0..8, rng),
        flipped(56..64, rng),
    ];
    values.into_iter().filter(move |&value| value != was)
}

/// A file that was not closed is refused or attached, and then the store is sound and serves.
fn bears_any_word<T: Kept>(seed: u64) {
    let mut left = Left::by::<T>(seed, false);
    let mut rng = SmallRng::seed_from_u64(seed);
    for at in KEPT.into_iter().flatten() {
        for value in values(left.word(at), &mut rng) {
            left.damage(at, value);
            if let Ok(mut store) = left.kind.try_store::<T>(&left.place) {
                run(&mut store, &mut left.load, 30);
            }
            left.restore();
        }
    }
}

#[test]
fn any_word_of_a_record_may_be_damaged_when_a_process_is_killed() {
    each_seed(&[], |seed| {
        bears_any_word::<mica_cache::Owner<Crew>>(seed);
        bears_any_word::<mica_store::Owner<Crew>>(seed);
        bears_any_word::<memc3::Owner<Crew>>(seed);
    });
}

/// A file that was closed is refused when a word of its header or of the record differs, but for
/// words that have no meaning, and is left as it is.
fn refuses_any_word<T: Kept>(seed: u64) {
    let left = Left::by::<T>(seed, true);
    let mut rng = SmallRng::seed_from_u64(seed);
    let of_record: Vec<usize> = (0..20).map(|_| rng.random_range(RECORD)).collect();
    // The time of the store goes on when the file is closed.
    let of_header = STATE.filter(|at| *at != 9);
    let kept = KEPT.into_iter().flatten();
    for at in of_header.chain(kept).chain(of_record) {
        for value in values(left.word(at), &mut rng) {
            left.damage(at, value);
            let is_refused = left.kind.attached::<T>(&left.place).is_err();
            assert!(is_refused, "word {at} became {value:x}");
            left.damage(at, left.word(at));
        }
    }
    assert!(std::fs::read(&left.place.0).unwrap() == left.whole);
}

#[test]
fn no_word_of_a_record_may_be_damaged_when_a_file_is_closed() {
    each_seed(&[], |seed| {
        refuses_any_word::<mica_cache::Owner<Crew>>(seed);
        refuses_any_word::<mica_store::Owner<Crew>>(seed);
        refuses_any_word::<memc3::Owner<Crew>>(seed);
    });
}

/// What a table has beside its items is its last memory in the file. Where it is damaged, the file
/// is refused, or the store has all items, or counts those that it lacks.
fn notices_damaged_notes<T: Kept>(seed: u64) {
    let mut left = Left::by::<T>(seed, true);
    let mut rng = SmallRng::seed_from_u64(seed);
    // Those that have expired are among those that are lost.
    let (flushes, now) = (left.flushes, BEGINNING);
    let items = |store: &mut Store<T>| store.contents(flushes, now).len() as u64;
    let were = items(&mut left.kind.attached(&left.place).unwrap());
    let first = left.whole.len() / 8 - HUGE_PAGE_WORDS;
    let notes = (first..left.whole.len() / 8).filter(|&at| left.word(at) != 0);
    let notes: Vec<usize> = notes.collect();
    for _ in 0..3 {
        let at = notes[rng.random_range(0..notes.len())];
        for value in values(left.word(at), &mut rng) {
            left.damage(at, value);
            let Ok(mut store) = left.kind.try_store::<T>(&left.place) else {
                left.restore();
                continue;
            };
            let (found, lost) = (items(&mut store), store.lost());
            let was = left.word(at);
            assert!(
                found + lost == were,
                "{found} and {lost} of {were}: word {at} was {was:x} and became {value:x}"
            );
            run(&mut store, &mut left.load, 30);
            drop(store);
            left.restore();
        }
    }
}

#[test]
fn notes_may_be_damaged_when_a_file_is_closed() {
    each_seed(&[], |seed| {
        notices_damaged_notes::<mica_store::Owner<Crew>>(seed);
        notices_damaged_notes::<memc3::Owner<Crew>>(seed);
    });
}

/// A process that attaches a closed file, and is ended before it serves, leaves it as it was.
fn is_attached_twice<T: Kept>(seed: u64) {
    let left = Left::by::<T>(seed, true);
    for _ in 0..3 {
        let store: Store<T> = left.kind.attached(&left.place).unwrap();
        drop(store);
        let mut header = vec![0; 8 * RECORD.end];
        left.file().read_exact_at(&mut header, 0).unwrap();
        assert!(header == left.whole[..8 * RECORD.end], "it was changed");
    }
    let mut store: Store<T> = left.kind.store(&left.place);
    store.contents(left.flushes, BEGINNING);
}

#[test]
fn what_is_attached_and_not_begun_is_still_closed() {
    each_seed(&[], |seed| {
        is_attached_twice::<mica_cache::Owner<Crew>>(seed);
        is_attached_twice::<mica_store::Owner<Crew>>(seed);
        is_attached_twice::<memc3::Owner<Crew>>(seed);
    });
}
