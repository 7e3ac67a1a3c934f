//! What several commands take, written the same way in each of them.

use glimmer_notation::{self as notation, Location};

/// The server that a command talks to.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerAddress {
    /// The server: HOST, HOST:PORT, udp:HOST:PORT (with memcached's frames), udp-trains:HOST:PORT or unix:PATH [default: 127.0.0.1:11211]
    ///
    /// Without a port it is 11211. It may also be given as --server (-s). A load generator sends
    /// plain datagrams to udp:, as existing clients do, and trains of datagrams (UDP_SEGMENT) to
    /// udp-trains:.
    #[arg(value_name = "SERVER", conflicts_with = "server")]
    alone: Option<Location>,
    #[arg(long, short, value_name = "SERVER", hide = true)]
    server: Option<Location>,
}

impl ServerAddress {
    /// Where it is.
    pub fn location(&self) -> Location {
        let given = self.alone.as_ref().or(self.server.as_ref());
        given.cloned().unwrap_or_default()
    }
}

/// A count above zero.
pub fn count(text: &str) -> Result<u64, String> {
    notation::within(notation::count, 1..)(text)
}

/// A count that fits 32 bits, above zero.
pub fn count_u32(text: &str) -> Result<u32, String> {
    notation::within(notation::count, 1..)(text)
}

/// Connections of a load generator.
pub fn connections(text: &str) -> Result<u16, String> {
    notation::within(notation::count, 1..=1000)(text)
}

/// Repetitions of a measurement.
pub fn repetitions(text: &str) -> Result<u16, String> {
    notation::within(notation::count, 1..=100)(text)
}

/// A limit of memory, in MiB.
pub fn memory_mib(text: &str) -> Result<usize, String> {
    notation::within(notation::mebibytes, 1..)(text)
}

/// A share in whole hundredths, as a percentage.
pub fn share_percent(text: &str) -> Result<u32, String> {
    let percent = notation::share(text)? * 100.0;
    match (percent - percent.round()).abs() < 1e-9 && percent >= 1.0 {
        true => Ok(percent.round() as u32),
        false => Err("a share here is from 0.01 to 1 in steps of 0.01".to_owned()),
    }
}

/// A length of time on the command line.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err("from 0.1 to 600".to_owned()),
    }
}

/// A rate, a factor or a time: any number above zero.
pub fn above_zero(text: &str) -> Result<f64, String> {
    let number = notation::count(text).map(|count| count as f64);
    let number = number.or_else(|_| text.parse().map_err(|_| ()));
    match number {
        Ok(number) if number > 0.0 && number <= 1e12 => Ok(number),
        _ => Err("a number above 0, such as 0.5, 250 or 10k".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;
    use clap::{Command, CommandFactory, Parser};
    use std::collections::BTreeMap;

    /// Every command, with its path.
    fn commands(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        let path = format!("{path} {}", command.get_name());
        for inner in command.get_subcommands() {
            commands(inner, &path, found);
        }
        found.push((path, command.clone()));
    }

    #[test]
    fn an_option_has_one_short_form_and_one_kind_of_value_in_all_commands() {
        let mut all = Vec::new();
        commands(&Arguments::command(), "", &mut all);
        let mut known: BTreeMap<String, (String, Option<char>, Option<String>)> = BTreeMap::new();
        for (path, command) in &all {
            for argument in command.get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                let value = argument.get_value_names().and_then(|names| names.first());
                let value = value.map(ToString::to_string);
                // The name of a threshold's or a rate's value may differ, that of memory or a server may not.
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
                let is_gone = |argument: &clap::Arg| argument.get_long() == Some(gone);
                assert!(!command.get_arguments().any(is_gone), "{path} --{gone}");
            }
        }
    }

    #[test]
    fn numbers_are_written_alike_everywhere() {
        for line in [
            "serve -m 1g -c 10k -t 2 -b 4k -I 2m --item-size-hint 1k",
            "bench load cache --keys 1m --value-bytes uniform:1k:2k --connections 1k --pipeline 1k --gets 0.95",
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
            let words = std::iter::once("glimmer").chain(line.split(' '));
            let error = Arguments::try_parse_from(words).err();
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
            let words = std::iter::once("glimmer").chain(line.split(' '));
            let error = Arguments::try_parse_from(words)
                .expect_err(line)
                .to_string();
            assert!(error.contains("% is 0."), "{line}: {error}");
        }
    }

    #[test]
    fn a_server_has_memcacheds_port_unless_another_is_given() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            server: ServerAddress,
        }
        for (line, location) in [
            ("x", "127.0.0.1:11211"),
            ("x cache", "cache:11211"),
            ("x --server cache", "cache:11211"),
            ("x -s [::1]:5", "[::1]:5"),
            ("x udp:cache", "udp:cache:11211"),
        ] {
            let line = Line::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(line.server.location().to_string(), location);
        }
        assert!(Line::try_parse_from(["x", "a", "--server", "b"]).is_err());
    }

    #[test]
    fn shares_in_hundredths() {
        assert_eq!(
            ["0.95", "0.29", "1"].map(share_percent),
            [95, 29, 100].map(Ok)
        );
        assert!(share_percent("0.005").is_err() && share_percent("0").is_err());
    }
}
