//! `glimmer bench memory`.

mod published;

use std::path::PathBuf;

use anyhow::ensure;
use glimmer_comparisons::{
    client,
    footprint::{self, Options},
    servers::{Contender, Kind},
};
use glimmer_notation as notation;

use super::{
    peers::{Peer, contenders, named},
    versus::value_bytes,
};
use glimmer_cli::vocabulary::{self, count_u32, memory_mib};

/// Count the items that fit into a memory limit, and measure the process's memory
///
/// The command stores distinct items until the limit is long passed, then reads
/// every item and verifies it. It reads the --first items back before it stores
/// the others. An item that is missing then was lost although there was room, if
/// the server keeps as many items at the end. If it keeps fewer, it had no room
/// for the others, and a line below the table says so.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Servers to compare with
    #[arg(long, value_delimiter = ',', default_value = "memcached")]
    peers: Vec<Peer>,
    /// Another program to compare with, and its name in tables: memcached, Redis, Valkey,
    /// Pogocache or another build of this server. May be given several times
    #[arg(long, value_name = "NAME=PATH", value_parser = named)]
    peer: Vec<Contender>,
    /// Measure the peers alone
    #[arg(long)]
    without_glimmer: bool,
    /// Number of distinct items, with 16-byte keys
    #[arg(long, default_value = "30m", value_parser = count_u32)]
    items: u32,
    /// Number of items to read back before the others are stored
    #[arg(long, default_value = "10m", value_parser = notation::within::<u32>(notation::count, ..))]
    first: u32,
    /// Length of a value in bytes, a multiple of 8
    #[arg(long, default_value_t = 32, value_parser = value_bytes)]
    value_bytes: usize,
    /// Instead: bytes per item at the sizes of published workloads, with Pelikan's segcache beside
    /// the servers; some minutes
    #[arg(long, conflicts_with_all = ["items", "first", "value_bytes"])]
    published: bool,
    /// Memory limit of the servers in MiB
    #[arg(short, long, value_name = "MIB", default_value_t = 1024, value_parser = memory_mib)]
    memory_limit: usize,
    /// More arguments for our server, separated by spaces
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    glimmer_args: String,
    /// Also write all measurements to this file as JSON
    #[arg(long, value_name = "FILE", value_parser = vocabulary::output)]
    json: Option<PathBuf>,
}

impl Arguments {
    /// Fills the servers and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let ours = (!self.without_glimmer).then_some(Kind::Glimmer.into());
        let peers = contenders(&self.peers, &self.peer);
        let servers: Vec<Contender> = ours.into_iter().chain(peers).collect();
        ensure!(
            !servers.is_empty(),
            "no server to measure: name --peers, or leave --without-glimmer out"
        );
        if self.published {
            let arguments = super::words(&self.glimmer_args);
            let report = published::run(&servers, self.memory_limit, &arguments, &super::progress)?;
            print!("{report}");
            return super::write_json(&self.json, &report);
        }
        let report = footprint::run(
            &Options {
                servers,
                items: self.items,
                first: self.first,
                like: client::items(0, self.value_bytes),
                memory_mib: self.memory_limit,
                glimmer_arguments: super::words(&self.glimmer_args),
            },
            &super::progress,
        )?;
        print!("{report}");
        super::write_json(&self.json, &report)
    }
}
