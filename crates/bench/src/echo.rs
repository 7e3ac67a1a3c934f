//! `glimmer bench echo`.

use std::net::{IpAddr, Ipv4Addr};

use glimmer_comparisons::bare;
use glimmer_notation as notation;

/// Serve as the ceiling for one request at a time, until the process is ended
///
/// A bare server without a store: it waits in epoll, and answers each request with
/// one recv and one send. `glimmer bench versus` starts it beside the other servers.
/// By itself it tells what another load generator can reach on this machine.
///
/// It answers memcached's `set`, and `get` of the keys of `glimmer bench load`. It
/// closes a connection that sends a second request before the first one's answer.
///
/// Example:
///
///   glimmer bench echo -p 11311 &
///   glimmer bench load --server 127.0.0.1:11311 --no-fill --pipeline 1
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Address to listen on
    #[arg(short, long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    listen: IpAddr,
    /// TCP port
    #[arg(short, long, default_value_t = 11311)]
    port: u16,
    /// Length of every value in bytes
    #[arg(long, default_value_t = 64, value_parser = value_bytes)]
    value_bytes: usize,
}

fn value_bytes(text: &str) -> Result<usize, String> {
    notation::within(notation::bytes, 0..=bare::VALUE_BYTES_MAX as u64)(text)
}

impl Arguments {
    /// Serves.
    pub fn run(&self) -> anyhow::Result<()> {
        bare::serve((self.listen, self.port).into(), self.value_bytes)
    }
}
