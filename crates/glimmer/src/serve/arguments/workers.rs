//! Threads, and which of them executes a request.

use super::super::values;
use clap::Args;
use glimmer_base::limits;
use glimmer_dispatch::{Cost, LargeCores, POLICIES, Settings};
use glimmer_notation as notation;
use glimmer_server::{AccessMode, BusyPoll, SliceBytes};

/// Threads, and which of them executes a request.
#[derive(Args, Debug)]
#[command(next_help_heading = "Workers")]
pub struct Workers {
    /// Worker threads [default: one per core]
    ///
    /// memcached's default is 4 on every machine. An idle worker sleeps. Each worker needs buffers
    /// for a few of the largest items. If -m has no room for them, fewer workers start, and a
    /// warning says so: with -I 1m, at most 4 with -m 64, 6 with -m 128 and 10 with -m 256.
    #[arg(
        short,
        long,
        value_name = "NUM",
        value_parser = values::threads,
    )]
    pub(in crate::serve) threads: Option<usize>,

    /// Which workers may read and write a partition: erew, crew or crcw
    ///
    /// erew: only its owner, without synchronisation; every other request crosses to the owner.
    /// crew: any worker reads, only the owner writes. crcw: any worker reads and writes, so nothing
    /// crosses. crcw is the default because one TCP connection carries requests for all partitions.
    #[arg(long, value_name = "MODE", default_value_t = AccessMode::Crcw)]
    pub(in crate::serve) access: AccessMode,

    #[arg(
        long,
        value_name = "POLICY",
        value_parser = values::policy,
        help = dispatch_help(),
        long_help = dispatch_long_help(),
    )]
    pub(in crate::serve) dispatch: Option<String>,

    /// Percentage of requests that --dispatch size-aware treats as small
    ///
    /// The server counts requests by the size of their values, in classes of powers of two. Those
    /// above the class with this percentile are large. Under --large-cores auto, values of 64 KiB
    /// and more are large even if more requests are for them.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = Settings::DEFAULT.percentile,
        value_parser = values::percentile,
    )]
    pub(in crate::serve) dispatch_percentile: f64,

    /// Milliseconds after which --dispatch size-aware makes another plan
    ///
    /// An epoch with fewer than 1,000 requests keeps the plan. An idle server does not wake up for
    /// the end of an epoch.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = Settings::DEFAULT.epoch_ms,
        value_parser = notation::within::<u64>(notation::count, 1..=limits::DISPATCH_EPOCH_MS_MAX),
    )]
    pub(in crate::serve) dispatch_epoch_ms: u64,

    /// Weight of the latest epoch in the moving average of requests by size, above 0 and up to 1
    #[arg(
        long,
        value_name = "WEIGHT",
        default_value_t = Settings::DEFAULT.alpha,
        value_parser = values::weight,
    )]
    pub(in crate::serve) dispatch_alpha: f64,

    /// Most requests that a worker takes from its own queue in one turn
    #[arg(
        long,
        value_name = "REQUESTS",
        default_value_t = Settings::DEFAULT.batch as u16,
        value_parser = notation::within::<u16>(notation::count, 1..=limits::BATCH_MAX as u64),
    )]
    pub(in crate::serve) dispatch_batch: u16,

    /// What a request costs, by the size of its value: packets, bytes or constant+bytes
    ///
    /// --dispatch size-aware divides the workers so that each has requests of about the same cost.
    /// packets: the packets of 1,400 bytes that the value takes. constant+bytes: 1,000 bytes more
    /// than the value has.
    #[arg(
        long,
        value_name = "COST",
        default_value = "packets",
        value_parser = values::parsed::<Cost>,
    )]
    pub(in crate::serve) dispatch_cost: Cost,

    /// Workers for large requests under --dispatch size-aware: auto, paper or a number
    ///
    /// paper: by the formula of the Minos paper; where that gives none, one worker is standby, and
    /// takes large requests besides its small ones. auto: by the same formula, and more of them
    /// while large requests keep these busy. A worker for large requests takes small ones while it
    /// has no large one, and connections are at home with it unless it is busy.
    #[arg(
        long,
        value_name = "WORKERS",
        default_value = "auto",
        value_parser = values::parsed::<LargeCores>,
    )]
    pub(in crate::serve) large_cores: LargeCores,

    /// Requests for values of fewer bytes are never large
    ///
    /// This keeps requests where they arrive if all values have about the same size.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = Settings::DEFAULT.large_min,
        value_parser = notation::within::<u32>(notation::bytes, 1..=i32::MAX as u64),
    )]
    pub(in crate::serve) large_min: u32,

    /// Bytes of a large value that are sent or received before others have their turn, or off
    ///
    /// A worker that serves small requests sends or receives large values over connections in
    /// slices of this many bytes, and looks for small requests after each slice. With smaller
    /// slices, down to 16k, small requests wait for less, and each value takes more system calls.
    /// off sends and receives values whole, as Minos does: every request at the same worker waits
    /// for as much of a value as the socket takes or has. Native clients take large replies in
    /// parts of 43 KB with either.
    #[arg(long, value_name = "BYTES", default_value_t = SliceBytes(limits::SLICE_BYTES))]
    pub(in crate::serve) slice_bytes: SliceBytes,

    /// Bind each worker to its own core
    ///
    /// Use this on machines that do nothing else. It is off because two pinned programs on one core
    /// slow each other down.
    #[arg(long)]
    pub(in crate::serve) pin: bool,

    /// Poll for requests instead of sleeping: off, always, or a time in microseconds
    ///
    /// Use this on machines whose cores have nothing else to do. It saves the time to wake up,
    /// which is most of the latency of a single request. Without a value, and with always, workers
    /// never sleep. With a time, a worker that has received a datagram looks for the next one for
    /// that long before it sleeps. Where the kernel can, it looks at the network card's queue in
    /// these calls (SO_PREFER_BUSY_POLL), instead of waiting for an interrupt.
    #[arg(
        long,
        value_name = "MICROSECONDS",
        num_args = 0..=1,
        default_missing_value = "always",
        default_value_t = BusyPoll::Off,
    )]
    pub(in crate::serve) busy_poll: BusyPoll,
}

/// The short help of `--dispatch`.
fn dispatch_help() -> String {
    let names = glimmer_dispatch::names();
    format!(
        "Which worker executes a request: {names} [default: size-aware with two threads or more \
         and --access crcw, otherwise keyhash]"
    )
}

/// The long help of `--dispatch`: a sentence per policy.
fn dispatch_long_help() -> String {
    let mut help = dispatch_help() + "\n\n";
    for policy in POLICIES {
        help.push_str(&format!("{}: {}. ", policy.name(), policy.summary()));
    }
    help
}
