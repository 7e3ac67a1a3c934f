//! What a server says when it is ready: a line that names every address, and warnings.

use crate::accelerate::Sources;
use crate::accelerate::attachment::NotInDriver;
use crate::config::{Config, Mode};
use crate::log::Log;
use crate::memory_plan::MemoryPlan;
use crate::process;
use glimmer_node::{Address, Bound, Node, PassedOver};
use glimmer_notation::counted;
use glimmer_store::table::Counts as StoreCounts;
use std::net::SocketAddr;

/// A server that is ready, and what is said of it.
pub(super) struct Ready<'a> {
    pub config: &'a Config,
    pub plan: &'a MemoryPlan,
    pub node: &'a Node,
    /// Where `--http` listens.
    pub pages: &'a [SocketAddr],
    pub counts: StoreCounts,
    /// A line for each address that it serves without.
    pub passed_over: Vec<String>,
    /// Why the packet program is not in the driver, if it was to be.
    pub not_in_driver: Option<NotInDriver>,
}

impl Ready<'_> {
    /// Logs one line about the running server, its warnings and, with `-v`, its memory layout.
    /// Returns the line.
    pub fn announce(&self, log: &Log) -> String {
        if self.client_addresses().is_empty() {
            tracing::warn!("no client can connect: give -p, -U, -s or --native-port");
        }
        let ready = self.line();
        log.announce(&ready);
        self.warn_of_addresses();
        self.warn_of_the_process();
        self.describe_memory();
        for line in &self.passed_over {
            tracing::warn!("{line}");
        }
        if let Some(reason) = &self.not_in_driver {
            tracing::warn!(
                "--accelerate {}: {reason}, so the kernel's generic mode is used, which is slower",
                self.config.accelerate
            );
        }
        ready
    }

    /// The line that says that the server is ready, and where.
    fn line(&self) -> String {
        let config = self.config;
        let mut addresses = self.client_addresses();
        if addresses.is_empty() {
            addresses.push("no port".to_owned());
        }
        addresses.extend(self.pages.iter().map(|address| format!("http://{address}")));
        let full = match config.mode {
            Mode::Cache => config.eviction(),
            Mode::Store => "store mode",
        };
        let restored = config
            .memory_file
            .as_ref()
            .map_or_else(String::new, |path| {
                let items = counted(self.counts.restored, "item");
                format!(", {items} from {}", path.display())
            });
        format!(
            "glimmer {} ready on {}: {} MiB, {} {}, {}, {full}{restored}",
            env!("CARGO_PKG_VERSION"),
            addresses.join(" and "),
            config.memory_bytes >> 20,
            config.workers,
            self.workers(),
            config.access,
        )
    }

    /// Where clients connect, or send datagrams to.
    fn client_addresses(&self) -> Vec<String> {
        let tcp = self.node.addresses().iter().map(Address::to_string);
        let udp = self.node.udp_addresses().iter();
        let udp = udp.map(|address| format!("UDP {address}"));
        let native = self.node.native_ports().iter().map(|(ip, ports)| {
            let first = SocketAddr::new(*ip, ports[0]);
            format!("native {first}")
        });
        tcp.chain(udp).chain(native).collect()
    }

    fn workers(&self) -> &'static str {
        match self.config.workers {
            1 => "worker",
            _ => "workers",
        }
    }

    /// What others can reach.
    fn warn_of_addresses(&self) {
        let udp = self.node.udp_addresses().iter();
        for address in udp.filter(|udp| !udp.ip().is_loopback()) {
            tracing::warn!(
                "-U: anyone who can reach {address} can make this server flood a third party with \
                 replies to requests from a forged address; protect UDP with a firewall, or \
                 restrict it to this machine with -l 127.0.0.1"
            );
        }
        if let Some(address) = self.pages.iter().find(|it| !it.ip().is_loopback()) {
            tracing::warn!(
                "--http: anyone who can reach {address} can read statistics, settings and the \
                 names of hot keys; protect it with a firewall"
            );
        }
        if self.config.accelerate_from == Sources::Any {
            tracing::warn!(
                "--accelerate-from any: the firewall does not see requests for hot keys, wherever \
                 they come from"
            );
        }
        if let Some(bypass) = self.config.packets.figures() {
            tracing::info!(
                "datagrams go past the kernel's stack: {}, mode {}, queues: {}",
                bypass.interface,
                bypass.mode,
                bypass.queues
            );
            if let Some(warning) = bypass.warning {
                tracing::warn!(
                    "--packet-transport {}: {warning}",
                    self.config.packets.name()
                );
            }
        }
    }

    /// What was lost, what is not as asked for, and what is dangerous.
    fn warn_of_the_process(&self) {
        let (config, plan) = (self.config, self.plan);
        if self.counts.lost > 0 {
            tracing::warn!(
                "-e: {} items were not whole, because the process before was ended by force while \
                 it changed them, and are gone",
                self.counts.lost
            );
        }
        match &config.user {
            None if process::is_root() => {
                tracing::warn!("running as root; use -u USER to become another user");
            }
            Some(user) if !process::is_user(user) => {
                tracing::warn!("-u {user} has no effect: only root can become another user");
            }
            _ => {}
        }
        for notice in &config.notices {
            tracing::warn!("{notice}");
        }
        if plan.item_bytes_max < config.item_bytes_max {
            tracing::warn!(
                "-m {} is too small for items of {} bytes with {} {}: the item limit is {} bytes; \
                 raise -m or lower -I",
                config.memory_bytes >> 20,
                config.item_bytes_max,
                config.workers,
                self.workers(),
                plan.item_bytes_max,
            );
        }
    }

    fn describe_memory(&self) {
        let (config, plan) = (self.config, self.plan);
        tracing::info!(
            "memory: {} partitions, each planned for a log of {} KiB and an index of {} + {} \
             buckets; {} KiB of buffers per worker",
            plan.partitions,
            plan.log_bytes >> 10,
            plan.main_buckets,
            plan.spare_buckets,
            plan.buffer_bytes_per_worker >> 10,
        );
        tracing::info!(
            "items: up to {} bytes; about {} items of {} bytes fit; pages: {}",
            plan.item_bytes_max,
            plan.items_resident(config.item_bytes_hint),
            config.item_bytes_hint,
            config.hugepages,
        );
    }
}

/// A line for each address that a server was told to listen on and runs without.
pub(super) fn passed_over(bound: &Bound) -> Vec<String> {
    let line = |PassedOver { address, source }: &PassedOver| {
        format!("not listening on {address}: {source}")
    };
    bound.passed_over().iter().map(line).collect()
}
