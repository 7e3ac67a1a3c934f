//! Memory of items that are dead is used before any live item leaves.

use crate::oracle::SEED;
use glimmer_base::limits::SPARED_ITEMS_MAX;
use glimmer_base::{Expiry, Moment};
use glimmer_store::heap::{History, NewItem};
use glimmer_store::table::{Stored, Table, TableWriter};

/// Items that fill the table once, roughly: what a test stores is stated as a part of this.
pub const ROOM: u32 = 4_000;
/// Bytes of a value. With its key an item takes about 256 bytes.
const VALUE: [u8; 230] = [b'v'; 230];
/// When items die that are to.
const DUE_MS: u64 = 100_000;

/// How the items die that fill the table.
#[derive(Clone, Copy, Debug)]
pub enum Death {
    /// All of them expire.
    Expiry,
    /// They expire, and a walk through the table has removed them.
    FoundByCrawl,
    /// They expire, except one in this many.
    ExpiryExceptOneIn(u32),
    /// Those in the second half expire.
    ExpiryOfTheYounger,
    /// All of them are deleted.
    Deletion,
    /// One in two is deleted.
    DeletionOfHalf,
}

impl Death {
    const ALL: [Death; 7] = [
        Death::Expiry,
        Death::FoundByCrawl,
        Death::ExpiryExceptOneIn(100),
        Death::ExpiryExceptOneIn(20),
        Death::ExpiryOfTheYounger,
        Death::Deletion,
        Death::DeletionOfHalf,
    ];

    fn expires(self, number: u32) -> bool {
        match self {
            Death::Expiry | Death::FoundByCrawl => true,
            Death::ExpiryExceptOneIn(n) => !number.is_multiple_of(n),
            Death::ExpiryOfTheYounger => number > ROOM * 5 / 8,
            Death::Deletion | Death::DeletionOfHalf => false,
        }
    }

    fn is_deleted(self, number: u32) -> bool {
        match self {
            Death::Deletion => true,
            // Neighbours in the log meet different fates.
            Death::DeletionOfHalf => number.wrapping_mul(0x9E37_79B9) >> 31 == 0,
            _ => false,
        }
    }
}

fn at(ms: u64) -> Moment {
    Moment {
        ms,
        epoch_unix_ms: 0,
    }
}

fn put<T: Table>(table: &mut T, number: u32, expiry: Expiry, now: Moment) {
    let key = number.to_be_bytes();
    let item = NewItem {
        key: &key,
        value: [&VALUE, &[]],
        flags: 0,
        expiry,
        history: History::NEW,
    };
    let stored = table.enter(0).put(SEED.keyhash(&key), &item, now);
    assert!(matches!(stored, Stored::Yes(_)), "{stored:?}");
}

fn has<T: Table>(table: &mut T, number: u32, now: Moment) -> bool {
    let key = number.to_be_bytes();
    let writer = table.enter(0);
    writer.find(SEED.keyhash(&key), &key, now).is_some()
}

/// Fills a table with more than it holds, lets those items die, and stores a part of what it
/// holds: each of the new items is there, and so is each of the old ones that has stayed alive.
pub fn is_used_first<T: Table>(new_table: &dyn Fn() -> T) {
    for death in Death::ALL {
        let mut table = new_table();
        for number in 0..ROOM * 5 / 4 {
            let expiry = match death.expires(number) {
                true => Expiry::at_ms(DUE_MS),
                false => Expiry::NEVER,
            };
            put(&mut table, number, expiry, at(2_000));
        }
        for number in (0..ROOM * 5 / 4).filter(|&number| death.is_deleted(number)) {
            let key = number.to_be_bytes();
            table.enter(0).remove(SEED.keyhash(&key), &key, at(3_000));
        }
        let now = at(DUE_MS + 1);
        if matches!(death, Death::FoundByCrawl) {
            let mut chain = Some(0);
            while let Some(number) = chain {
                chain = table.enter(0).expire(number, now).1;
            }
        }
        let alive: Vec<u32> = (0..ROOM * 5 / 4)
            .filter(|&number| has(&mut table, number, now))
            .collect();
        // So that an eighth of the memory stays dead.
        let new = match death {
            Death::ExpiryOfTheYounger => ROOM / 5,
            _ => ROOM / 3,
        };
        let new = ROOM * 2..ROOM * 2 + new;
        for number in new.clone() {
            put(&mut table, number, Expiry::NEVER, now);
        }
        let lost = |table: &mut T, numbers: &mut dyn Iterator<Item = u32>| {
            numbers.filter(|&number| !has(table, number, now)).count()
        };
        let lost = [
            lost(&mut table, &mut new.clone()),
            lost(&mut table, &mut alive.iter().copied()),
        ];
        // Where all dead ones lie behind all live ones, a store comes to the end of what it may
        // move on the way.
        let most = match death {
            Death::ExpiryOfTheYounger => 2 * alive.len() / SPARED_ITEMS_MAX + 2,
            _ => 0,
        };
        assert!(
            lost.iter().sum::<usize>() <= most,
            "{lost:?} new ones, and old ones of {}, were lost, {death:?}",
            alive.len()
        );
    }
}

/// Sessions that live for as long as it takes to store half of what the table holds, and are first
/// read when half of their time is over. Returns how many of `6 * ROOM` are lost by then.
pub fn sessions_lost<T: Table>(mut table: T) -> u32 {
    const LIFE: u32 = ROOM / 2;
    let mut lost = 0;
    for number in 0..6 * ROOM {
        let now = at(2_000 + u64::from(number));
        let expiry = Expiry::at_ms(now.ms + u64::from(LIFE));
        put(&mut table, number, expiry, now);
        if let Some(read) = number.checked_sub(LIFE / 2) {
            let key = read.to_be_bytes();
            let found = table.enter(0).read(SEED.keyhash(&key), &key, now, |_| ());
            lost += u32::from(found.is_none());
        }
    }
    lost
}
