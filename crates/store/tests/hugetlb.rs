//! Reserved huge pages, where there are some: the tests reserve a few if they may, and give them
//! back; where they may not they say so.
#![cfg(target_os = "linux")]
#![cfg(not(loom))]

use glimmer_base::{Expiry, Moment, Seed};
use glimmer_store::access::Erew;
use glimmer_store::evict::S3_FIFO;
use glimmer_store::heap::{History, NewItem};
use glimmer_store::memory::{PagePolicy, PageReport};
use glimmer_store::mica_cache::{Owner, PartitionConfig};
use glimmer_store::table::{Table, TableWriter};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, process};

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// Reserving is a matter of the whole machine, so that one test at a time does it.
static MACHINE: Mutex<()> = Mutex::new(());

/// Huge pages that were reserved for the test; given back when dropped.
struct Reserved(
    String,
    #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>,
);

impl Reserved {
    fn pages(count: usize) -> Option<Reserved> {
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = fs::read_to_string(RESERVED).ok()?.trim().to_owned();
        let wanted = before.parse::<usize>().ok()? + count;
        fs::write(RESERVED, wanted.to_string()).ok()?;
        let reserved = Reserved(before, machine);
        let got: usize = fs::read_to_string(RESERVED).ok()?.trim().parse().ok()?;
        (got >= wanted).then_some(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Err(error) = fs::write(RESERVED, &self.0) {
            eprintln!("could not put {RESERVED} back to {}: {error}", self.0);
        }
    }
}

/// Pages of this size that are reserved and not in use.
fn free_pages() -> usize {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let free = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.unwrap().trim().parse().unwrap()
}

fn small(pages: PagePolicy) -> PartitionConfig {
    PartitionConfig {
        log_bytes: 16 << 20,
        main_buckets: 1_000,
        pages,
        ..PartitionConfig::default()
    }
}

#[test]
fn reserved_pages_are_left_alone_unless_asked_for_and_then_taken_at_once() {
    let Some(_reserved) = Reserved::pages(20) else {
        println!("SKIPPED: no huge pages can be reserved here (needs root and free memory)");
        return;
    };
    let before = free_pages();
    let usual = Owner::<Erew>::new(&small(PagePolicy::default()), S3_FIFO).unwrap();
    assert_eq!(free_pages(), before, "the default takes reserved pages");
    drop(usual);
    let asked = Owner::<Erew>::new(&small(PagePolicy::Hugetlb), S3_FIFO).unwrap();
    let addresses: Vec<_> = asked.figures().addresses();
    assert!(
        PageReport::of(&addresses).hugetlb_bytes >= 14 << 20,
        "taken when touched"
    );
    assert!(free_pages() + 7 <= before);
}

/// A control group that may use no huge page; removed when dropped.
struct Forbidden {
    mount: PathBuf,
    group: PathBuf,
}

impl Forbidden {
    fn new() -> Option<Forbidden> {
        let mount = env::temp_dir().join(format!("glimmer-cgroup-{}", process::id()));
        fs::create_dir(&mount).ok()?;
        let mounted = Command::new("mount")
            .args(["-t", "cgroup", "-o", "hugetlb", "none"])
            .arg(&mount)
            .output()
            .is_ok_and(|mounted| mounted.status.success());
        let group = mount.join(format!("glimmer-test-{}", process::id()));
        let forbidden = Forbidden { mount, group };
        if !mounted {
            return None;
        }
        fs::create_dir(&forbidden.group).ok()?;
        let limit = forbidden.group.join("hugetlb.2MB.limit_in_bytes");
        fs::write(limit, "0").ok().map(|()| forbidden)
    }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
        let _ = Command::new("umount").arg(&self.mount).output();
        let _ = fs::remove_dir(&self.mount);
    }
}

const GROUP: &str = "GLIMMER_TEST_CGROUP";

/// Without taking the pages at the start, the first touch is SIGBUS.
#[test]
fn a_limit_of_the_control_group_is_an_error_and_no_signal() {
    let Some(_reserved) = Reserved::pages(20) else {
        println!("SKIPPED: no huge pages can be reserved here (needs root and free memory)");
        return;
    };
    let Some(forbidden) = Forbidden::new() else {
        println!("SKIPPED: no control group for huge pages can be made here");
        return;
    };
    let child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "inside_the_control_group",
            "--ignored",
            "--nocapture",
        ])
        .env(GROUP, &forbidden.group)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{}: {told}", child.status);
    assert!(told.contains("1 passed"), "{told}");
}

/// What the test before runs in a process of its own.
#[test]
#[ignore = "runs within a control group that another test makes"]
fn inside_the_control_group() {
    let group = env::var_os(GROUP).expect("a control group");
    let members = Path::new(&group).join("cgroup.procs");
    fs::write(members, process::id().to_string()).unwrap();
    let refused = Owner::<Erew>::new(&small(PagePolicy::Hugetlb), S3_FIFO);
    let Err(error) = refused else {
        panic!("the control group has no limit");
    };
    assert!(error.to_string().contains("no huge page"), "{error}");
    // The default works on other pages.
    let mut owner = Owner::<Erew>::new(&small(PagePolicy::default()), S3_FIFO).unwrap();
    fill(&mut owner);
}

fn fill(owner: &mut Owner<Erew>) {
    for n in 0..100_000u32 {
        let key = n.to_le_bytes();
        let item = NewItem {
            key: &key,
            value: [&[7; 600], &[]],
            flags: 0,
            expiry: Expiry::NEVER,
            history: History::NEW,
        };
        let keyhash = PartitionConfig::default().hasher.keyhash(&key);
        owner.enter(0).put(keyhash, &item, NOW);
    }
}

const NOW: Moment = Moment {
    ms: 2_000,
    epoch_unix_ms: 0,
};

#[test]
fn a_partition_lies_on_reserved_huge_pages() {
    let Some(_reserved) = Reserved::pages(40) else {
        println!("SKIPPED: no huge pages can be reserved here (needs root and free memory)");
        return;
    };
    // Neither log is a multiple of a huge page before rounding.
    let config = PartitionConfig {
        log_bytes: (45 << 20) + 12_288,
        main_buckets: 10_001,
        pages: PagePolicy::Hugetlb,
        ..PartitionConfig::default()
    };
    let mut owner = Owner::<Erew>::new(&config, S3_FIFO).expect("40 pages suffice");
    fill(&mut owner);
    let key = 99_999u32.to_le_bytes();
    let found = owner
        .enter(0)
        .read(Seed(0).keyhash(&key), &key, NOW, |item| item.value().len());
    assert_eq!(found, Some(600));
    let addresses: Vec<_> = owner.figures().addresses();
    let report = PageReport::of(&addresses);
    assert!(report.hugetlb_bytes >= 40 << 20, "{report:?}");
    assert!(owner.figures().heap_bytes() <= config.log_bytes as u64);

    // A tenth of this log is less than a huge page: it lies on other pages, and is no error.
    let config = PartitionConfig {
        log_bytes: 13 << 20,
        ..config
    };
    Owner::<Erew>::new(&config, S3_FIFO).expect("13 MiB hold whole huge pages");
}
