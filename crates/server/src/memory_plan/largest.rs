//! Maximum sizes of partitions and of `-m`.
//!
//! The index of a partition refers to items and buckets by numbers of a fixed width, which limits
//! the size of a partition. A larger store has more partitions, up to [`PARTITIONS_MAX`].

use super::{LARGEST_ITEMS_IN_ONLY_LOG, Needs};
use crate::config::{Mode, TableKind};
use glimmer_base::limits::{ITEM_BYTES_MAX, PARTITIONS_MAX};
use glimmer_store::memc3::Memc3Config;
use glimmer_store::mica_cache::PartitionConfig;
use glimmer_store::mica_store::StoreConfig;

/// The largest partition in bytes, heap and index together.
pub(super) const fn partition_bytes_max(mode: Mode, table: TableKind) -> usize {
    match (mode, table) {
        (Mode::Store, _) => StoreConfig::BYTES_MAX,
        (Mode::Cache, TableKind::Memc3) => Memc3Config::MEMORY_BYTES_MAX,
        (Mode::Cache, TableKind::Mica) => PartitionConfig::MEMORY_BYTES_MAX,
    }
}

/// The largest `-m` in MiB: the maximum number of partitions of the maximum size. A server with a
/// larger `-m` does not start.
pub const fn memory_mib_max(mode: Mode, table: TableKind) -> usize {
    (PARTITIONS_MAX * partition_bytes_max(mode, table)) >> 20
}

const TIB_IN_MIB: usize = 1 << 20;
const _: () = assert!(
    memory_mib_max(Mode::Cache, TableKind::Memc3) == 32 * TIB_IN_MIB
        && memory_mib_max(Mode::Store, TableKind::Mica) / TIB_IN_MIB == 129
        && memory_mib_max(Mode::Cache, TableKind::Mica) / TIB_IN_MIB == 1023,
    "docs/memory.md states the largest -m of each table"
);
const _: () = assert!(
    Memc3Config::MEMORY_BYTES_MAX <= StoreConfig::BYTES_MAX
        && StoreConfig::BYTES_MAX <= PartitionConfig::MEMORY_BYTES_MAX
        && Memc3Config::MEMORY_BYTES_MAX / 2 >= LARGEST_ITEMS_IN_ONLY_LOG * ITEM_BYTES_MAX,
    "half of the largest partition has room for the largest items, so a split keeps the item limit"
);

