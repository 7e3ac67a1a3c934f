use super::*;
use crate::access::Erew;
use crate::evict::{FIFO, Rule, S3_FIFO};
use crate::heap::NewItem;
use crate::memory::{PagePolicy, PagesAhead};
use crate::mica_cache::{Owner, PartitionConfig};
use crate::table::{Table, TableWriter};
use glimmer_base::{Moment, Seed};

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

fn partitions(count: usize, rule: Rule) -> (Vec<Owner<Erew>>, Commons) {
    let mut config = PartitionConfig {
        log_bytes: 9 << 20,
        main_buckets: 700,
        spare_buckets: 350,
        index_follows: true,
        item_bytes_max: 1 << 20,
        pages: PagePolicy::Small,
        hasher: Seed(0).into(),
        ..PartitionConfig::default()
    };
    let commons = config.commons(count).unwrap();
    config.commons = Some(commons.clone());
    let owners = (0..count).map(|_| Owner::new(&config, rule).unwrap());
    (owners.collect(), commons)
}

/// Stores an item and reads it.
fn put(owner: &mut Owner<Erew>, key: u64, bytes: usize) {
    let (key, value) = (key.to_be_bytes(), vec![1; bytes]);
    let keyhash = Seed(0).keyhash(&key);
    let mut writer = owner.enter(0);
    writer.put(keyhash, &NewItem::new(&key, &value), NOW);
    assert!(writer.read(keyhash, &key, NOW, |_| ()).is_some());
}

/// What partitions have, what they have claimed ahead and what is left is all memory, at any
/// time. Each log that grows claims pages ahead while much is left, and none when nothing is.
#[test]
fn what_is_claimed_ahead_is_used_or_given_back() {
    for rule in [FIFO, S3_FIFO] {
        let mut config = PartitionConfig {
            log_bytes: 80 << 20,
            main_buckets: 700,
            spare_buckets: 350,
            index_follows: true,
            item_bytes_max: 1 << 20,
            hasher: Seed(0).into(),
            pages_ahead: Some(PagesAhead::start(|| ()).unwrap()),
            ..PartitionConfig::default()
        };
        let commons = config.commons(2).unwrap();
        config.commons = Some(commons.clone());
        let mut owners = [0; 2].map(|_| Owner::<Erew>::new(&config, rule).unwrap());
        let mut steps_ahead = [0; 2];
        for key in 0..90_000 {
            put(&mut owners[key as usize % 2], key, 2_000);
            let mut claimed = commons.left();
            for owner in &mut owners {
                let mut writer = owner.enter(0);
                if key % 10_000 == 0 {
                    writer.audit();
                }
                let share = &writer.state.share;
                claimed += share.words + share.ahead.iter().sum::<u64>();
                for (steps, ahead) in steps_ahead.iter_mut().zip(share.ahead) {
                    *steps += u64::from(ahead > 0);
                }
                if rule == S3_FIFO {
                    claimed += writer.limit(LogId::Small);
                }
            }
            assert_eq!(claimed, commons.words(), "{}, {key}", rule.name);
        }
        let [main, small] = steps_ahead;
        assert!(main > 10_000, "{}: {main}", rule.name);
        assert!(rule == FIFO || small > 1_000, "{small}");
        let ahead = owners
            .each_mut()
            .map(|owner| owner.enter(0).state.share.ahead);
        assert!(ahead == [[0; 2]; 2] && commons.left() < PAGE_WORDS);
    }
}

/// Large values have filled one partition with most of the memory. Then small items come, to
/// all partitions alike.
#[test]
fn partitions_come_to_equal_shares_in_the_course_of_laps() {
    for rule in [FIFO, S3_FIFO] {
        let (mut owners, commons) = partitions(4, rule);
        for key in 0..36 {
            put(&mut owners[key as usize % 16 % 4 / 2], key, 1_000_000);
        }
        let words = |owner: &mut Owner<Erew>| {
            let mut writer = owner.enter(0);
            writer.audit();
            let small = writer.limit(LogId::Small);
            (writer.state.share.words, small)
        };
        let before: Vec<_> = owners.iter_mut().map(words).collect();
        assert!(commons.left() < 1 << 17, "{} are left", commons.left());
        assert!(before[0].0 > 3 * before[3].0, "{before:?}");
        for key in 0..80_000 {
            put(&mut owners[key as usize % 4], 1 << 32 | key, 4_000);
        }
        let after: Vec<_> = owners.iter_mut().map(words).collect();
        println!("{}: {before:?} {after:?}", rule.name);
        let equal = commons.words() / 4;
        for (words, small) in after {
            let all = words + if rule == S3_FIFO { small } else { 0 };
            assert!(
                all.abs_diff(equal) < equal / 10,
                "{}: {all} of {equal}",
                rule.name
            );
            assert!(rule == FIFO || small > equal / 12, "a small log of {small}");
        }
    }
}
