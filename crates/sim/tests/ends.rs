//! The server's process is killed and stopped, and the next one goes on with the memory file.

use glimmer_sim::scenario::{End, Ending};
use glimmer_sim::{Scenario, run};

/// Seeds with such an end that are run.
const SEEDS: usize = 4;

#[test]
fn the_next_process_goes_on_after_each_end() {
    let ends = [
        (Ending::Killed, false),
        (Ending::Killed, true),
        (Ending::Stopped, false),
    ];
    for (how, in_turn) in ends {
        let is_such =
            |end: &End| end.how == how && (how == Ending::Stopped || in_turn == (end.points > 0));
        let scenarios = (0..).map(Scenario::from_seed);
        let scenarios = scenarios.filter(|scenario| scenario.ends.iter().any(is_such));
        let mut seen = 0;
        for mut scenario in scenarios.take(SEEDS) {
            scenario.ends.retain(is_such);
            let report = run(&scenario);
            let seed = scenario.seed;
            assert!(
                report.failure.is_none(),
                "seed {seed}: {:?}",
                report.failure
            );
            seen += match (how, in_turn) {
                (Ending::Stopped, _) => report.stops,
                (Ending::Killed, true) => report.kills_in_turns,
                (Ending::Killed, false) => report.kills - report.kills_in_turns,
            };
        }
        assert!(seen > 0, "{how:?}, in a turn: {in_turn}");
    }
}
