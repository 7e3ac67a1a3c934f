//! What every plan promises, over random stores and requests; and that a policy that sorts requests
//! by size needs nothing but a file of its own.

use glimmer_base::Keyhash;
use glimmer_dispatch::{AccessMode, Ask, Decision, Drains, Intake, LargeCores, Layout, POLICIES};
use glimmer_dispatch::{PartitionMap, Plan, Policy, Role, Settings, named};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Core 0 and the others below it serve small requests; the last core serves large ones.
#[derive(Debug)]
struct StaticThreshold;

const LARGE_FROM: u32 = 1500;

impl Policy for StaticThreshold {
    fn name(&self) -> &'static str {
        "static-threshold"
    }

    fn summary(&self) -> &'static str {
        "the last worker, for large values"
    }

    fn check(&self, access: AccessMode) -> Result<(), &'static str> {
        match access {
            AccessMode::Crcw => Ok(()),
            _ => Err("static-threshold hands a request to any core; give --access crcw"),
        }
    }

    fn plan(&self, layout: Layout) -> Plan {
        let mut roles = vec![Role::default(); layout.map.cores()];
        roles.last_mut().unwrap().sizes = LARGE_FROM..u32::MAX;
        Plan::by_size(layout, LARGE_FROM, roles)
    }
}

/// Seeds of layouts, one after another.
fn seeds(count: u64) -> impl Iterator<Item = u64> + Clone {
    let first = glimmer_seeds::seed();
    (0..count).map(move |number| first.wrapping_add(number))
}

fn layouts(seed: u64) -> (SmallRng, PartitionMap) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let map = PartitionMap::new(rng.random_range(1..=64), rng.random_range(1..=16));
    (rng, map)
}

/// A server with one worker goes without the cost of sharing, whatever its access mode, so a policy
/// that has passed the access mode is asked for a plan of an exclusive store.
#[test]
fn one_core_may_sort_by_size_in_every_access_mode() {
    for &access in AccessMode::ALL {
        let map = PartitionMap::new(4, 1);
        let plan = StaticThreshold.plan(Layout { map, access });
        let decision = plan.on_arrival(0, Keyhash(7), Ask::Write { bytes: LARGE_FROM });
        assert_eq!(decision, Decision::Run, "{access}");
        assert_eq!(plan.on_sized(0, LARGE_FROM), Decision::Run, "{access}");
    }
}

/// A request never executes on a core that may not execute it, and never travels twice.
#[test]
fn a_request_executes_on_a_core_that_may_execute_it() {
    let policies = POLICIES
        .iter()
        .copied()
        .chain([&StaticThreshold as &dyn Policy]);
    for policy in policies {
        for seed in seeds(500) {
            let (mut rng, map) = layouts(seed);
            for &access in AccessMode::ALL {
                if policy.check(access).is_err() {
                    continue;
                }
                let layout = Layout { map, access };
                let plan = policy.plan(layout);
                for _ in 0..50 {
                    let core = rng.random_range(0..map.cores());
                    let keyhash = Keyhash(rng.random());
                    let bytes = 1 << rng.random_range(0..20);
                    let ask = match rng.random() {
                        true => Ask::Read,
                        false => Ask::Write { bytes },
                    };
                    let mut at = core;
                    let mut decision = plan.on_arrival(core, keyhash, ask);
                    if decision == Decision::Run && ask == Ask::Read && bytes > plan.size_max() {
                        decision = plan.on_sized(core, bytes);
                    }
                    if let Decision::HandTo(other) = decision {
                        assert_ne!(other, core, "{policy:?}, seed {seed}");
                        at = other;
                    }
                    let may_run = layout.may_run(at, keyhash, ask == Ask::Read);
                    assert!(
                        may_run,
                        "{policy:?}, {access}, seed {seed}: {at} runs {ask:?}"
                    );
                    assert_eq!(plan.on_sized(at, bytes), Decision::Run, "it travels again");
                }
            }
        }
    }
}

