//! The keeper of a circuit, rule by rule. The circuit is shared with the test, which looks keys up
//! in it as a client's request does.
#![cfg(not(loom))]

use glimmer_accel_device::Keeper;
use glimmer_accel_device::device::{Capabilities, Device, DeviceCounters, DeviceError, Mode};
use glimmer_accel_device::models::{Circuit, LookUp};
use glimmer_base::Keyhash;
use glimmer_hotset::layout::{HotItem, NEVER_NS};
use glimmer_hotset::policies::{Counting, Paper};
use glimmer_hotset::{Body, Kept, Offer, Pause, Prices};
use std::sync::{Arc, Mutex};

/// A circuit that the test can look into, and take away.
#[derive(Clone, Debug)]
struct Shared(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    circuit: Circuit,
    is_lost: bool,
    hits: u64,
}

impl Shared {
    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut inner = self.0.lock().unwrap();
        let found = inner.circuit.look_up(key.as_bytes());
        inner.hits += u64::from(found.is_some());
        found
    }

    fn is_writable(&self) -> bool {
        self.0.lock().unwrap().circuit.is_in_write_mode()
    }

    fn with<R>(
        &self,
        operate: impl FnOnce(&mut Circuit) -> Result<R, DeviceError>,
    ) -> Result<R, DeviceError> {
        let mut inner = self.0.lock().unwrap();
        match inner.is_lost {
            true => Err(DeviceError::Lost),
            false => operate(&mut inner.circuit),
        }
    }
}

impl Device for Shared {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_readable_counts: false,
            ..self.0.lock().unwrap().circuit.capabilities()
        }
    }

    fn switch_mode(&mut self, mode: Mode) {
        let _ = self.with(|circuit| {
            circuit.switch_mode(mode);
            Ok(())
        });
    }

    fn delete(&mut self, key: &[u8]) -> Result<Option<usize>, DeviceError> {
        self.with(|circuit| circuit.delete(key))
    }

    fn reserve(&mut self, key: &[u8], weight: u8) -> Result<Option<usize>, DeviceError> {
        self.with(|circuit| circuit.reserve(key, weight))
    }

    fn associate_address(&mut self, slot: usize, address: usize) -> Result<(), DeviceError> {
        self.with(|circuit| circuit.associate_address(slot, address))
    }

    fn associate_length(&mut self, slot: usize, bytes: usize) -> Result<(), DeviceError> {
        self.with(|circuit| circuit.associate_length(slot, bytes))
    }

    fn associate_length_and_flags(
        &mut self,
        slot: usize,
        bytes: usize,
        flags: u32,
    ) -> Result<(), DeviceError> {
        self.with(|circuit| circuit.associate_length_and_flags(slot, bytes, flags))
    }

    fn associate_cas(&mut self, slot: usize, cas: u64) -> Result<(), DeviceError> {
        self.with(|circuit| circuit.associate_cas(slot, cas))
    }

    fn write_value(&mut self, slot: usize, memory: &[u8]) -> Result<(), DeviceError> {
        self.with(|circuit| circuit.write_value(slot, memory))
    }

    fn reset_counts(&mut self) -> Result<(), DeviceError> {
        self.with(Device::reset_counts)
    }

    fn count(&self, _slot: usize) -> Option<u8> {
        None
    }

    fn counters(&mut self) -> Option<DeviceCounters> {
        Some(DeviceCounters {
            hits: self.0.lock().unwrap().hits,
            ..DeviceCounters::default()
        })
    }

    fn is_lost(&self) -> bool {
        self.0.lock().unwrap().is_lost
    }

    fn give_up(&mut self, reason: &str) {
        let inner = self.0.lock().unwrap();
        assert!(inner.is_lost, "given up: {reason}");
    }
}

fn keeper(value_bytes: usize) -> (Keeper, Shared) {
    let inner = Inner {
        circuit: Circuit::new(64, value_bytes),
        is_lost: false,
        hits: 0,
    };
    let shared = Shared(Arc::new(Mutex::new(inner)));
    let policy = Box::new(Counting::new(64, 0));
    (Keeper::new(Box::new(shared.clone()), policy), shared)
}