/// The wanted number of partitions, or more if one of them could not use its share of
/// `store_bytes`.
pub(super) fn enough_partitions(needs: Needs, wanted: usize, store_bytes: usize) -> usize {
    let fewest = store_bytes.div_ceil(partition_bytes_max(needs.mode, needs.table));
    if wanted >= fewest {
        return wanted;
    }
    // The same number for each worker, if the limit allows it.
    match fewest.next_multiple_of(needs.workers) {
        even @ ..=PARTITIONS_MAX => even,
        _ => fewest,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BUFFER_OVERDRAFT_BYTES, MemoryPlan, PAGE_BYTES, PlanError, index_bytes_of};
    use super::*;
    use crate::config::AccessMode;
    use glimmer_base::limits::{ITEM_BYTES_DEFAULT, ITEM_BYTES_MIN, WORKERS_MAX};
    use proptest::prelude::*;

    const MIB: usize = 1 << 20;
    /// 16 TiB.
    const TESTED_MIB_MAX: usize = 16 * TIB_IN_MIB;
    /// More than the buffers of any number of workers need.
    const BUFFERS_MAX: usize = 1 << 30;
    /// Every combination that a server can have.
    const TABLES: [(Mode, TableKind); 3] = [
        (Mode::Cache, TableKind::Mica),
        (Mode::Cache, TableKind::Memc3),
        (Mode::Store, TableKind::Mica),
    ];

    fn needs(mib: usize, (mode, table): (Mode, TableKind)) -> Needs {
        Needs {
            memory_bytes: mib * MIB,
            workers: 4,
            mode,
            table,
            access: AccessMode::Crcw,
            item_bytes_max: ITEM_BYTES_DEFAULT,
            item_bytes_hint: crate::config::ITEM_BYTES_HINT_DEFAULT,
            buffer_bytes: None,
            accelerator_bytes: 0,
            encryption_bytes: 0,
            packet_bytes: 0,
        }
    }

    /// Checks that every table can use the memory that the plan assigns.
    fn check(needs: Needs) {
        let plan = match MemoryPlan::make(needs) {
            Ok(plan) => plan,
            Err(error @ PlanError::TooLarge { .. }) => panic!("{needs:?}: {error}"),
            Err(PlanError::TooSmall { needed_mib, .. }) => {
                assert!(needed_mib * MIB > needs.memory_bytes, "{needs:?}");
                // Only a lack of buffers can make the plan fail, and buffers are smaller than this.
                assert!(needs.memory_bytes < BUFFERS_MAX, "{needs:?}");
                return;
            }
        };
        let most = partition_bytes_max(needs.mode, needs.table);
        assert!(plan.partition_bytes() <= most, "{needs:?}: {plan:?}");
        if needs.mode == Mode::Cache {
            let first = plan.first_sizes();
            let bytes = first.log_bytes + index_bytes_of(first.main_buckets, first.spare_buckets);
            assert!(bytes <= most, "{needs:?}: {first:?}");
        }
        assert!(
            (1..=PARTITIONS_MAX).contains(&plan.partitions),
            "{needs:?}: {plan:?}"
        );
        let items_bytes = match needs.table {
            TableKind::Mica => plan.log_bytes,
            TableKind::Memc3 => plan.partition_bytes(),
        };
        assert!(items_bytes >= LARGEST_ITEMS_IN_ONLY_LOG * plan.item_bytes_max);
        let total_bytes = plan.total_bytes(needs.workers);
        assert!(
            total_bytes <= needs.memory_bytes + BUFFER_OVERDRAFT_BYTES,
            "{needs:?}: {plan:?}"
        );
        let rounded_off = plan.partitions * PAGE_BYTES;
        assert!(
            total_bytes + rounded_off >= needs.memory_bytes / 10 * 9,
            "{needs:?}: {plan:?}"
        );
    }

    #[test]
    fn every_power_of_two_is_divided_into_partitions_that_a_table_can_address() {
        for exponent in 1..=TESTED_MIB_MAX.ilog2() {
            for mib in [(1 << exponent) - 1, 1 << exponent, (1 << exponent) + 1] {
                for table in TABLES {
                    for &access in AccessMode::ALL {
                        for workers in [1, 2, 3, 4, 7, 16, 100, WORKERS_MAX] {
                            check(Needs {
                                workers,
                                access,
                                ..needs(mib, table)
                            });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_memory_works_and_more_names_it() {
        for table in TABLES {
            let largest_mib = memory_mib_max(table.0, table.1);
            for workers in 1..=WORKERS_MAX {
                check(Needs {
                    workers,
                    ..needs(largest_mib, table)
                });
            }
            for memory_bytes in [(largest_mib + 1) * MIB, usize::MAX] {
                let needs = Needs {
                    memory_bytes,
                    ..needs(0, table)
                };
                assert_eq!(MemoryPlan::workers_fitting(needs), needs.workers);
                let error = MemoryPlan::make(needs).unwrap_err().to_string();
                let advice = format!("give at most -m {largest_mib}, or ");
                assert!(error.contains(&advice), "{error}");
            }
        }
    }

    #[test]
    fn a_split_is_even_among_workers() {
        let partitions = |gib: usize, workers| {
            let needs = Needs {
                workers,
                access: AccessMode::Crew,
                ..needs(gib << 10, TABLES[1])
            };
            MemoryPlan::make(needs).unwrap().partitions
        };
        assert_eq!([partitions(8, 1), partitions(9, 1)], [1, 2]);
        assert_eq!([partitions(24, 3), partitions(100, 3)], [3, 15]);
    }

    #[test]
    fn a_split_keeps_the_largest_items() {
        for table in TABLES {
            for &access in AccessMode::ALL {
                for workers in 1..=16 {
                    let mut item_bytes_max = 0;
                    for mib in (1 << 10..160 << 10).step_by(512) {
                        let needs = Needs {
                            workers,
                            access,
                            item_bytes_max: ITEM_BYTES_MAX,
                            item_bytes_hint: 1,
                            ..needs(mib, table)
                        };
                        let plan = MemoryPlan::make(needs).unwrap();
                        assert!(plan.item_bytes_max >= item_bytes_max, "{needs:?}: {plan:?}");
                        item_bytes_max = plan.item_bytes_max;
                    }
                    assert_eq!(item_bytes_max, ITEM_BYTES_MAX, "{table:?}");
                }
            }
        }
    }

    /// Sizes from 2 MiB to 16 TiB, evenly distributed over the orders of magnitude.
    fn any_mib() -> impl Strategy<Value = usize> {
        (1..TESTED_MIB_MAX.ilog2(), 0.0..=1.0f64).prop_map(|(exponent, part)| {
            let least = 1usize << exponent;
            least + (least as f64 * part) as usize
        })
    }

    fn any_needs() -> impl Strategy<Value = Needs> {
        let item_bytes =
            (ITEM_BYTES_MIN.ilog2()..=ITEM_BYTES_MAX.ilog2()).prop_map(|bits| 1 << bits);
        (
            any_mib(),
            1..=WORKERS_MAX,
            prop::sample::select(TABLES.to_vec()),
            prop::sample::select(AccessMode::ALL),
            item_bytes,
            1usize..=ITEM_BYTES_MIN,
        )
            .prop_map(
                |(mib, workers, table, access, item_bytes_max, hint)| Needs {
                    workers,
                    access,
                    item_bytes_max,
                    item_bytes_hint: hint,
                    ..needs(mib, table)
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn every_partition_is_one_that_its_table_can_address(needs in any_needs()) {
            check(needs);
        }

        #[test]
        fn much_more_memory_never_lowers_the_item_limit(needs in any_needs(), mib in any_mib()) {
            let bigger = Needs { memory_bytes: needs.memory_bytes.max(mib * MIB), ..needs };
            if let Ok(plan) = MemoryPlan::make(needs) {
                let bigger = MemoryPlan::make(bigger).expect("more than enough");
                prop_assert!(bigger.item_bytes_max >= plan.item_bytes_max, "{plan:?} {bigger:?}");
            }
        }
    }
}
