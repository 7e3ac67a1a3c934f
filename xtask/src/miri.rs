//! Runs tests under Miri, which detects undefined behaviour. For each seed, Miri picks a different
//! thread order and different values for relaxed loads.

use crate::passed::{Check, Inputs};
use crate::process::{self, exists, program, run};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The nightly toolchain with Miri. Not every nightly has it.
const TOOLCHAIN: &str = "nightly-2026-05-20";

/// The stage starts no seeds that, judging by earlier ones, would end after this time. The first
/// seeds always run.
pub const STAGE: Duration = Duration::from_secs(60);

/// With tree borrows, a borrow of a part of a log costs nothing until it is used. The default model
/// examines every word of it, which takes several times as long.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-permissive-provenance";

/// Unit tests of code that works on shared words. Other unit tests take too long under Miri.
const UNIT_TESTS: &[&str] = &[
    "--lib",
    "--",
    "evict::",
    "heap::bytes::",
    "heap::cas_sequence::",
    "heap::write::",
    "chunks_never_overlap_and_pages_come_back",
    "a_released_slab_leaves_its_class_in_order",
    "the_index_takes_pages_from_the_end",
    "index::chained::",
    "index::cuckoo::line::",
    "index::entry::",
    "mica_store::name::",
    "mica_store::soonest::",
];

/// The oracle and race tests of all tables, at sizes that Miri can handle.
const TINY_TESTS: &[&str] = &["--test", "tables", "--", "tiny::"];

/// Which seeds the tests of tiny tables take.
#[derive(clap::Args, Default)]
pub struct Seeds {
    /// Take this seed, or begin with it
    #[arg(long = "seed")]
    first: Option<u32>,
    /// How many seeds (default: one if --seed is given, otherwise as many as a stage of the test
    /// suite has time for)
    #[arg(long = "seeds")]
    count: Option<u32>,
}

impl Seeds {
    /// The first seed. Unless one is given, every run uses different seeds.
    pub fn first(&self) -> u32 {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.first
            .unwrap_or_else(|| now().map_or(0, |time| time.as_secs() as u32))
    }

    /// The requested number of seeds; `None` if the time limit decides.
    fn count(&self) -> Option<u32> {
        self.count.or(self.first.map(|_| 1))
    }
}

/// Runs the tests. If Miri cannot be installed, prints that and skips them.
pub fn check(seeds: &Seeds) -> anyhow::Result<()> {
    if !is_here() {
        return Ok(());
    }
    let start = Instant::now();
    let check = unchanging()?;
    unit_tests()?;
    race(seeds, start)?;
    match seeds.count() {
        Some(_) => Ok(()),
        None => check.note(),
    }
}

/// The stage of the test suite: the tests, unless they passed as all is now. Many more
/// seeds are for `cargo xtask soak`.
pub fn check_stage() -> anyhow::Result<()> {
    match unchanging()?.is_left_out() {
        true => Ok(()),
        false => check(&Seeds::default()),
    }
}

/// Runs the tests of tiny tables. If a number of seeds is given, one per core runs at a time. In
/// the suite it is one, because other stages have the other cores.
fn race(seeds: &Seeds, start: Instant) -> anyhow::Result<()> {
    let cores = match seeds.count() {
        Some(_) => std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32),
        None => 1,
    };
    let first = seeds.first();
    let (mut done, mut last_took) = (0, Duration::ZERO);
    let is_enough = |done: u32, next: Duration| match seeds.count() {
        Some(count) => done >= count,
        None => done > 0 && start.elapsed() + next > STAGE,
    };
    while !is_enough(done, last_took) {
        let begun = Instant::now();
        let from = first.saturating_add(done);
        let now = seeds.count().map_or(cores, |count| cores.min(count - done));
        println!("miri: {now} seeds from {from} on. To repeat one: cargo xtask miri --seed N");
        run(&mut with_seeds(from, now))?;
        (done, last_took) = (done + now, begun.elapsed());
    }
    println!("miri: {done} seeds from {first} on");
    Ok(())
}

/// The tests of tiny tables with these many seeds.
pub fn with_seeds(first: u32, count: u32) -> Command {
    let end = first.saturating_add(count);
    let many = format!("{FLAGS} -Zmiri-many-seeds={first}..{end}");
    test(TINY_TESTS, &many)
}

/// Whether Miri is here, now that it was tried to install it; prints why not.
pub fn is_here() -> bool {
    if !exists("rustup") {
        println!("miri: SKIPPED: rustup is missing. To have it: https://rustup.rs");
        return false;
    }
    if !is_installed() && run(&mut install()).is_err() {
        println!(
            "miri: SKIPPED: rustup could not install Miri. To have it: {:?}",
            install()
        );
        return false;
    }
    true
}

/// Runs the unit tests. They have one thread, and Miri gives them the same random numbers each
/// time, so one seed is enough.
pub fn unit_tests() -> anyhow::Result<()> {
    run(&mut test(UNIT_TESTS, FLAGS))
}

/// All of the tests, as a check that is not worth repeating as long as nothing changes.
fn unchanging() -> anyhow::Result<Check> {
    let inputs = Inputs {
        paths: &["xtask/src/miri.rs"],
        package: Some("glimmer-store"),
        tests: &["tests/tables"],
    };
    Check::new("miri glimmer-store", inputs)
}

/// Whether the toolchain, Miri and the source of the standard library are installed.
fn is_installed() -> bool {
    let mut list = program("rustup", &["component", "list", "--installed"]);
    let output = list.args(["--toolchain", TOOLCHAIN]).output();
    output.is_ok_and(|output| {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let has = |wanted| names.lines().any(|name| name.starts_with(wanted));
        output.status.success() && has("miri") && has("rust-src")
    })
}

fn install() -> Command {
    let mut command = program("rustup", &["toolchain", "install", TOOLCHAIN]);
    command.args(["--profile", "minimal", "--component", "miri,rust-src"]);
    command
}

/// `cargo miri test` of the store, with a target folder of its own.
fn test(tests: &[&str], flags: &str) -> Command {
    let mut command = program("rustup", &["run", TOOLCHAIN, "cargo", "miri", "test"]);
    command
        .args(["-p", "glimmer-store"])
        .args(tests)
        // These variables belong to the outer cargo, which is from a different toolchain.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("MIRIFLAGS", flags)
        .env("CARGO_TARGET_DIR", process::target_dir().join("miri"));
    command
}