/// As the workers did before there were plans: everything in EREW and writes in CREW go to the
/// partition's owner, and all else stays.
#[test]
fn keyhash_hands_over_what_the_access_mode_leaves_to_the_owner() {
    let policy = named("keyhash", &Settings::DEFAULT).unwrap();
    for seed in seeds(500) {
        let (mut rng, map) = layouts(seed);
        for &access in AccessMode::ALL {
            let plan = policy.plan(Layout { map, access });
            let core = rng.random_range(0..map.cores());
            let keyhash = Keyhash(rng.random());
            let owner = keyhash.partition(map.partitions()) % map.cores();
            let at_owner = match owner == core {
                true => Decision::Run,
                false => Decision::HandTo(owner),
            };
            let (read, write) = match access {
                AccessMode::Erew => (at_owner, at_owner),
                AccessMode::Crew => (Decision::Run, at_owner),
                AccessMode::Crcw => (Decision::Run, Decision::Run),
            };
            let bytes = rng.random();
            assert_eq!(
                plan.on_arrival(core, keyhash, Ask::Read),
                read,
                "seed {seed}"
            );
            let ask = Ask::Write { bytes };
            assert_eq!(plan.on_arrival(core, keyhash, ask), write, "seed {seed}");
            assert_eq!(plan.on_sized(core, bytes), Decision::Run, "seed {seed}");
            assert_eq!(plan.size_max(), u32::MAX);
        }
    }
}

#[test]
fn a_threshold_hands_large_requests_to_the_core_whose_role_has_their_size() {
    let map = PartitionMap::new(8, 4);
    let access = AccessMode::Crcw;
    let plan = StaticThreshold.plan(Layout { map, access });
    let on_arrival = |core, ask| plan.on_arrival(core, Keyhash(5), ask);
    assert_eq!(on_arrival(0, Ask::Read), Decision::Run);
    assert_eq!(on_arrival(0, Ask::Write { bytes: 1499 }), Decision::Run);
    let large = Ask::Write { bytes: 1500 };
    assert_eq!(on_arrival(0, large), Decision::HandTo(3));
    assert_eq!(on_arrival(3, large), Decision::Run);
    assert_eq!(plan.size_max(), 1499);
    assert_eq!(plan.on_sized(1, 1499), Decision::Run);
    assert_eq!(plan.on_sized(1, 1 << 20), Decision::HandTo(3));
    assert!(!plan.keeps_order());
    assert!(StaticThreshold.check(AccessMode::Erew).is_err());
}

/// A plan that goes by the owner is the plan of EREW, so requests for one key keep their order.
#[test]
fn every_request_can_go_to_the_owner_in_every_access_mode() {
    for seed in seeds(500) {
        let (mut rng, map) = layouts(seed);
        for &access in AccessMode::ALL {
            let plan = Plan::by_owner(Layout { map, access });
            assert!(plan.keeps_order());
            assert_eq!(plan.size_max(), u32::MAX);
            let core = rng.random_range(0..map.cores());
            let keyhash = Keyhash(rng.random());
            let owner = map.owner(keyhash);
            let at_owner = match owner == core {
                true => Decision::Run,
                false => Decision::HandTo(owner),
            };
            for ask in [Ask::Read, Ask::Write { bytes: 1 << 20 }] {
                let decision = plan.on_arrival(core, keyhash, ask);
                assert_eq!(decision, at_owner, "{access}, seed {seed}: {ask:?}");
            }
        }
    }
}

#[test]
fn policies_are_found_by_their_names() {
    for policy in POLICIES {
        assert_eq!(
            named(policy.name(), &Settings::DEFAULT).unwrap().name(),
            policy.name()
        );
    }
    assert!(
        named("random", &Settings::DEFAULT)
            .unwrap_err()
            .starts_with("one of keyhash")
    );
}

#[test]
fn a_policy_that_leaves_a_role_without_a_worker_is_refused() {
    let settings = Settings {
        large_cores: LargeCores::Fixed(2),
        ..Settings::DEFAULT
    };
    for (name, workers_min) in [
        ("keyhash", 1),
        ("owner", 1),
        ("stealing", 1),
        ("handoff", 2),
        ("handoff:3", 4),
        ("size-aware", 3),
    ] {
        let policy = named(name, &settings).unwrap();
        for workers in 1..=5 {
            let checked = policy.check_workers(workers);
            assert_eq!(checked.is_ok(), workers >= workers_min, "{name}, {workers}");
            assert!(checked.is_ok() || checked.unwrap_err().contains("raise -t"));
        }
    }
    for large_cores in [LargeCores::Auto, LargeCores::Paper] {
        let settings = Settings {
            large_cores,
            ..settings
        };
        let policy = named("size-aware", &settings).unwrap();
        assert_eq!(policy.check_workers(1), Ok(()), "one worker serves all");
    }
}

