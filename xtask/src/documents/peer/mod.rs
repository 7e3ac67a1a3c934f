//! What the pages say of memcached, sentence by sentence: a table says what to send to a server
//! that was started with some flags, and what memcached and Glimmer answer.
//!
//! Glimmer is always asked. memcached is asked if `GLIMMER_MEMCACHED` names it.

mod cells;
mod conversation;
mod coverage;

use super::Trial;
use crate::process;
use anyhow::{Context as _, bail};
use cells::{Answer, Expected, Row};
use conversation::Server;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The table.
pub const DOCUMENT: &str = "tests/memcached-claims.md";

/// The variable that names memcached, and the version of memcached that the pages speak of.
const VARIABLE: &str = "GLIMMER_MEMCACHED";
const VERSION: &str = "memcached 1.6.45";

/// Holds the pages to both servers, or to Glimmer alone.
pub fn hold() -> anyhow::Result<Trial> {
    let begun = Instant::now();
    let text = fs::read_to_string(DOCUMENT).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let rows = cells::read(&text)?;
    let mut trial = Trial {
        faults: coverage::faults(&text, &rows)?,
        ..Trial::default()
    };
    let glimmer = vec![ours()?.into_os_string(), "serve".into()];
    trial.ask(&rows, "Glimmer", &glimmer, |row| &row.glimmer)?;
    match memcached()? {
        Some(path) => {
            let command = [path.into_os_string()];
            trial.ask(&rows, VERSION, &command, |row| &row.memcached)?;
        }
        None => println!("{DOCUMENT}: memcached is not asked, because {VARIABLE} does not name it"),
    }
    println!(
        "{DOCUMENT}: {} answers in {:.1} s",
        trial.commands,
        begun.elapsed().as_secs_f64()
    );
    Ok(trial)
}

impl Trial {
    /// Compares what a server answers with what its column says.
    fn ask(
        &mut self,
        rows: &[Row],
        name: &str,
        command: &[OsString],
        column: impl Fn(&Row) -> &Expected,
    ) -> anyhow::Result<()> {
        let is_root = process::is_root()?;
        for row in rows {
            let expected = column(row);
            // Another user cannot become one.
            let needs_root = row.is_root_alone || row.flags.iter().any(|flag| flag == "-u");
            if matches!(expected, Expected::Unasked) || (needs_root && !is_root) {
                continue;
            }
            self.commands += 1;
            let answer = answer(row, expected, command)
                .with_context(|| format!("{DOCUMENT}:{}: {name}", row.line))?;
            if !expected.matches(&answer) {
                self.faults.push(format!(
                    "{DOCUMENT}:{}: {}\n    {name} in the table: {expected}\n    \
                     what it answers:    {answer}",
                    row.line, row.quote
                ));
            }
        }
        Ok(())
    }
}

/// What this server does with the row.
fn answer(row: &Row, expected: &Expected, command: &[OsString]) -> anyhow::Result<Answer> {
    let mut server = Server::start(command, &row.flags, row.is_root_alone)?;
    if server.has_ended() {
        return server.stop();
    }
    if row.is_udp {
        return Ok(Answer::Reply(server.exchange_datagrams(&row.sent)?));
    }
    let reply = server.converse(&row.sent);
    match expected {
        Expected::Reply(_) => Ok(Answer::Reply(reply?)),
        // A server that ends now may refuse the connection.
        _ => server.stop(),
    }
}

/// The server that was built here.
fn ours() -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(process::target_dir().join("debug/glimmer"))?;
    Ok(path)
}

/// The memcached that is to be asked, which is of the version that the pages speak of.
fn memcached() -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return Ok(None);
    };
    let path = std::path::absolute(Path::new(&path))?;
    let said = process::program(&path, &["-V"]).output();
    let said = said.with_context(|| format!("cannot start {}", path.display()))?;
    let said = String::from_utf8_lossy(&said.stdout);
    if said.trim() != VERSION {
        bail!(
            "{VARIABLE} names {}, and the pages speak of {VERSION}",
            said.trim()
        );
    }
    Ok(Some(path))
}