fn hash(key: &str) -> Keyhash {
    glimmer_base::Seed(1).keyhash(key.as_bytes())
}

fn offer(key: &str) -> Offer {
    Offer {
        key: key.as_bytes().into(),
        keyhash: hash(key),
        weight: 63,
    }
}

fn item<'a>(key: &'a str, value: &'a str) -> HotItem<'a> {
    HotItem {
        key: key.as_bytes(),
        value: value.as_bytes(),
        flags: 0,
        cas: 0,
        deadline_ns: NEVER_NS,
    }
}

fn fill(keeper: &Keeper, key: &str, value: &str) -> Kept {
    keeper.fill(&offer(key), keeper.epoch(), Some(&item(key, value)), 0)
}

#[test]
fn a_key_is_gone_before_its_change_and_new_after_it() {
    let (keeper, circuit) = keeper(4096);
    assert!(keeper.retract(hash("a")).is_none());
    assert_eq!(fill(&keeper, "a", "old"), Kept::Live);
    assert_eq!(circuit.get("a").unwrap(), b"old");
    let epoch = keeper.epoch();
    let deleted = keeper.retract(hash("a")).unwrap();
    assert!(circuit.is_writable());
    // Another key comes in meanwhile, so the circuit answers again.
    assert_eq!(fill(&keeper, "b", "other"), Kept::Live);
    assert!(!circuit.is_writable());
    assert_eq!(circuit.get("a"), None);
    let kept = keeper.refill(deleted, epoch, Some(&item("a", "new")), 0);
    assert_eq!((kept, keeper.figures(0).live), (Kept::Live, 2));
    assert_eq!(circuit.get("a").unwrap(), b"new");
    let deleted = keeper.retract(hash("a")).unwrap();
    assert_eq!(keeper.refill(deleted, epoch, None, 0), Kept::Unfit);
    assert!(!circuit.is_writable());
    assert_eq!((circuit.get("a"), keeper.figures(0).live), (None, 1));
}

#[test]
fn an_eviction_deletes() {
    let (keeper, circuit) = keeper(4096);
    fill(&keeper, "a", "old");
    assert!(keeper.evict(hash("a")) && !keeper.evict(hash("a")));
    assert!(!circuit.is_writable());
    assert_eq!(circuit.get("a"), None);
}

#[test]
fn what_was_looked_up_before_a_flush_comes_too_late() {
    let (keeper, circuit) = keeper(4096);
    let epoch = keeper.epoch();
    fill(&keeper, "a", "old");
    keeper.flush(&mut || {
        assert_eq!(circuit.get("a"), None);
        None
    });
    assert_eq!((circuit.get("a"), circuit.is_writable()), (None, false));
    let kept = keeper.fill(&offer("b"), epoch, Some(&item("b", "old")), 0);
    assert_eq!((kept, circuit.get("b")), (Kept::Late, None));
    assert_eq!(fill(&keeper, "b", "new"), Kept::Live);
    assert_eq!(circuit.get("b").unwrap(), b"new");
}

#[test]
fn nothing_is_answered_while_a_flush_is_due_later_or_the_keeper_pauses() {
    let (keeper, circuit) = keeper(4096);
    fill(&keeper, "a", "old");
    keeper.flush(&mut || Some(1));
    assert_eq!(fill(&keeper, "a", "old"), Kept::Late);
    assert!(circuit.is_writable());
    assert_eq!(keeper.figures(0).paused, [Pause::FlushPending]);
    keeper.flush(&mut || None);
    assert!(!circuit.is_writable());
    fill(&keeper, "a", "new");
    keeper.pause(Pause::Watched, true);
    keeper.pause(Pause::ClockMoved, true);
    let deleted = keeper.retract(hash("a")).unwrap();
    keeper.refill(deleted, keeper.epoch(), Some(&item("a", "newer")), 0);
    keeper.pause(Pause::Watched, false);
    assert_eq!((circuit.get("a"), keeper.figures(0).live), (None, 0));
    keeper.pause(Pause::ClockMoved, false);
    assert_eq!(circuit.get("a").unwrap(), b"newer");
}

