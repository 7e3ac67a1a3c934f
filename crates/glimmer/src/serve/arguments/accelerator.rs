//! The hot-key accelerator.

use clap::Args;
use glimmer_base::limits;
use glimmer_notation as notation;
use glimmer_server::{Accelerate, HotPolicy, Sources};

/// The hot-key accelerator.
#[derive(Args, Debug)]
#[command(next_help_heading = "Accelerator")]
pub struct Accelerator {
    /// Answer reads of hot keys over UDP before the server sees them: off, model, xdp:IF,
    /// xdp-native:IF or tcx:IF
    ///
    /// A small table of the hottest items answers datagrams with one text `get` or `gets` of one
    /// key, or one binary GET. It is always exact. All other requests go to the server. Needs -U.
    ///
    /// model: each worker looks in the table before it parses a datagram. This needs no rights.
    /// xdp:IF: a program in the kernel answers packets that arrive at the interface IF, before the
    /// kernel's network stack and its firewall see them; in the network driver if the driver can do
    /// that, and otherwise in the kernel's generic mode. xdp-native:IF: only in the driver. tcx:IF:
    /// at the kernel's tcx hook, beside another XDP program. Programs need CAP_BPF, CAP_PERFMON and
    /// CAP_NET_ADMIN at start; -u gives them up.
    ///
    /// `stats accelerator` shows what it does.
    #[arg(
        long,
        value_name = "BODY",
        default_value_t = Accelerate::Off,
        hide_short_help = true,
    )]
    pub(in crate::serve) accelerate: Accelerate,

    /// Whose requests --accelerate answers at an interface: networks such as 10.0.0.0/8,fd00::/8,
    /// or any [default: hosts on the interface's link]
    ///
    /// Requests from elsewhere go to the server, through the firewall. Replies go to the hardware
    /// address that sent the request.
    #[arg(long, value_name = "CIDR,...", hide_short_help = true)]
    pub(in crate::serve) accelerate_from: Option<Sources>,

    /// Which keys --accelerate holds: counting or paper
    ///
    /// counting: the keys that are read most by a running count of sampled reads and of hits. A
    /// change of an item renews its copy, and keys that change too often stay out for a while.
    /// paper: keys by the last hundred distinct ones among sampled reads, as in "Hardware
    /// Acceleration of Key-Value Stores". A key whose item changes leaves.
    #[arg(
        long,
        value_name = "POLICY",
        default_value_t = HotPolicy::default(),
        hide_short_help = true,
    )]
    pub(in crate::serve) accelerate_policy: HotPolicy,

    /// How many items --accelerate has room for: 256 to 65536. Their memory counts within -m
    #[arg(
        long,
        value_name = "N",
        default_value_t = limits::HOT_SLOTS_DEFAULT,
        hide_short_help = true,
        value_parser = notation::within::<usize>(notation::count, 0..=u32::MAX as u64),
    )]
    pub(in crate::serve) accelerate_slots: usize,
}
