//! The project's own chores: `cargo xtask test`, `cargo xtask loom`, `cargo xtask miri`,
//! `cargo xtask cross`, `cargo xtask instructions`, `cargo xtask fuzz`, `cargo xtask floors`,
//! `cargo xtask deny`, `cargo xtask dpdk`,
//! `cargo xtask packet-program`, `cargo xtask rtl`, `cargo xtask cosim`, `cargo xtask synth`,
//! `cargo xtask documents`, `cargo xtask memcached-tests`, `cargo xtask metrics`,
//! `cargo xtask fleet`, `cargo xtask replays`, `cargo xtask conformance`, `cargo xtask ci`.

mod circles;
mod clients;
mod columns;
mod conformance;
mod cosim;
mod cross;
mod deny;
mod documents;
mod dpdk;
mod fleet;
mod floors;
mod fuzz;
mod instructions;
mod lanes;
mod loom;
mod memcached_tests;
mod metrics;
mod miri;
mod package;
mod packet_program;
mod passed;
mod process;
mod programs;
mod release;
mod replays;
mod report;
mod rtl;
mod server_crates;
mod sim;
mod soak;
mod stages;
mod suites;
mod tools;
mod venv;

use crate::passed::Which;
use clap::{Parser, Subcommand};

/// Checks and tests of this repository
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run the whole test suite: crates, model checker, weakened variants, real clients
    ///
    /// Installs what it needs: client libraries in .venv and .clients and, as root on Debian, the
    /// packages that the client tests use. Elsewhere it prints what is missing and which tests it
    /// skips.
    Test {
        /// Run only this stage (may be given several times)
        #[arg(long, value_enum)]
        only: Vec<stages::Stage>,
    },
    /// Run the model checker on the code that threads share
    Loom {
        /// Remove one fence or recheck at a time and require that the model checker notices each
        #[arg(long)]
        weakened: bool,
        /// With --weakened: only variants whose name contains this
        #[arg(long, requires = "weakened")]
        name: Option<String>,
    },
    /// Run the fuzz targets, guided by coverage, each for a bounded time
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = 600)]
        seconds: u32,
        /// Only these targets
        targets: Vec<String>,
    },
    /// Run oracles and races of tiny tables under Miri, which notices undefined behaviour
    ///
    /// A seed determines the operations, the order of the threads and which old values are read.
    /// Installs Miri with rustup if it is missing.
    Miri {
        #[command(flatten)]
        seeds: miri::Seeds,
    },
    /// Compile the server for aarch64 and run the store's tests under qemu's user emulation
    ///
    /// Installs the compiler, the C library and the emulator as root on Debian. Not part of the
    /// test suite.
    Cross,
    /// Count the instructions of a request with callgrind, in the engine or in the whole server
    ///
    /// Installs valgrind as root on Debian. The test suite runs it with --check.
    Instructions(instructions::Counting),
    /// Simulate servers and clients in virtual time, each from one seed
    Sim(sim::Simulation),
    /// Check the accelerator's circuit: lint, proofs, simulation and its coverage
    ///
    /// Installs Verilator, Yosys and z3 as root on Debian; elsewhere it names what is missing.
    Rtl(rtl::Circuit),
    /// Try the simulated circuit between real clients and a real server
    ///
    /// Makes two network namespaces with the circuit between them, so it needs root. Installs
    /// Verilator, and memcached and libmemcached's tools if possible, as root on Debian. `cargo
    /// xtask cosim --help` explains its options, among them `--vcd FILE`. Not part of the test
    /// suite, which has a short version.
    Cosim(cosim::Cosimulation),
    /// Synthesize the accelerator's circuit: its size on the paper's FPGA, and its clock
    ///
    /// Fetches the tools into target/rtl/venv. Not part of the test suite.
    Synth(rtl::synthesis::Synthesis),
    /// Check the structural rules: crates depend only on lower floors, files do not import one
    /// another in circles, the server is built from few crates, and lines have at most 100 columns
    Floors,
    /// Run the commands that documents show, and compare what they print with what is shown
    ///
    /// Each document runs in namespaces of its own. CONTRIBUTING.md says how a document describes
    /// what is shortened or left out.
    Documents(documents::Documents),
    /// Write the tables of docs/results.md from what benchmarks printed into docs/results
    Results,
    /// Replay recorded traces beside memcached, and write docs/results/replays.txt
    ///
    /// The traces lie in clones of 1a1a11a/libCacheSim, moka-rs/cache-trace and ben-manes/caffeine.
    /// Unpacks them with gzip, xz and zstd into target/replays. Takes half an hour and is not part
    /// of the test suite.
    Replays(replays::Replays),
    /// Check what the workspace depends on: licences, sources, and crates in two versions
    Deny(deny::Deny),
    /// Check what is built with DPDK: the transport's lints and tests
    ///
    /// Installs DPDK as root on Debian.
    Dpdk(dpdk::Dpdk),
    /// Build what the server is installed from, and try it in a clean root
    ///
    /// Compiles cargo-deb into target/tools if it is missing. Not part of the test suite.
    Package(package::Package),
    /// Build and check everything that a release consists of, and say what is left for a person
    ///
    /// Compiles cargo-deb and cargo-cyclonedx into target/tools if they are missing. Takes a
    /// quarter of an hour and is not part of the test suite.
    Release(release::Release),
    /// Compile the hot-key accelerator's packet program, and write the object that is committed
    ///
    /// Installs clang as root on Debian.
    PacketProgram {
        /// Compare with the committed object instead; without clang this is skipped
        #[arg(long)]
        check: bool,
    },
    /// Run memcached's own test programs against the server
    ///
    /// They are not part of this repository. Debian's source package contains them (`apt-get source
    /// memcached`).
    MemcachedTests {
        /// The folder with memcached's source
        #[arg(long)]
        source: std::path::PathBuf,
        /// The server to test instead of Glimmer, such as memcached itself
        #[arg(long)]
        server: Option<std::path::PathBuf>,
        /// Only these, such as `cas` or `issue_22` (default: all but proxy, TLS and extstore)
        names: Vec<String>,
    },
    /// Have a Prometheus scrape a loaded server, and compare what it stores with what was sent
    ///
    /// Needs Debian's package prometheus, and python3. Takes a quarter of a minute, and is not part
    /// of the test suite.
    Metrics,
    /// Run proxies and clients that place keys on three servers, and what happens to these
    ///
    /// Servers are killed, stopped, filled, added, removed and restarted, under load whose values
    /// carry key and version. Prints a table for each engine, and fails if a read had a wrong
    /// value. docs/scaling-out.md has what it printed. Takes a minute for each engine, and is not
    /// part of the test suite, which has a short version.
    Fleet(fleet::Fleet),
    /// Run each random test with many seeds, and the others many times
    ///
    /// Prints a table with the seeds of each stage, and how to repeat each that failed. The output
    /// of those is kept in target/soak-failures.
    Soak(soak::Soak),
    /// Run the test suites of memcached's clients against the server and against memcached
    ///
    /// Fetches each suite from its package, runs it with both servers, and writes the table in
    /// docs/client-suites.md. Takes long and is not part of the test suite. Fails if a test fails
    /// only with our server and tests/suites/suites.toml does not say why.
    Suites {
        /// Only these, such as `pymemcache`
        names: Vec<String>,
    },
    /// Write the scorecard of docs/conformance.md: what passes with the server, beside memcached
    ///
    /// It has parts: memcached's own test programs, the test suites of clients, proxies, exporters
    /// and recipes. What ran is kept in docs/conformance, so parts and rows can be run by
    /// themselves. Takes long and is not part of the test suite.
    Conformance(conformance::Conformance),
    /// Run what continuous integration runs: formatting, lints, documentation, floors and tests
    Ci,
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    // Cargo starts the alias wherever it was typed; every path below is the repository's.
    std::env::set_current_dir(process::repository())?;
    match Arguments::parse().chore {
        Chore::Test { only } => stages::test(&only),
        Chore::Loom {
            weakened: false, ..
        } => loom::check(Which::All),
        Chore::Loom {
            weakened: true,
            name: None,
        } => loom::check_weakened(Which::All),
        Chore::Loom {
            weakened: true,
            name: Some(part),
        } => loom::check_weakened_named(&part),
        Chore::MemcachedTests {
            source,
            server,
            names,
        } => memcached_tests::check(&source, server, &names),
        Chore::Metrics => metrics::check(),
        Chore::Fleet(fleet) => fleet.run(),
        Chore::Fuzz { seconds, targets } => fuzz::check(seconds, &targets),
        Chore::Conformance(conformance) => conformance.run(),
        Chore::Suites { names } => suites::check(&names),
        Chore::Miri { seeds } => miri::check(&seeds),
        Chore::Sim(simulation) => simulation.run(),
        Chore::Cross => cross::check(),
        Chore::Instructions(counting) => counting.run(),
        Chore::Rtl(circuit) => circuit.run(),
        Chore::Dpdk(dpdk) => dpdk.check(),
        Chore::Cosim(cosimulation) => cosimulation.run(),
        Chore::Synth(synthesis) => synthesis.run(),
        Chore::Floors => floors::check(),
        Chore::Results => documents::results::write(),
        Chore::Replays(replays) => replays.run(),
        Chore::Deny(deny) => deny.check(),
        Chore::Documents(documents) => documents.run(),
        Chore::Package(package) => package.build(),
        Chore::Release(release) => release.run(),
        Chore::PacketProgram { check } => packet_program::build(check),
        Chore::Soak(soak) => soak.run(),
        Chore::Ci => stages::ci(),
    }
}
