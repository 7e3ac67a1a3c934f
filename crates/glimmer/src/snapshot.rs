//! `glimmer snapshot`: has a running server write all its items to its file.

use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use glimmer_notation::{counted, memory};

use crate::progress::Progress;
use crate::running::RunningServer;

/// How often the server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Have a running server write all its items to the file of its --snapshot
///
/// The server goes on serving meanwhile. The command ends when the file is complete, and fails if
/// it is not: the older file is then as it was. Only the server's own settings name the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    glimmer snapshot\n  \
    glimmer snapshot --server cache.example:11211\n  \
    glimmer snapshot --server cache.example --tls --auth-user ann --password-file pw")]
pub struct Arguments {
    #[command(flatten)]
    server: RunningServer,
}

/// What the server tells of its snapshots.
struct Told(Vec<(String, String)>);

impl Told {
    fn text(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.iter();
        let (_, value) = lines.find(|(it, _)| it == name)?;
        Some(value)
    }

    fn number(&self, name: &str) -> u64 {
        let number = self.text(name).and_then(|text| text.parse().ok());
        number.unwrap_or(0)
    }

    /// Snapshots that were written, and that were not.
    fn ended(&self) -> [u64; 2] {
        ["snapshots_written", "snapshots_failed"].map(|name| self.number(name))
    }
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let mut link = self.server.connect()?;
        // Before it begins: without these, its end is not seen.
        let before = Told(self.server.stats(&mut link, "glimmer")?).ended();
        let items = link.stats("")?.unwrap_or_default();
        let items = Told(items).number("curr_items");
        if let Err(reason) = self.server.tell(&mut link, "snapshot")? {
            bail!("{}: {}", self.server, reason.trim_start_matches("BUSY "));
        }
        let mut shown = Progress::new();
        loop {
            let gone = || format!("{} has gone: the older file is as it was", self.server);
            let told = link.stats_or_refusal("glimmer").with_context(gone)?;
            let told = Told(told.map_err(|line| {
                anyhow!(
                    "{} does not tell how far the snapshot is: {line}",
                    self.server
                )
            })?);
            let [written, failed] = told.ended();
            if failed > before[1] {
                shown.end();
                bail!("{}", told.text("snapshot_error").unwrap_or("not written"));
            }
            if written > before[0] {
                shown.end();
                println!(
                    "{}, {} in {:.1} s",
                    counted(told.number("snapshot_items"), "item"),
                    memory(told.number("snapshot_bytes") as f64),
                    told.number("snapshot_ms") as f64 / 1e3
                );
                return Ok(());
            }
            let so_far = told.number("snapshot_items_so_far");
            let percent = (100 * so_far / items.max(1)).min(100);
            let bytes = told.number("snapshot_bytes_so_far") as f64;
            let so_far = counted(so_far, "item");
            shown.show(&format!("{so_far}, {}, {percent}%", memory(bytes)));
            thread::sleep(ASK_EVERY);
        }
    }
}
