//! The script that executes a document's blocks.

use super::blocks::{Before, Block, Step};
use std::fmt::Write as _;

const PRELUDE: &str = include_str!("prelude.sh");

/// Ends a command on stdin. No command has such a line.
const END: &str = "END-OF-COMMAND";

/// A command whose output is compared after the script has run.
pub struct Planned<'a> {
    pub block: &'a Block,
    /// Its number in the block, from 1.
    pub number: usize,
    pub step: &'a Step,
    /// Nothing of its block has run before.
    pub is_first: bool,
    /// The name of the files with its output and status.
    pub name: String,
}

/// A command that is not run, or of which only the arguments are checked.
pub struct Skipped<'a> {
    pub block: &'a Block,
    pub reason: String,
}

/// What becomes of the commands of a document.
#[derive(Default)]
pub struct Plan<'a> {
    pub text: String,
    pub planned: Vec<Planned<'a>>,
    pub skipped: Vec<Skipped<'a>>,
}

/// How a document is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As the markers shorten its commands.
    Quick,
    /// As its reader does.
    Full,
}

/// The script for these blocks.
pub fn write<'a>(blocks: &'a [Block], pace: Pace, is_root: bool) -> Plan<'a> {
    let mut plan = Plan {
        text: PRELUDE.to_owned(),
        ..Plan::default()
    };
    for block in blocks {
        let marker = &block.marker;
        let line = block.line;
        let skip = |plan: &mut Plan<'a>, reason: &str| {
            let reason = reason.to_owned();
            plan.skipped.push(Skipped { block, reason });
        };
        if marker.is_for_root && !is_root {
            block
                .steps
                .iter()
                .for_each(|_| skip(&mut plan, "needs root"));
            continue;
        }
        if let Some(name) = &marker.file {
            let text = block.file.join("\n");
            writeln!(plan.text, "cat > {name} <<'{END}'\n{text}\n{END}").expect("a string grows");
        }
        for (place, before) in marker.before.iter().enumerate() {
            let name = format!("{line}.before.{}", place + 1);
            match before {
                Before::Command(command) => plan.add("run", &name, command),
                Before::Server(arguments) => {
                    plan.add("serve", &name, &format!("glimmer serve {arguments}"));
                }
            }
        }
        for (place, step) in block.steps.iter().enumerate() {
            let number = place + 1;
            if let Some(reason) = marker.reason(number) {
                skip(&mut plan, reason);
                continue;
            }
            if let Some(reason) = marker.check(number) {
                if pace == Pace::Full {
                    skip(&mut plan, reason);
                    continue;
                }
                let reason = format!("only its arguments are checked, {reason}");
                skip(&mut plan, &reason);
            }
            let name = format!("{line}.{number}");
            let command = match pace {
                Pace::Quick => marker.shortened(number, &step.command),
                Pace::Full => step.command.clone(),
            };
            let way = if is_server(&command) { "serve" } else { "run" };
            plan.add(way, &name, &command);
            let is_first = plan.planned.last().is_none_or(|it| it.block.line != line);
            plan.planned.push(Planned {
                is_first,
                block,
                number,
                step,
                name,
            });
        }
    }
    plan.text += "end_server\n";
    plan
}

impl Plan<'_> {
    fn add(&mut self, way: &str, name: &str, command: &str) {
        let text = format!("\n{way} {name} <<'{END}'\n{command}\n{END}\n");
        self.text += &text;
    }
}

/// Whether the command is a server that runs until its reader ends it.
fn is_server(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let serves = words.iter().position(|&word| word == "serve");
    let by = serves.and_then(|place| words.get(place.checked_sub(1)?));
    let is_serve = by.is_some_and(|&word| {
        let name = word.rsplit('/').next();
        matches!(name, Some("glimmer" | "glimmer-cosim" | "--"))
    });
    let is_memcached = words
        .first()
        .is_some_and(|word| word.ends_with("/memcached"));
    let ends = words.last() == Some(&"&") || words.contains(&"-d");
    (is_serve || is_memcached) && !ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::blocks;

    #[test]
    fn servers_in_the_foreground_are_recognised() {
        for command in [
            "cargo run --release -- serve",
            "target/release/glimmer serve -l 127.0.0.1",
            "X=1 glimmer serve",
            "/usr/local/bin/memcached -m 64",
        ] {
            assert!(is_server(command), "{command}");
        }
        for command in [
            "glimmer bench load",
            "glimmer serve -d -P pid",
            "glimmer serve &",
            "man glimmer-serve",
        ] {
            assert!(!is_server(command), "{command}");
        }
    }

    #[test]
    fn a_script_has_what_is_run_and_the_rest_has_a_reason() {
        let document = "<!-- run: before touch x; server -m 8; skip 2: a reason; \
            quick --seconds 1 -->\n```console\n$ glimmer bench load\n$ other\n```\n";
        let blocks = blocks::read(document).unwrap();
        let plan = write(&blocks, Pace::Quick, true);
        let script = plan.text.strip_prefix(PRELUDE).unwrap();
        let expected = "\nrun 2.before.1 <<'E'\ntouch x\nE\n\nserve 2.before.2 <<'E'\n\
            glimmer serve -m 8\nE\n\nrun 2.1 <<'E'\nglimmer bench load --seconds 1\nE\n\
            end_server\n";
        assert_eq!(script.replace(END, "E"), expected);
        assert_eq!(plan.skipped[0].reason, "a reason");
        let full = write(&blocks, Pace::Full, true);
        assert!(full.text.contains("\nglimmer bench load\n"));
    }
}
