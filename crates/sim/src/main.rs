//! Runs scenarios from seeds, and shows those that fail.

use clap::Parser;
use glimmer_sim::{Report, Scenario, history, run, shrink};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A scenario that fails is made smaller for this long at most.
const SHRINK_LIMIT: Duration = Duration::from_secs(120);

/// Runs simulated servers and clients in virtual time, each from one seed
#[derive(Parser)]
#[command(name = "glimmer-sim")]
struct Arguments {
    /// Begin no further seed after this many seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// The same in hours
    #[arg(long)]
    hours: Option<f64>,
    /// The first seed (default: the time)
    #[arg(long)]
    seed: Option<u64>,
    /// Run this seed alone, and print its history
    #[arg(long, conflicts_with_all = ["seed", "hours"])]
    replay: Option<u64>,
    /// Pass over seeds whose server has no memory file
    #[arg(long)]
    memory_files: bool,
    /// Show the first seed that fails as it is, without making its scenario smaller
    #[arg(long)]
    no_shrink: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.replay {
        return replay(seed, !arguments.no_shrink);
    }
    let seconds = arguments
        .hours
        .map_or(arguments.seconds, |hours| hours * 3600.0);
    let first = arguments.seed.unwrap_or_else(seed_of_the_day);
    println!("sim: from seed {first}, for {seconds} s");
    let begun = Instant::now();
    let limit = Duration::from_secs_f64(seconds);
    let (mut seeds, mut steps, mut calls, mut undecided) = (0u64, 0u64, 0usize, 0usize);
    let (mut evicting, mut unanswered, mut unstored) = (0, 0, 0);
    let mut hits = 0;
    let (mut kills, mut kills_in_turns, mut stops, mut lost) = (0, 0, 0, 0);
    for seed in (0..).map(|nth| first.wrapping_add(nth)) {
        if begun.elapsed() >= limit {
            break;
        }
        let scenario = Scenario::from_seed(seed);
        if arguments.memory_files && !scenario.server.in_memory_file {
            continue;
        }
        let report = run(&scenario);
        seeds += 1;
        steps += report.steps;
        calls += report.calls.len();
        undecided += report.undecided;
        evicting += usize::from(report.evicted > 0);
        hits += report.hits;
        kills += report.kills;
        kills_in_turns += report.kills_in_turns;
        stops += report.stops;
        lost += report.lost;
        let answered = |answer| {
            report
                .calls
                .iter()
                .filter(|call| call.answer == answer)
                .count()
        };
        unanswered += answered(history::Answer::Unknown);
        unstored += answered(history::Answer::NoMemory);
        if report.failure.is_some() {
            println!(
                "sim: seed {} fails after {:.1} s",
                scenario.seed,
                begun.elapsed().as_secs_f64()
            );
            show(scenario, report, !arguments.no_shrink);
            return ExitCode::FAILURE;
        }
    }
    let took_s = begun.elapsed().as_secs_f64();
    println!(
        "sim: {seeds} seeds passed, {:.1} a second; {calls} operations, {steps} steps, \
         {undecided} keys undecided",
        seeds as f64 / took_s
    );
    println!(
        "sim: {evicting} seeds evicted items, {unstored} stores found no memory, \
         {unanswered} answers were lost, the accelerator answered {hits} reads"
    );
    println!(
        "sim: {kills} processes were killed, {kills_in_turns} of them in a turn, and {stops} \
         stopped; others went on with their memory files; {lost} items were lost"
    );
    ExitCode::SUCCESS
}

fn replay(seed: u64, shrinks: bool) -> ExitCode {
    let scenario = Scenario::from_seed(seed);
    let report = run(&scenario);
    println!(
        "sim: seed {seed}, trace {:016x}, {} steps",
        report.trace, report.steps
    );
    if report.failure.is_none() {
        println!(
            "sim: passed; {} operations; the slowest was",
            report.calls.len()
        );
        let waited = |call: &&history::Call| call.ended.map(|ended| ended.us - call.begun.us);
        if let Some(slowest) = report.calls.iter().max_by_key(waited) {
            let waited_ms = waited(&slowest).unwrap_or(0) as f64 / 1000.0;
            println!("{slowest}\nafter {waited_ms:.1} ms");
        }
        return ExitCode::SUCCESS;
    }
    show(scenario, report, shrinks);
    ExitCode::FAILURE
}

/// Prints what went wrong, and the history of what is concerned.
fn show(scenario: Scenario, report: Report, shrinks: bool) {
    let seed = scenario.seed;
    let operations = scenario.operations();
    let (scenario, report) = match shrinks {
        true => shrink::shrink(scenario, report, SHRINK_LIMIT, run),
        false => (scenario, report),
    };
    let Some(failure) = &report.failure else {
        return;
    };
    println!("sim: {}", failure.what);
    println!(
        "sim: {} of {operations} operations are left, of {} clients",
        scenario.operations(),
        scenario.clients.len()
    );
    println!("  server: {:?}", scenario.server);
    for (number, client) in scenario.clients.iter().enumerate() {
        println!(
            "  client {number}: {:?}, {} under way, {:?}, {:?}, pauses {} us",
            client.protocol, client.pipeline, client.stream, client.packets, client.read_pause_us
        );
    }
    println!(
        "  stalls: {:?}, clock steps: {:?}, switches: {:?}",
        scenario.stalls, scenario.clock_steps, scenario.switches
    );
    println!("  ends of the process: {:?}", scenario.ends);
    println!("   begun  ended           at");
    let calls = match &failure.key {
        Some(key) => history::of_key(&report.calls, key),
        None => report.calls,
    };
    for call in calls {
        println!("{call}");
    }
    println!("sim: run it again with cargo xtask sim --replay {seed}");
}

fn seed_of_the_day() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| since.as_secs())
}
