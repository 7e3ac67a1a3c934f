//! Where the server listens, and the limits of its connections.

use super::super::values::{self, Port};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use glimmer_base::limits;
use glimmer_notation as notation;
use glimmer_server::Direction;
use glimmer_server::config::{
    BACKLOG_DEFAULT, CONNECTIONS_DEFAULT, TCP_KEEPALIVE_S_DEFAULT, TCP_USER_TIMEOUT_S_DEFAULT,
};
use glimmer_transport::packet::PacketTransport;
use glimmer_transport::transports::TRANSPORTS;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the server listens, and the limits of its connections.
#[derive(Args, Debug)]
#[command(next_help_heading = "Network")]
pub struct Network {
    /// TCP port to listen on; 0 for none, -1 for any free port
    ///
    /// With -U alone, the TCP port is the same as the UDP port.
    #[arg(
        short,
        long,
        value_name = "NUM",
        value_parser = values::port,
    )]
    pub(in crate::serve) port: Option<Port>,

    /// UDP port to listen on; 0 for none, -1 for any free port
    ///
    /// UDP is off by default, as in memcached: attackers can use an open UDP port to flood a third
    /// party.
    #[arg(
        short = 'U',
        long,
        value_name = "NUM",
        default_value = "0",
        value_parser = values::port,
    )]
    pub(in crate::serve) udp_port: Port,

    /// First UDP port for native clients, one port per worker; 0 for none, -1 for any free ports
    ///
    /// The native protocol sends each request straight to the worker that owns its key, without
    /// connections. `stats native` shows the ports. The server sends long replies only to clients
    /// that have proved that they own their address.
    #[arg(
        long,
        value_name = "NUM",
        default_value = "0",
        value_parser = values::port,
    )]
    pub(in crate::serve) native_port: Port,

    /// Share the port of --native-port among all workers instead of one port for each
    ///
    /// For networks where one port is to be had. The kernel gives each datagram to the worker that
    /// owns its first key. This needs --access crcw, which is the default.
    #[arg(long, hide_short_help = true)]
    pub(in crate::serve) native_single_port: bool,

    /// Compute the keyhash of native reads again instead of trusting the client
    ///
    /// The server always computes the keyhash of writes again. Of the keyhash of a read it believes
    /// the partition. A wrong one finds nothing, and with this flag it is refused.
    #[arg(long, hide_short_help = true)]
    pub(in crate::serve) native_check_keyhash: bool,

    /// Who sends native requests to the worker that owns their key: client or server
    ///
    /// client: each client sends to the owner's port, and a request at another port is refused.
    /// server: a request may arrive at any port, and the worker there hands it over to the owner,
    /// which costs both workers time. This is for comparisons, and for clients that know only one
    /// port.
    #[arg(
        long,
        value_name = "WHO",
        default_value_t = Direction::Client,
        hide_short_help = true,
    )]
    pub(in crate::serve) native_direction: Direction,

    /// Serve metrics and health at this address over HTTP: a port, host, host:port
    ///
    /// The paths are /metrics (for Prometheus), /healthz, /readyz and /api/stats (JSON). A port
    /// alone is served on 127.0.0.1 only; -1 is any free port, and 0 is none. The pages show
    /// statistics, settings and names of hot keys to everybody who can connect, and change nothing.
    #[arg(long, value_name = "ADDR", value_parser = NonEmptyStringValueParser::new())]
    pub(in crate::serve) http: Option<String>,

    /// Unix socket to listen on, instead of TCP and UDP
    #[arg(short = 's', long, value_name = "FILE")]
    pub(in crate::serve) unix_socket: Option<PathBuf>,

    /// Permissions of the Unix socket, in octal
    #[arg(
        short = 'a',
        long,
        value_name = "MASK",
        default_value = "700",
        value_parser = values::octal,
    )]
    pub(in crate::serve) unix_mask: u32,

    /// Address to listen on: host, host:port, or a list [default: all interfaces]
    ///
    /// Separate several addresses by commas, or repeat the option. An address without a port uses
    /// the ports of -p (TCP) and -U (UDP). memcached's prefix tag[NAME]: is accepted. A cache has
    /// no password without -Y, so keep it behind a firewall or on 127.0.0.1.
    #[arg(short, long, value_name = "ADDR")]
    pub(in crate::serve) listen: Vec<String>,

    /// Maximum number of client connections
    ///
    /// Further clients get `ERROR Too many open connections` and are disconnected. With -o
    /// no_maxconns_fast they wait instead. If the hard limit of open files (ulimit -Hn) is too
    /// low for them and the server's own files, the server lowers this number and prints a warning.
    /// If it is too low for them alone, the server does not start.
    #[arg(
        short,
        long,
        value_name = "NUM",
        default_value_t = CONNECTIONS_DEFAULT,
        value_parser = values::connections,
    )]
    pub(in crate::serve) conn_limit: usize,

    /// Seconds of silence after which the kernel probes a client; 0 for never
    ///
    /// The kernel probes three times, at intervals of a third of this time. If the client answers
    /// no probe, its connection is closed after --tcp-user-timeout, or after the third probe if
    /// that is 0. memcached uses the kernel's own setting, usually two hours.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_KEEPALIVE_S_DEFAULT,
        value_parser = notation::within::<u64>(notation::count, 0..=limits::TCP_TIMEOUT_S_MAX),
        hide_short_help = true,
    )]
    pub(in crate::serve) tcp_keepalive: u64,

    /// Seconds after which the kernel closes a connection whose client takes no reply; 0 for the
    /// kernel's default, about a quarter of an hour
    ///
    /// This closes connections of clients that vanished while replies were on the way, and of
    /// clients that stopped reading.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = TCP_USER_TIMEOUT_S_DEFAULT,
        value_parser = notation::within::<u64>(notation::count, 0..=limits::TCP_TIMEOUT_S_MAX),
        hide_short_help = true,
    )]
    pub(in crate::serve) tcp_user_timeout: u64,

    /// Connections that may wait to be accepted, for each worker
    #[arg(
        short = 'b',
        long,
        value_name = "NUM",
        default_value_t = BACKLOG_DEFAULT,
        value_parser = values::backlog,
    )]
    pub(in crate::serve) listen_backlog: i32,

    /// Requests of one connection to execute before other connections have their turn; at most 256
    ///
    /// memcached's default is 20. Requests that arrive together are executed as one batch here, and
    /// a smaller number splits the batch.
    #[arg(
        short = 'R',
        long,
        value_name = "NUM",
        default_value_t = limits::TURN_REQUESTS_MAX as usize,
        value_parser = values::requests,
    )]
    pub(in crate::serve) max_reqs_per_event: usize,

    /// What carries datagrams: udp, udp-plain, xdp:IF or dpdk:ip=ADDRESS/BITS
    ///
    /// This is for -U and --native-port. udp: sockets with segmentation offload, so that the kernel
    /// passes several datagrams of one client at once. udp-plain: one system call for each
    /// datagram. xdp:IF: past the kernel's stack at network interface IF (AF_XDP), whose addresses
    /// -l names; xdp:IF:QUEUES takes its first queues only, and xdp:IF:QUEUES:generic does without
    /// its driver. This needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
    /// 'dpdk:ip=ADDRESS/BITS EAL ARGUMENTS': by a NIC that DPDK drives, at this address; it needs a
    /// build with the feature `dpdk`.
    #[arg(
        long,
        value_name = "TRANSPORT",
        default_value = TRANSPORTS[0].name,
        value_parser = glimmer_transport::transports::named,
        hide_short_help = true,
    )]
    pub(in crate::serve) packet_transport: Arc<dyn PacketTransport>,
}
