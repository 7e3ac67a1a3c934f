//! The files that a request passes, as the page about the architecture lists them: the list is
//! compared with where a server's instructions are.

use super::callgrind;
use super::server::{Ports, connect, run_server, send_many, store};
use crate::process::{program, repository, run, target_dir};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// The page with the list.
pub const PAGE: &str = "ARCHITECTURE.md";
/// The list is the table between these lines.
const BEGIN: &str = "<!-- walk: begin -->";
const END: &str = "<!-- walk: end -->";
/// A file is listed from this share of all instructions on.
const LISTED: f64 = 0.01;
/// A file of a larger share that is not listed is an error. Processors differ a little.
const UNLISTED_MAX: f64 = 1.5 * LISTED;
/// So is a listed file of a smaller share. How many turns a worker takes for the same requests, and
/// how often it waits, depends on when they arrive: on a machine with other work, rarely.
const LISTED_MIN: f64 = LISTED / 10.0;
/// Datagrams that are sent, one after the other, and keys of each.
const DATAGRAMS: usize = 1_000;
const DATAGRAM_KEYS: usize = 20;
/// Native reads.
const NATIVE_READS: &str = "20000";

/// A kind of request, and what sends many of it.
struct Kind {
    name: &'static str,
    options: &'static [&'static str],
    send: fn(&Ports) -> anyhow::Result<()>,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "`get`",
        options: &[],
        send: |ports| send_many(ports.tcp, false),
    },
    Kind {
        name: "`set`",
        options: &[],
        send: |ports| send_many(ports.tcp, true),
    },
    Kind {
        name: "`get` over UDP",
        options: &["-U", "-1"],
        send: send_datagrams,
    },
    Kind {
        name: "native read",
        options: &["--native-port", "-1"],
        send: send_native,
    },
];

/// By file, its share of the instructions of each kind of request.
type Shares = BTreeMap<String, [f64; KINDS.len()]>;

/// Fails if the page lists other files than those that requests pass.
pub fn check(server: &Path) -> anyhow::Result<()> {
    let (shares, listed) = (shares(server)?, listed(&page()?)?);
    let mut wrong = Vec::new();
    for (nth, kind) in KINDS.iter().enumerate() {
        for (file, of) in &shares {
            let share = of[nth];
            let is_listed = listed.contains(&(file.clone(), nth));
            let percent = 100.0 * share;
            if share >= UNLISTED_MAX && !is_listed {
                wrong.push(format!(
                    "{file}: {percent:.1}% of a {}, and not listed",
                    kind.name
                ));
            }
            if share < LISTED_MIN && is_listed {
                wrong.push(format!(
                    "{file}: listed, and {percent:.1}% of a {}",
                    kind.name
                ));
            }
        }
    }
    let is_gone = |(file, _): &&(String, usize)| !shares.contains_key(file);
    let gone = listed.iter().filter(is_gone);
    wrong.extend(gone.map(|(file, _)| format!("{file}: listed, and no request passes it")));
    if wrong.is_empty() {
        println!("walk: {PAGE} lists the files that requests pass");
        return Ok(());
    }
    bail!(
        "{PAGE} does not list the files that requests pass; `cargo xtask instructions --walk` \
         writes the list:\n{}",
        wrong.join("\n")
    )
}

/// Writes the list.
pub fn write(server: &Path) -> anyhow::Result<()> {
    let shares = shares(server)?;
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    let mut table = format!("| file | {} |\n| --- |", names.join(" | "));
    table += &" --- |".repeat(KINDS.len());
    for (file, of) in shares {
        if of.iter().any(|share| *share >= LISTED) {
            let mark = |share: &f64| if *share >= LISTED { "x" } else { "" };
            let marks: Vec<&str> = of.iter().map(mark).collect();
            table += &format!("\n| `{file}` | {} |", marks.join(" | "));
        }
    }
    let page = page()?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no list")?;
    let (_, after) = rest.split_once(END).context("the list has no end")?;
    let page = format!("{before}{BEGIN}\n\n{table}\n\n{END}{after}");
    fs::write(repository().join(PAGE), page)?;
    Ok(())
}

fn page() -> anyhow::Result<String> {
    Ok(fs::read_to_string(repository().join(PAGE))?)
}

/// The files that the page lists, each with the kinds of requests that pass it.
fn listed(page: &str) -> anyhow::Result<BTreeSet<(String, usize)>> {
    let (_, rest) = page.split_once(BEGIN).context("the page has no list")?;
    let (table, _) = rest.split_once(END).context("the list has no end")?;
    let mut listed = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| `crates/")) {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let file = cells.next().unwrap_or_default().trim_matches('`');
        for (nth, cell) in cells.enumerate() {
            if !cell.is_empty() {
                listed.insert((file.to_owned(), nth));
            }
        }
    }
    Ok(listed)
}

