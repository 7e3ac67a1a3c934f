//! One value that grows, or is stored again and again, in a table that others fill half: the others
//! stay, and what is found is what was stored.

use crate::oracle::SEED;
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Large, Stored, Table, TableWriter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};
const KEY: &[u8] = b"it grows";
/// Bytes of the values of others.
const VALUE: [u8; 230] = [b'v'; 230];
/// Bytes of the table's memory, and of the largest item that it takes.
pub const TABLE_BYTES: usize = 4 << 20;
/// See [`TABLE_BYTES`].
pub const ITEM_BYTES_MAX: usize = 300 << 10;
/// Others that fill half of it.
const OTHERS: u32 = (TABLE_BYTES / 2 / 256) as u32;

fn fill<T: Table>(table: &mut T) {
    for number in 0..OTHERS {
        let key = number.to_be_bytes();
        put(table, &key, &VALUE);
    }
}

fn put<T: Table>(table: &mut T, key: &[u8], value: &[u8]) {
    let keyhash = SEED.keyhash(key);
    let large = Large {
        key,
        keyhash,
        value,
        now: NOW,
    };
    let draft = table.draft(T::HomeBucket::default(), 0, &large, |_| true);
    let mut writer = table.enter(0);
    writer.bring(draft);
    let stored = writer.put(keyhash, &NewItem::new(key, value), NOW);
    writer.bring(None);
    assert!(matches!(stored, Stored::Yes(_)), "{stored:?}");
}

/// Puts bytes before and after the value.
fn extend<T: Table>(table: &mut T, parts: [&[u8]; 2]) -> Option<Stored> {
    let item = NewItem {
        key: KEY,
        value: parts,
        flags: 3,
        expiry: Expiry::at_ms(NOW.ms + 1),
        history: History::NEW,
    };
    table.enter(0).extend(SEED.keyhash(KEY), &item, NOW)
}

fn found<T: Table>(table: &mut T) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut writer = table.enter(0);
    let read = writer.read(SEED.keyhash(KEY), KEY, NOW, |item| {
        item.value().append_to(&mut value)
    });
    read.map(|()| value)
}

fn assert_others_stay<T: Table>(table: &mut T, what: &str) {
    let writer = table.enter(0);
    let is_lost = |number: &u32| {
        let key = number.to_be_bytes();
        writer.find(SEED.keyhash(&key), &key, NOW).is_none()
    };
    let lost = (0..OTHERS).filter(is_lost).count();
    assert_eq!(lost, 0, "of {OTHERS} others, beside a value that is {what}");
}

/// A value grows to a sixteenth of the memory by small steps, several times over.
pub fn by_appends<T: Table>(mut table: T) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    fill(&mut table);
    for _ in 0..3 {
        put(&mut table, KEY, &[]);
        let mut model = Vec::new();
        while model.len() < TABLE_BYTES / 16 {
            let most = if rng.random_bool(0.02) { 30_000 } else { 300 };
            let more: Vec<u8> = (0..rng.random_range(1..most))
                .map(|_| rng.random())
                .collect();
            assert!(matches!(
                extend(&mut table, [&[], &more]),
                Some(Stored::Yes(_))
            ));
            model.extend(more);
            if rng.random_bool(0.05) {
                assert!(
                    found(&mut table).as_ref() == Some(&model),
                    "{} bytes",
                    model.len()
                );
            }
        }
        assert!(found(&mut table) == Some(model));
    }
    let more = vec![7; ITEM_BYTES_MAX - TABLE_BYTES / 16];
    assert_eq!(extend(&mut table, [&[], &more]), Some(Stored::TooLarge));
    assert_others_stay(&mut table, "appended to");
}

/// Bytes are put in front of a value.
pub fn by_prepends<T: Table>(mut table: T) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    fill(&mut table);
    put(&mut table, KEY, &[]);
    let mut model = Vec::new();
    while model.len() < TABLE_BYTES / 16 {
        let more: Vec<u8> = (0..rng.random_range(1..1_000))
            .map(|_| rng.random())
            .collect();
        assert!(matches!(
            extend(&mut table, [&more, &[]]),
            Some(Stored::Yes(_))
        ));
        model.splice(..0, more);
    }
    assert!(found(&mut table) == Some(model));
    assert_others_stay(&mut table, "prepended to");
}

/// Values of many lengths are stored under one key.
pub fn by_stores<T: Table>(mut table: T) {
    let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
    fill(&mut table);
    for round in 0..2_000 {
        let value = vec![round as u8; rng.random_range(TABLE_BYTES / 40..TABLE_BYTES / 20)];
        put(&mut table, KEY, &value);
    }
    assert_others_stay(&mut table, "stored again");
}