#[test]
fn the_documentation_says_what_each_policy_does() {
    let page = include_str!("../../../docs/flags.md");
    let is_dispatch = |row: &&str| row.starts_with("| `--dispatch` |");
    let row = page.lines().find(is_dispatch).expect("a row");
    for policy in POLICIES {
        let entry = format!("`{}`: {}", policy.name(), policy.summary());
        assert!(
            row.contains(&entry),
            "docs/flags.md lacks for --dispatch:\n{entry}"
        );
    }
}

/// Where cores take from one another's RX queues, every queue has a core that looks at it in each
/// turn, none has one core twice, and a core that hands on or is large takes no part.
#[test]
fn every_rx_queue_is_drained() {
    let with = |text: &str| named(text, &Settings::DEFAULT).unwrap();
    let fixed = Settings {
        large_cores: LargeCores::Fixed(1),
        ..Settings::DEFAULT
    };
    let more = [
        with("handoff:2"),
        with("size-aware:100"),
        named("size-aware", &fixed).unwrap(),
    ];
    let policies = POLICIES
        .iter()
        .copied()
        .chain(more.iter().map(|policy| &**policy));
    for policy in policies.chain([&StaticThreshold as &dyn Policy]) {
        for seed in seeds(200) {
            let (_, map) = layouts(seed);
            let access = AccessMode::Crcw;
            let plan = policy.plan(Layout { map, access });
            let drains: Vec<_> = (0..map.cores()).map(|core| plan.drains(core)).collect();
            for (core, of_core) in drains.iter().enumerate() {
                let reads = |drains: &Drains| drains.reads.iter().any(|read| read.rx == core);
                assert!(
                    drains.iter().any(reads),
                    "{policy:?}, {seed}: nobody reads {core}"
                );
                let mut all: Vec<usize> = of_core.reads.iter().map(|read| read.rx).collect();
                all.extend(&of_core.takes);
                let count = all.len();
                all.sort_unstable();
                all.dedup();
                assert_eq!(all.len(), count, "{policy:?}, {seed}: {of_core:?}");
                let role = plan.role(core);
                let hands_on = role.intake == Intake::HandOff && all.is_empty();
                assert_eq!(
                    hands_on,
                    role.intake == Intake::HandOff,
                    "{policy:?}, {seed}"
                );
            }
        }
    }
    let roles = |policy: &dyn Policy, cores| {
        let map = PartitionMap::new(8, cores);
        let access = AccessMode::Crcw;
        let plan = policy.plan(Layout { map, access });
        let drains = (0..cores).map(|core| plan.drains(core));
        let pairs = |drains: Drains| {
            let reads = drains.reads.iter().map(|read| (read.rx, read.budget));
            (reads.collect::<Vec<_>>(), drains.takes)
        };
        drains.map(pairs).collect::<Vec<_>>()
    };
    let own = |core| (vec![(core, 32)], vec![]);
    assert_eq!(roles(&*with("keyhash"), 2), [own(0), own(1)]);
    let dispatched = (vec![(0, 1), (1, 1), (2, 1)], vec![]);
    let expected = [(vec![], vec![]), dispatched.clone(), dispatched];
    assert_eq!(roles(&*with("handoff"), 3), expected);
    let stealing = [(vec![(0, 32)], vec![1]), (vec![(1, 32)], vec![0])];
    assert_eq!(roles(&*with("stealing"), 2), stealing);
    let fixed = named("size-aware", &fixed).unwrap();
    let both = |core| (vec![(core, 32), (2, 16)], vec![]);
    assert_eq!(roles(&*fixed, 3), [both(0), both(1), (vec![], vec![])]);
    let auto = [(vec![(0, 32), (1, 32)], vec![]), (vec![], vec![1, 0])];
    assert_eq!(roles(&*with("size-aware"), 2), auto);
    assert_eq!(roles(&StaticThreshold, 2), [own(0), own(1)]);
}
