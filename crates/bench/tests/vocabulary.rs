//! The three programs take options and numbers in the same way.

use clap::{Arg, Command};
use std::{collections::BTreeMap, ffi::OsString};

/// The programs under the names by which the server runs them.
fn programs() -> [(&'static str, Command); 3] {
    [
        ("glimmer", glimmer::command()),
        ("glimmer bench", glimmer_bench::command()),
        ("glimmer top", glimmer_top::command()),
    ]
}

/// A program that parses this command line, and the arguments it receives.
fn program(line: &str) -> (Command, Vec<OsString>) {
    let (first, rest) = line.split_once(' ').unwrap();
    let (command, rest) = match first {
        "serve" => (glimmer::command(), line),
        "bench" => (glimmer_bench::command(), rest),
        "top" => (glimmer_top::command(), rest),
        _ => panic!("no program has the command {first}"),
    };
    let words = std::iter::once("program").chain(rest.split(' '));
    (command, words.map(OsString::from).collect())
}

/// Every subcommand, with its path.
fn commands(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    for inner in command.get_subcommands() {
        commands(inner, &format!("{path} {}", inner.get_name()), found);
    }
    found.push((path.to_owned(), command.clone()));
}

#[test]
fn the_command_lines_are_sound() {
    for (_, command) in programs() {
        command.debug_assert();
    }
}

#[test]
fn an_option_has_one_short_form_and_one_kind_of_value_in_all_commands() {
    let mut all = Vec::new();
    for (path, command) in programs() {
        commands(&command, path, &mut all);
    }
    let mut known: BTreeMap<String, (String, Option<char>, Option<String>)> = BTreeMap::new();
    for (path, command) in &all {
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else {
                continue;
            };
            let value = argument.get_value_names().and_then(|names| names.first());
            let value = value.map(ToString::to_string);
            // Value names of thresholds and rates may differ; those of memory limits and servers
            // may not.
            let value = value.filter(|_| ["memory-limit", "server", "gets"].contains(&long));
            let this = (path.clone(), argument.get_short(), value);
            let first = known.entry(long.to_owned()).or_insert(this.clone());
            assert_eq!(
                (first.1, &first.2),
                (this.1, &this.2),
                "--{long}: {} and {path}",
                first.0
            );
        }
        for gone in ["memory", "in-flight", "maxmemory"] {
            let is_gone = |argument: &Arg| argument.get_long() == Some(gone);
            assert!(!command.get_arguments().any(is_gone), "{path} --{gone}");
        }
    }
}

#[test]
fn numbers_are_written_alike_everywhere() {
    for line in [
        "serve -m 1g -c 10k -t 2 -b 4k -I 2m --item-size-hint 1k",
        "bench load cache --keys 1m --value-bytes uniform:1k:2k --connections 1k --pipeline 1k \
         --gets 0.95",
        "bench load --rate 10k",
        "bench load --server cache:11311 --workload etc:0.01:64k",
        "bench load -s unix:/run/cache.sock -B ascii",
        "bench versus --keys 20m --memory-limit 1g --value-bytes 1k --connections 1k",
        "bench memory --items 1m --first 10k -m 64m",
        "bench native --keys 1m --pipeline 1k --gets 0.95,0.5 --memory-limit 1g",
        "bench store --items 4m --gets 0.95,0.5",
        "bench hit-ratio --keys 10k --requests 1m --capacity 0.01,0.1",
        "top cache",
        "top --server cache:11311 --count 1k",
        "top -s unix:/run/cache.sock",
    ] {
        let (command, words) = program(line);
        let error = command.try_get_matches_from(words).err();
        assert!(error.is_none(), "{line}: {}", error.unwrap());
    }
}

#[test]
fn a_percentage_where_a_share_is_meant_is_told() {
    for line in [
        "bench store --gets 95",
        "bench native --gets 50",
        "bench hit-ratio --capacity 10",
    ] {
        let (command, words) = program(line);
        let error = command.try_get_matches_from(words).expect_err(line);
        assert!(error.to_string().contains("% is 0."), "{line}: {error}");
    }
}

#[test]
fn what_was_meant_is_suggested() {
    for (line, meant) in [
        ("bench memory --memory 64", "`--memory-limit`"),
        ("bench versus --memory 64", "`--memory-limit`"),
        ("bench load --conections 4", "`--connections`"),
        ("bench laod", "`load`"),
        ("bench load --protocol txt", "`text`"),
    ] {
        let (command, words) = program(line);
        let error = command.clone().try_get_matches_from(words.clone());
        let complaint = glimmer_cli::suggest::complaint(&error.expect_err(line), &words, &command);
        let asked = format!("did you mean {meant}?");
        assert!(complaint.contains(&asked), "{line}: {complaint}");
        assert!(!complaint.contains('\n'), "{line}: {complaint}");
    }
}

#[test]
fn the_server_describes_a_command_as_its_program_does() {
    let about = |command: &Command| command.get_about().unwrap().to_string();
    let server = glimmer::command();
    let bench = glimmer_bench::command();
    for (name, itself) in [
        ("bench", &bench),
        ("figure", bench.find_subcommand("figure").unwrap()),
        ("top", &glimmer_top::command()),
    ] {
        let listed = server.find_subcommand(name).unwrap();
        assert_eq!(about(listed), about(itself), "{name}");
    }
}
