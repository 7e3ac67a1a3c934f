//! Settings that are accepted, and have no effect with the others that are given.

use super::Arguments;
use super::values::Port;
use glimmer_base::limits::HOT_SLOTS_DEFAULT;
use glimmer_server::AdminCommand::Shutdown;
use glimmer_server::config::{
    ITEM_BYTES_HINT_DEFAULT, LRU_THRESHOLD_DEFAULT, TCP_KEEPALIVE_S_DEFAULT,
    TCP_USER_TIMEOUT_S_DEFAULT, UNIX_MODE_DEFAULT,
};
use glimmer_server::evict::{self, Objective};
use glimmer_server::{Accelerate, Direction, HotPolicy, HugepagePolicy, Mode, TableKind};
use glimmer_transport::transports::TRANSPORTS;
use std::env;

impl Arguments {
    /// A line for each setting that has no effect, in a server with this mode.
    ///
    /// Settings of a dispatch policy are not among them: a client may put that policy in force
    /// later.
    pub(super) fn without_effect(&self, mode: Mode) -> Vec<String> {
        const SLABS: &str = "there are no slabs";
        const UNIX: &str = "-s listens on a Unix socket only";
        let (memory, network) = (&self.memory, &self.network);
        let has_logs = mode == Mode::Cache && memory.table == TableKind::Mica;
        let rule = has_logs.then_some(memory.evict.unwrap_or(evict::DEFAULT));
        let has_threshold = rule.is_some_and(|rule| rule.reinsertion_threshold.is_some());
        let is_adaptive = rule.is_some_and(|rule| rule.name == evict::DEFAULT.name);
        let is_off = matches!(self.accelerator.accelerate, Accelerate::Off);
        let policy = self.accelerator.accelerate_policy.to_string();
        let has_policy = policy != HotPolicy::default().to_string();
        let is_native = network.native_port != Port::None;
        let is_unix = network.unix_socket.is_some();
        // The program that started this one may have passed it TCP sockets in place of that.
        let has_no_tcp = is_unix && env::var_os("LISTEN_FDS").is_none();
        let is_udp = network.udp_port != Port::None && !is_unix;
        let carrier = network.packet_transport.name();
        let clients = &self.clients;
        let of_tls = clients.extended.iter().flat_map(|list| list.split(','));
        let of_tls = of_tls.filter_map(|option| option.trim_start().split('=').next());
        let of_tls: Vec<&str> = of_tls.filter(|name| name.starts_with("ssl_")).collect();
        let ssl = format!("-o {}", of_tls.join(","));
        let pages = memory.hugepages;
        let has_huge_pages = matches!(pages, HugepagePolicy::Auto | HugepagePolicy::Transparent);
        let settings = [
            ("-f", memory.slab_growth_factor.is_some(), SLABS),
            ("-n", memory.slab_min_size.is_some(), SLABS),
            (
                "-N",
                clients.napi_ids.is_some(),
                "the server does not assign threads by network queue",
            ),
            (
                "--lru-threshold",
                memory.lru_threshold != LRU_THRESHOLD_DEFAULT && !has_threshold,
                "it is for --evict lru",
            ),
            (
                "--evict-for",
                memory.evict_for != Objective::Hits && !is_adaptive,
                "it is for --evict adaptive",
            ),
            (
                "--item-size-hint",
                memory.item_size_hint != ITEM_BYTES_HINT_DEFAULT && !has_logs,
                "it is for --mode cache and --table mica",
            ),
            (
                "-L",
                memory.enable_largepages && !has_huge_pages,
                "--hugepages says which pages are used",
            ),
            (
                "-a",
                network.unix_mask != UNIX_MODE_DEFAULT && !is_unix,
                "it is for the socket of -s",
            ),
            // memcached silently ignores it as well.
            ("-U", network.udp_port != Port::None && is_unix, UNIX),
            ("-Z", clients.enable_ssl && is_unix, UNIX),
            (
                &ssl,
                !of_tls.is_empty() && !clients.enable_ssl,
                "nothing is encrypted without -Z",
            ),
            (
                "-A",
                clients.enable_shutdown && clients.disable_commands.contains(&Shutdown),
                "--disable-commands names shutdown",
            ),
            (
                "--address-connections",
                clients.address_connections != 0 && has_no_tcp,
                UNIX,
            ),
            (
                "--address-requests",
                clients.address_requests != 0 && has_no_tcp,
                UNIX,
            ),
            (
                "--address-bytes",
                clients.address_bytes != 0 && has_no_tcp,
                UNIX,
            ),
            (
                "--tcp-keepalive",
                network.tcp_keepalive != TCP_KEEPALIVE_S_DEFAULT && has_no_tcp,
                UNIX,
            ),
            (
                "--tcp-user-timeout",
                network.tcp_user_timeout != TCP_USER_TIMEOUT_S_DEFAULT && has_no_tcp,
                UNIX,
            ),
            (
                "--packet-transport",
                carrier != TRANSPORTS[0].name && !is_udp && !is_native,
                "there are no datagrams without -U or --native-port",
            ),
            (
                "--native-check-keyhash",
                network.native_check_keyhash && !is_native,
                "there are no native clients without --native-port",
            ),
            (
                "--native-direction",
                network.native_direction != Direction::Client && !is_native,
                "there are no native clients without --native-port",
            ),
            (
                "--accelerate-slots",
                self.accelerator.accelerate_slots != HOT_SLOTS_DEFAULT && is_off,
                "--accelerate is off",
            ),
            (
                "--accelerate-policy",
                has_policy && is_off,
                "--accelerate is off",
            ),
        ];
        let idle = settings.into_iter().filter(|(_, is_idle, _)| *is_idle);
        idle.map(|(flag, _, reason)| format!("{flag} has no effect: {reason}"))
            .collect()
    }
}