#[test]
fn items_that_expire_or_are_empty_or_too_long_stay_out() {
    let (keeper, circuit) = keeper(1000);
    let mortal = HotItem {
        deadline_ns: NEVER_NS - 1,
        ..item("a", "value")
    };
    let kept = keeper.fill(&offer("a"), keeper.epoch(), Some(&mortal), 0);
    assert_eq!(kept, Kept::Unfit);
    assert_eq!(fill(&keeper, "b", ""), Kept::Unfit);
    assert_eq!(fill(&keeper, "c", &"x".repeat(1001)), Kept::Unfit);
    assert_eq!(fill(&keeper, "d", &"x".repeat(600)), Kept::Live);
    assert_eq!(fill(&keeper, "e", &"y".repeat(600)), Kept::NoRoom);
    assert_eq!(circuit.get("e"), None);
    assert_eq!(fill(&keeper, "f", &"z".repeat(400)), Kept::Live);
    // An item that begins to expire leaves.
    let deleted = keeper.retract(hash("d")).unwrap();
    let mortal = HotItem {
        deadline_ns: 1,
        ..item("d", "value")
    };
    assert_eq!(
        keeper.refill(deleted, keeper.epoch(), Some(&mortal), 0),
        Kept::Unfit
    );
    assert_eq!(circuit.get("d"), None);
}

#[test]
fn each_key_gets_an_equal_part_of_the_hits() {
    let (keeper, circuit) = keeper(4096);
    for key in ["a", "b", "c"] {
        fill(&keeper, key, "value");
    }
    (0..10).for_each(|_| drop(circuit.get("a")));
    let mut credits = Vec::new();
    keeper.harvest(1, &|key| key != hash("c"), &mut |credit| {
        credits.push(credit)
    });
    assert_eq!(credits.len(), 2);
    keeper.evict(hash("c"));
    keeper.harvest(2, &|_| true, &mut |credit| credits.push(credit));
    let sum: u64 = credits.iter().map(|credit| credit.hits).sum();
    assert_eq!((sum, keeper.hits()), (10, 10));
    assert!(credits.iter().all(|credit| credit.hits <= 6));
}

#[test]
fn a_device_that_is_lost_has_no_keys() {
    let (keeper, circuit) = keeper(4096);
    fill(&keeper, "a", "old");
    circuit.0.lock().unwrap().is_lost = true;
    let deleted = keeper.retract(hash("a")).unwrap();
    let kept = keeper.refill(deleted, keeper.epoch(), Some(&item("a", "new")), 0);
    assert_eq!((kept, keeper.figures(0).live), (Kept::Late, 0));
    assert_eq!(keeper.figures(0).paused, [Pause::DeviceLost]);
    assert_eq!(fill(&keeper, "a", "new"), Kept::Late);
    assert!(keeper.retract(hash("a")).is_none());
}

#[test]
fn a_key_of_the_papers_policy_leaves_when_it_changes() {
    let inner = Inner {
        circuit: Circuit::new(64, 4096),
        is_lost: false,
        hits: 0,
    };
    let circuit = Shared(Arc::new(Mutex::new(inner)));
    let policy = Box::new(Paper::new(64, 0));
    let keeper = Keeper::new(Box::new(circuit.clone()), policy);
    fill(&keeper, "a", "old");
    let deleted = keeper.retract(hash("a")).unwrap();
    let kept = keeper.refill(deleted, keeper.epoch(), Some(&item("a", "new")), 0);
    assert_eq!((kept, circuit.get("a")), (Kept::Evicted, None));
}

/// A purse that is told of hits twice would let a key stay that costs more than it saves.
#[test]
fn the_policy_is_told_of_a_hit_once() {
    let (keeper, circuit) = keeper(4096);
    // A change costs eight hits, and a new key has what pays three changes.
    keeper.priced(Prices::new(8000, 1000));
    fill(&keeper, "a", "old");
    for _ in 0..4 {
        circuit.get("a").unwrap();
    }
    let changed = [(); 4].map(|()| {
        let deleted = keeper.retract(hash("a")).unwrap();
        keeper.refill(deleted, keeper.epoch(), Some(&item("a", "new")), 0)
    });
    assert_eq!(changed, [Kept::Live, Kept::Live, Kept::Live, Kept::Evicted]);
}
