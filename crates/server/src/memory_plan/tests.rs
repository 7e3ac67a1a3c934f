//! Plans for many needs, and what the documents say of them.

use super::*;
use proptest::prelude::*;

const MIB: usize = 1 << 20;
/// Entries of a spare bucket.
const SPARE_ENTRIES: usize = 7;

pub(super) fn needs(mib: usize, workers: usize, access: AccessMode) -> Needs {
    Needs {
        memory_bytes: mib * MIB,
        workers,
        mode: Mode::Cache,
        table: TableKind::Mica,
        access,
        item_bytes_max: limits::ITEM_BYTES_DEFAULT,
        item_bytes_hint: crate::config::ITEM_BYTES_HINT_DEFAULT,
        buffer_bytes: None,
        accelerator_bytes: 0,
        encryption_bytes: 0,
        packet_bytes: 0,
    }
}

/// The user's bytes count, within what the largest item needs and a third of the memory.
#[test]
fn buffers_take_what_the_user_says() {
    let needs = needs(4096, 4, AccessMode::Crcw);
    let total = |buffer_bytes| {
        let plan = MemoryPlan::make(Needs {
            buffer_bytes,
            ..needs
        })
        .unwrap();
        (4 * plan.buffer_bytes_per_worker, plan.items_resident(48))
    };
    let (usual, items) = total(None);
    assert_eq!(usual, 64 * MIB);
    let (least, more_items) = total(Some(0));
    assert_eq!(least, 4 * buffer_bytes_min(limits::ITEM_BYTES_DEFAULT));
    assert!(least < usual && more_items > items);
    assert_eq!(total(Some(1024 * MIB)).0, 1024 * MIB);
    let (most, fewer_items) = total(Some(4096 * MIB));
    assert!((1365 * MIB..1366 * MIB).contains(&most) && fewer_items < items);
}

#[test]
fn a_gibibyte_holds_nearly_sixteen_million_small_items() {
    for &access in AccessMode::ALL {
        for workers in [1, 2] {
            let plan = MemoryPlan::make(needs(1024, workers, access)).unwrap();
            let items = plan.items_resident(48);
            assert!(
                items >= 15_800_000,
                "{access} with {workers}: {items} in {plan:?}"
            );
            let entries = plan.partitions * plan.main_buckets * BUCKET_ENTRIES;
            let load = items as f64 / entries as f64;
            assert!(
                (0.99..1.01).contains(&load),
                "{access} with {workers}: load {load}"
            );
        }
    }
}

/// Where the bytes go when the memory is full of items of the default hint.
#[test]
fn the_documents_say_where_the_bytes_of_an_item_go() {
    let (key_bytes, value_bytes) = (16, 32);
    let plan = MemoryPlan::make(needs(1024, 1, AccessMode::Crcw)).unwrap();
    let items = plan.items_resident(key_bytes + value_bytes) as f64;
    let [mains, spares] = [plan.main_buckets, plan.spare_buckets]
        .map(|buckets| (plan.partitions * buckets) as f64 / items);
    let entry_bytes = entry_bytes(key_bytes + value_bytes);
    let places = mains * BUCKET_ENTRIES as f64 + spares * SPARE_ENTRIES as f64;
    let rows = [
        ("key and value", (key_bytes + value_bytes) as f64),
        (
            "header in the log: CAS unique, lengths, marks",
            ENTRY_HEADER_BYTES as f64,
        ),
        (
            "up to the next multiple of 8",
            (entry_bytes - ENTRY_HEADER_BYTES - key_bytes - value_bytes) as f64,
        ),
        ("index entry: tag, offset, use count", 8.0),
        ("versions and links of the buckets", 8.0 * (mains + spares)),
        ("places in buckets without an entry", 8.0 * (places - 1.0)),
        (
            "buffers of the connections, in memory only while in use",
            plan.buffer_bytes_per_worker as f64 / items,
        ),
        ("of `-m`, altogether", (1024 * MIB) as f64 / items),
    ];
    let table: String = (rows.iter())
        .map(|(what, bytes)| format!("| {bytes:.2} | {what} |\n"))
        .collect();
    let document = include_str!("../../../../docs/memory.md");
    assert!(
        document.contains(&table),
        "docs/memory.md has another table than\n{table}"
    );
}

#[test]
fn a_partition_begins_within_the_plan() {
    for mib in [2, 64, 1024] {
        let plan = MemoryPlan::make(needs(mib, 2, AccessMode::Crcw)).unwrap();
        let first = plan.first_sizes();
        let bytes = first.log_bytes + index_bytes_of(first.main_buckets, first.spare_buckets);
        assert!(bytes <= plan.partition_bytes());
        assert!(plan.partition_bytes() - bytes < PAGE_BYTES);
        assert!(first.log_bytes > plan.log_bytes);
    }
}

