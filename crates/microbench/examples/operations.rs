//! Runs one kind of operation on a table alone, as `glimmer bench store` does, a given number of
//! times.
//!
//! `cargo xtask instructions --alone` runs this program under callgrind, which counts the loop that
//! drives the table, and divides the instructions by the operations. What filling the table costs
//! does not count.

use std::process::ExitCode;

use glimmer_microbench::evict::S3_FIFO;
use glimmer_microbench::store_alone::rig::Task;
use glimmer_microbench::store_alone::stream::Operation;
use glimmer_microbench::store_alone::{Mode, Ours};
use rand::{Rng, SeedableRng, rngs::SmallRng};

const USAGE: &str = "usage: operations TABLE ACCESS VERB OPERATIONS
  TABLE       cache, store or memc3
  ACCESS      erew, crew or crcw
  VERB        get or put (of an item that is there)
  OPERATIONS  how many";
const ITEMS: u32 = 16_384;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let parsed = match words[..] {
        [table, mode, verb @ ("get" | "put"), count] => {
            let table = match table {
                "cache" => Some(Ours::Cache(S3_FIFO)),
                "store" => Some(Ours::Store),
                "memc3" => Some(Ours::Memc3),
                _ => None,
            };
            let mode = Mode::ALL.into_iter().find(|it| it.name() == mode);
            let count = count.parse::<usize>().ok();
            table.zip(mode).zip(count).map(|all| (all, verb == "put"))
        }
        _ => None,
    };
    let Some((((table, mode), count), writes)) = parsed else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let mut rng = SmallRng::seed_from_u64(1);
    let mut draw = || Operation::new(rng.random_range(0..ITEMS), writes);
    let list = [(0..count).map(|_| draw()).collect()];
    let mut rig = table.build(ITEMS, mode, 1).expect("a small table fits");
    let outcome = rig.run(
        &list,
        &Task {
            fill: false,
            ..Task::filling()
        },
    );
    outcome.expect("every value is found");
    ExitCode::SUCCESS
}
