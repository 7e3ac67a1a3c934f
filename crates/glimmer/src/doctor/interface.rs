//! The interfaces of the accelerator and of the packet transport: whether they are there, and
//! whether the accelerator's packet program can be attached.

use super::finding::Finding;
use super::system::System;
use glimmer_server::{Accelerate, Config, Hook};
use std::path::Path;

/// Drivers whose XDP the kernel's sources have had for years. Others may have it, too.
const DRIVERS_WITH_XDP: [&str; 20] = [
    "bnxt_en",
    "ena",
    "gve",
    "hv_netvsc",
    "i40e",
    "ice",
    "igb",
    "igc",
    "ixgbe",
    "ixgbevf",
    "mana",
    "mlx4_en",
    "mlx5_core",
    "mvneta",
    "nfp",
    "qede",
    "sfc",
    "tun",
    "veth",
    "virtio_net",
];
/// Bits of `CapEff`: CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF.
const CAPABILITIES: u64 = 1 << 12 | 1 << 38 | 1 << 39;

pub fn all(config: &Config, on: &System) -> Vec<Finding> {
    let of_packets = config.packets.interface().map(ToOwned::to_owned);
    let mut findings: Vec<Finding> = of_packets
        .and_then(|interface| missing("packet transport", &interface, on))
        .into_iter()
        .collect();
    findings.extend(accelerator(config, on));
    findings
}

/// Whether the machine lacks an interface.
fn missing(about: &'static str, interface: &str, on: &System) -> Option<Finding> {
    let is_there = on.path("sys/class/net").join(interface).exists();
    (!is_there).then(|| {
        Finding::fault(
            about,
            format!("{interface}: there is no such interface"),
            "`ip link` lists those of this machine",
        )
    })
}

fn accelerator(config: &Config, on: &System) -> Vec<Finding> {
    const ABOUT: &str = "accelerator";
    let Accelerate::At { hook, interface } = &config.accelerate else {
        return Vec::new();
    };
    if let Some(fault) = missing(ABOUT, interface, on) {
        return vec![fault];
    }
    let known = on.path("sys/class/net").join(interface);
    let mut findings = vec![driver(*hook, interface, &known)];
    let may = on.capabilities();
    if may.is_some_and(|may| may & CAPABILITIES != CAPABILITIES) {
        findings.push(Finding::fault(
            ABOUT,
            "this user may not load packet programs",
            "start it with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or as root",
        ));
    }
    if cfg!(not(target_arch = "x86_64")) {
        findings.push(Finding::fault(
            ABOUT,
            "the packet program runs on x86-64 only",
            "--accelerate model",
        ));
    }
    findings
}

/// What the driver of the interface can do for the hook.
fn driver(hook: Hook, interface: &str, folder: &Path) -> Finding {
    const ABOUT: &str = "accelerator";
    let link = std::fs::read_link(folder.join("device/driver"));
    let name = link
        .ok()
        .and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    let (found, has_xdp) = match &name {
        Some(name) => (
            format!("{interface}, of the driver {name}"),
            DRIVERS_WITH_XDP.contains(&&**name),
        ),
        None => (format!("{interface}, without a device"), false),
    };
    match hook {
        Hook::Tcx => Finding::ok(ABOUT, format!("{found}, at tcx")),
        _ if has_xdp => Finding::ok(ABOUT, format!("{found}, which has XDP")),
        Hook::Xdp => Finding::hint(
            ABOUT,
            format!("{found}, which is not known to have XDP"),
            "the kernel's generic mode, which is slower, takes its place",
        ),
        Hook::XdpNative => Finding::hint(
            ABOUT,
            format!("{found}, which is not known to have XDP"),
            "if it has none, the server does not start: --accelerate xdp: or tcx:",
        ),
    }
}