/// Fewer workers start instead, even if the limit is more than `-m` has room for.
#[test]
fn threads_do_not_lower_the_item_limit() {
    for mib in [2, 8, 16, 64, 256, 1024] {
        for item_kib in [64, 1 << 10, 4 << 10, 32 << 10] {
            for &access in AccessMode::ALL {
                let limit = |threads| {
                    let asked = Needs {
                        item_bytes_max: (item_kib << 10).min(mib * MIB / 2),
                        ..needs(mib, threads, access)
                    };
                    let workers = MemoryPlan::workers_fitting(asked);
                    let plan = MemoryPlan::make(Needs { workers, ..asked }).unwrap();
                    plan.item_bytes_max
                };
                for threads in [2, 4, 16, 32, 256] {
                    assert_eq!(
                        limit(threads),
                        limit(1),
                        "-m {mib} -t {threads}, {item_kib} KiB"
                    );
                }
            }
        }
    }
}

#[test]
fn the_documents_say_how_many_workers_a_small_memory_has_room_for() {
    let fitting = |mib| MemoryPlan::workers_fitting(needs(mib, 256, AccessMode::Crcw));
    let numbers = format!(
        "{} with `-m 64`, {} with `-m 128` and {} with `-m 256`",
        fitting(64),
        fitting(128),
        fitting(256)
    );
    let flags = include_str!("../../../../docs/flags.md");
    let row = flags
        .lines()
        .find(|line| line.starts_with("| `-t`"))
        .unwrap();
    assert!(row.contains(&numbers), "{numbers} is not in {row}");
}

/// Few items make all of an index resident, however large `-m` is.
#[test]
fn a_large_memory_begins_with_a_small_index() {
    let first_bytes = |mib| {
        let plan = MemoryPlan::make(needs(mib, 2, AccessMode::Crcw)).unwrap();
        let first = plan.first_sizes();
        let doublings = (plan.main_buckets / first.main_buckets).ilog2();
        let reached = first.main_buckets << doublings;
        assert!(
            reached >= plan.main_buckets / 100 * 99,
            "whole doublings lead to {plan:?}"
        );
        let bytes = index_bytes_of(first.main_buckets, first.spare_buckets);
        (
            plan.partitions * bytes,
            plan.partitions * (plan.partition_bytes() - plan.log_bytes),
        )
    };
    for mib in [1024, 30_000, 1 << 20] {
        let (first, finally) = first_bytes(mib);
        assert!(
            first <= 16 * MIB && first >= 8 * MIB.min(finally / 17),
            "{mib}: {first}"
        );
    }
}

#[test]
fn a_gibibyte_stores_thirteen_million_small_items() {
    for &access in AccessMode::ALL {
        let needs = Needs {
            mode: Mode::Store,
            ..needs(1024, 2, access)
        };
        let items = MemoryPlan::make(needs).unwrap().items_resident(48);
        assert!(items >= 13_500_000, "{access}: {items}");
    }
}

#[test]
fn an_accelerator_takes_its_memory_from_the_store() {
    for &access in AccessMode::ALL {
        let without = needs(64, 2, access);
        let with = Needs {
            accelerator_bytes: 4 * MIB,
            ..without
        };
        let plans = [without, with].map(|needs| MemoryPlan::make(needs).unwrap());
        let [before, after] = plans.map(|plan| plan.partitions * plan.partition_bytes());
        let rounding = PAGE_BYTES * plans[0].partitions.max(plans[1].partitions);
        assert!(
            (before - after).abs_diff(4 * MIB) <= rounding,
            "{access}: {plans:?}"
        );
        assert_eq!(plans[1].accelerator_bytes, 4 * MIB);
        assert_eq!(
            plans[0].buffer_bytes_per_worker,
            plans[1].buffer_bytes_per_worker
        );
    }
}

#[test]
fn too_little_memory_for_an_accelerator_is_refused() {
    let needs = Needs {
        accelerator_bytes: 8 * MIB,
        ..needs(8, 1, AccessMode::Crcw)
    };
    let needed_mib = needed_mib(MemoryPlan::make(needs).unwrap_err());
    assert!(needed_mib > 8);
    let enough = Needs {
        memory_bytes: needed_mib * MIB,
        ..needs
    };
    assert!(MemoryPlan::make(enough).is_ok());
}

#[test]
fn two_mebibytes_are_enough_with_a_lower_item_limit() {
    for &access in AccessMode::ALL {
        let plan = MemoryPlan::make(needs(2, 4, access)).unwrap();
        assert!(plan.item_bytes_max < limits::ITEM_BYTES_DEFAULT);
        assert!(plan.item_bytes_max >= 100 << 10, "{plan:?}");
    }
}

#[test]
fn the_default_keeps_the_item_limit_and_gives_every_worker_a_partition() {
    for &access in AccessMode::ALL {
        for workers in 1..=4 {
            let plan = MemoryPlan::make(needs(64, workers, access)).unwrap();
            assert_eq!(
                plan.item_bytes_max,
                limits::ITEM_BYTES_DEFAULT,
                "{access} with {workers}"
            );
            assert!(
                plan.partitions >= workers,
                "{access} with {workers}: {plan:?}"
            );
        }
    }
}