fn shares(server: &Path) -> anyhow::Result<Shares> {
    let mut shares = Shares::new();
    for (nth, kind) in KINDS.iter().enumerate() {
        let profile = target_dir()
            .join("callgrind")
            .join(format!("walk-{}", std::process::id()));
        let command = callgrind::command_into(&profile, &[], server);
        run_server(command, kind.options, kind.send)?;
        let text = fs::read_to_string(&profile)?;
        fs::remove_file(&profile)?;
        let costs = costs(&text);
        let all: u64 = costs.values().sum();
        for (file, cost) in costs {
            if let Ok(file) = Path::new(file).strip_prefix(repository()) {
                let of = shares.entry(file.display().to_string()).or_default();
                of[nth] = cost as f64 / all as f64;
            }
        }
    }
    Ok(shares)
}

/// The instructions in each file, of a profile in callgrind's format. A file is named in full once,
/// and by its number from then on.
fn costs(profile: &str) -> BTreeMap<&str, u64> {
    let (mut names, mut costs) = (BTreeMap::new(), BTreeMap::new());
    let (mut file, mut is_call) = ("", false);
    for line in profile.lines() {
        if let Some((key, name)) = line.split_once('=')
            && ["fl", "fi", "fe", "cfi", "cfl"].contains(&key)
        {
            let (number, named) = name.split_once(' ').unwrap_or((name, ""));
            if !named.is_empty() {
                names.insert(number, named);
            }
            if !key.starts_with('c') {
                file = names.get(number).copied().unwrap_or_default();
            }
        } else if line.starts_with("calls=") {
            // The next line has the cost of the call, which is counted where it is called.
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            && !std::mem::take(&mut is_call)
        {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
            *costs.entry(file).or_default() += cost.unwrap_or(0);
        }
    }
    costs
}

/// Sends datagrams of memcached's UDP protocol, each when the one before is answered.
fn send_datagrams(ports: &Ports) -> anyhow::Result<()> {
    let udp = ports.udp.context("the server has no UDP port")?;
    store(ports.tcp)?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, udp))?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    for number in 0..DATAGRAMS {
        let mut datagram = vec![0, 0, 0, 0, 0, 1, 0, 0];
        for nth in 0..DATAGRAM_KEYS {
            let key = 7 * (number * DATAGRAM_KEYS + nth) % 1_000;
            write!(datagram, "get key:{key:012}\r\n")?;
        }
        socket.send(&datagram)?;
        let mut reply = [0; 2_000];
        let mut left = 1;
        while left > 0 {
            // The header says how many datagrams the reply has.
            socket.recv(&mut reply)?;
            let all = u16::from_be_bytes([reply[4], reply[5]]);
            let nth = u16::from_be_bytes([reply[2], reply[3]]);
            left = i32::from(all) - 1 - i32::from(nth);
        }
    }
    Ok(())
}

/// Has the client library read natively.
fn send_native(ports: &Ports) -> anyhow::Result<()> {
    let mut stream = connect(ports.tcp)?;
    stream.write_all(b"stats native\r\n")?;
    let mut text = String::new();
    while !text.ends_with("END\r\n") {
        let mut buffer = [0; 4_096];
        let bytes = stream.read(&mut buffer)?;
        text += std::str::from_utf8(&buffer[..bytes])?;
    }
    let port = text
        .lines()
        .find_map(|line| line.strip_prefix("STAT port:127.0.0.1:0 "));
    let port = port.context("the server names no native port")?;
    let client = callgrind::folder().join("examples/reads");
    let client = client.to_str().context("the path of target/ is no text")?;
    run(&mut program(
        client,
        &[&format!("127.0.0.1:{port}"), NATIVE_READS],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_of_the_files_that_they_are_in() {
        let profile = "events: Ir\nfl=(1) a.rs\nfn=(1) f\n1 10\nfi=(2) b.rs\n+2 5\nfe=(1)\n7 1\n\
                       cfi=(3) c.rs\ncfn=(2) g\ncalls=4 9\n8 1000\nfl=(3)\n9 100\nfi=(2)\n* 2\n";
        let costs = costs(profile);
        let expected = BTreeMap::from([("a.rs", 11), ("b.rs", 7), ("c.rs", 100)]);
        assert_eq!(costs, expected);
    }

    #[test]
    fn the_page_says_which_requests_pass_a_file() {
        let page = format!(
            "x\n{BEGIN}\n| file | a | b |\n| --- | --- | --- |\n\
                            | `crates/f.rs` |  | x |\n{END}\n| `crates/g.rs` | x |\n"
        );
        let expected = BTreeSet::from([("crates/f.rs".to_owned(), 1)]);
        assert_eq!(listed(&page).unwrap(), expected);
    }
}
