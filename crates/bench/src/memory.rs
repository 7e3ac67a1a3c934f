//! `glimmer bench memory`.

use std::path::PathBuf;

use anyhow::ensure;
use glimmer_comparisons::{
    footprint::{self, Options},
    servers::Kind,
};
use glimmer_notation as notation;

use super::versus::{Peer, value_bytes};
use glimmer_cli::vocabulary::{count_u32, memory_mib};

/// Count the items that fit into a memory limit, and what the process really
/// takes
///
/// Stores distinct items until the limit is long passed, then asks for every
/// one and verifies what is found. The first ones are read back before the
/// others are stored: what is missing then was lost although there was room.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Servers to compare with
    #[arg(long, value_delimiter = ',', default_value = "memcached")]
    peers: Vec<Peer>,
    /// Measure the peers alone
    #[arg(long)]
    without_glimmer: bool,
    /// Distinct items, with keys of 16 bytes
    #[arg(long, default_value = "30m", value_parser = count_u32)]
    items: u32,
    /// How many of them are read back before the others are stored
    #[arg(long, default_value = "10m", value_parser = notation::within::<u32>(notation::count, ..))]
    first: u32,
    /// Bytes of a value, a multiple of 8
    #[arg(long, default_value_t = 32, value_parser = value_bytes)]
    value_bytes: usize,
    /// The servers' memory limit in MiB
    #[arg(short, long, value_name = "MIB", default_value_t = 1024, value_parser = memory_mib)]
    memory_limit: usize,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write everything that was measured to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Arguments {
    /// Fills the servers and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let ours = (!self.without_glimmer).then_some(Kind::Glimmer);
        let servers: Vec<Kind> = ours
            .into_iter()
            .chain(self.peers.iter().filter_map(|peer| peer.kind()))
            .collect();
        ensure!(!servers.is_empty(), "there is no server to measure");
        let report = footprint::run(
            &Options {
                servers,
                items: self.items,
                first: self.first,
                value_bytes: self.value_bytes,
                memory_mib: self.memory_limit,
                glimmer_arguments: super::words(&self.glimmer_args),
            },
            &super::progress,
        )?;
        print!("{report}");
        match &self.json {
            Some(file) => super::write_json(file, &report),
            None => Ok(()),
        }
    }
}