#[test]
fn a_small_store_keeps_most_of_its_memory_for_items() {
    for &access in AccessMode::ALL {
        for mib in [16, 24, 32, 64, 128, 1024] {
            let plan = MemoryPlan::make(needs(mib, 2, access)).unwrap();
            let store_bytes = plan.partitions * plan.partition_bytes();
            let share = store_bytes as f64 / (mib * MIB) as f64;
            assert!(share > 0.92, "{access} -m {mib}: {share} of {plan:?}");
            assert_eq!(plan.item_bytes_max, limits::ITEM_BYTES_DEFAULT);
        }
    }
}

#[test]
fn too_small_says_what_would_do() {
    let error = MemoryPlan::make(needs(1, 200, AccessMode::Crcw)).unwrap_err();
    let needed_mib = needed_mib(error);
    assert!(MemoryPlan::make(needs(needed_mib, 200, AccessMode::Crcw)).is_ok());
    assert!(MemoryPlan::make(needs(needed_mib - 1, 200, AccessMode::Crcw)).is_err());
    assert!(
        error.to_string().starts_with("-m 1 is too small"),
        "{error}"
    );
    assert!(MemoryPlan::make(needs(0, 1, AccessMode::Crcw)).is_err());
    assert!(MemoryPlan::make(needs(1, 1, AccessMode::Crcw)).is_ok());
}

fn needed_mib(error: PlanError) -> usize {
    match error {
        PlanError::TooSmall { needed_mib, .. } => needed_mib,
        PlanError::TooLarge { .. } => panic!("{error}"),
    }
}

fn any_needs() -> impl Strategy<Value = Needs> {
    let item_limits = prop::sample::select(vec![1 << 10, 5000, 512 << 10, MIB, 64 * MIB, 1 << 30]);
    let mib = prop_oneof![0usize..64, 64usize..4096, Just(1 << 20)];
    (
        mib,
        1usize..=limits::WORKERS_MAX,
        prop::sample::select(AccessMode::ALL),
        prop::sample::select(Mode::ALL),
        item_limits,
        1usize..2000,
        prop::option::of(0usize..2048),
        prop::sample::select(vec![0, 2 * MIB, 160 * MIB]),
    )
        .prop_map(
            |(mib, workers, access, mode, item_bytes_max, hint, buffers, accelerator_bytes)| {
                Needs {
                    buffer_bytes: buffers.map(|mib| mib * MIB),
                    memory_bytes: mib * MIB,
                    workers,
                    mode,
                    table: TableKind::Mica,
                    access,
                    item_bytes_max,
                    item_bytes_hint: hint.min(item_bytes_max),
                    accelerator_bytes,
                    encryption_bytes: 0,
                    packet_bytes: 0,
                }
            },
        )
}

proptest! {
    #[test]
    fn every_plan_holds_together(needs in any_needs()) {
        match MemoryPlan::make(needs) {
            Err(error) => {
                let needed_mib = needed_mib(error);
                prop_assert!(needed_mib > needs.memory_bytes / MIB);
                let enough = Needs { memory_bytes: needed_mib * MIB, ..needs };
                prop_assert!(MemoryPlan::make(enough).is_ok());
            }
            Ok(plan) => {
                let total_bytes = plan.total_bytes(needs.workers);
                let buffer_bytes = plan.buffer_bytes_per_worker * needs.workers;
                let share = needs.memory_bytes / BUFFER_SHARE_BEFORE_OVERDRAFT;
                let overdraft = buffer_bytes.saturating_sub(share).min(BUFFER_OVERDRAFT_BYTES);
                prop_assert!(total_bytes <= needs.memory_bytes + overdraft, "{plan:?}");
                prop_assert!(total_bytes >= needs.memory_bytes / 10 * 9, "{plan:?}");
                prop_assert!((1..=limits::PARTITIONS_MAX).contains(&plan.partitions));
                prop_assert!(plan.log_bytes > 0 && plan.log_bytes % PAGE_BYTES == 0);
                prop_assert_eq!(plan.main_buckets >= 1, needs.mode == Mode::Cache);
                prop_assert!(plan.item_bytes_max <= needs.item_bytes_max);
                prop_assert!(plan.item_bytes_max >= limits::ITEM_BYTES_MIN);
                prop_assert!(plan.log_bytes >= 3 * plan.item_bytes_max, "{plan:?}");
                let needed_bytes = buffer_bytes_min(plan.item_bytes_max);
                prop_assert!(plan.buffer_bytes_per_worker >= needed_bytes);
                if needs.access == AccessMode::Crcw && plan.partitions > 1 {
                    prop_assert!(plan.log_bytes >= 7 * plan.item_bytes_max, "{plan:?}");
                }
            }
        }
    }

    #[test]
    fn more_memory_never_lowers_the_item_limit(needs in any_needs(), more in 1usize..512) {
        let bigger = Needs { memory_bytes: needs.memory_bytes + more * MIB, ..needs };
        if let Ok(plan) = MemoryPlan::make(needs) {
            let bigger = MemoryPlan::make(bigger).expect("more than enough");
            prop_assert!(bigger.item_bytes_max >= plan.item_bytes_max);
        }
    }
}
