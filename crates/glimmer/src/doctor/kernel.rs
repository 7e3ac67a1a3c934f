//! What the kernel is set to: pages, queues, buffers, clock.

use super::finding::Finding;
use super::system::System;
use glimmer_base::limits::DATAGRAM_BUFFER_BYTES;
use glimmer_server::{Config, HugepagePolicy};
use std::path::Path;

/// Clocks that are read without a system call.
const FAST_CLOCKS: [&str; 4] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];
/// Part of the time, in percent, that a machine may lack its cores before that is worth a word.
const STOLEN_PERCENT: u64 = 1;

pub fn all(config: &Config, on: &System) -> Vec<Finding> {
    let findings = [
        pages(config, on),
        overcommit(on),
        backlog(config, on),
        datagrams(config, on),
        clock(on),
        stolen(on),
        governor(on),
        nodes(config, on),
    ];
    findings.into_iter().flatten().collect()
}

fn pages(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "huge pages";
    match config.hugepages {
        HugepagePolicy::Off => Some(Finding::ok(ABOUT, "off, as --hugepages says")),
        HugepagePolicy::Hugetlb => {
            let page = on.line("proc/meminfo", "Hugepagesize:")? << 10;
            let free = on.line("proc/meminfo", "HugePages_Free:")?;
            let needed = (config.memory_bytes as u64).div_ceil(page.max(1));
            let found =
                format!("--hugepages hugetlb needs {needed} reserved pages, {free} are free");
            Some(match free >= needed {
                true => Finding::ok(ABOUT, found),
                false => Finding::fault(
                    ABOUT,
                    found,
                    format!("sysctl vm.nr_hugepages={needed}, or --hugepages auto"),
                ),
            })
        }
        HugepagePolicy::Auto | HugepagePolicy::Transparent => {
            const FILE: &str = "sys/kernel/mm/transparent_hugepage/enabled";
            Some(match on.choice(FILE)?.as_str() {
                "never" => Finding::hint(
                    ABOUT,
                    "transparent ones are off, so large stores miss the TLB more often",
                    format!("echo madvise > /{FILE}"),
                ),
                chosen => Finding::ok(ABOUT, format!("transparent ones ({chosen})")),
            })
        }
    }
}

/// Whether the kernel refuses to reserve more addresses than it has memory.
fn overcommit(on: &System) -> Option<Finding> {
    (on.number("proc/sys/vm/overcommit_memory")? == 2).then(|| {
        Finding::hint(
            "overcommit",
            "vm.overcommit_memory=2 counts memory that is reserved and not used",
            "sysctl vm.overcommit_memory=0, if -m does not fit",
        )
    })
}

/// How many connections may wait to be accepted.
fn backlog(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "backlog";
    let somaxconn = on.number("proc/sys/net/core/somaxconn")?;
    let wanted = config.backlog.max(0) as u64;
    Some(match somaxconn >= wanted {
        true => Finding::ok(
            ABOUT,
            format!("-b {wanted}, net.core.somaxconn={somaxconn}"),
        ),
        false => Finding::hint(
            ABOUT,
            format!("-b {wanted} becomes {somaxconn}, which net.core.somaxconn allows"),
            format!("sysctl net.core.somaxconn={wanted}"),
        ),
    })
}

/// The kernel's buffers for datagrams, if there are any.
fn datagrams(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "UDP buffers";
    if config.udp.is_empty() && config.native.is_empty() {
        return None;
    }
    let least = ["r", "w"].map(|kind| on.number(&format!("proc/sys/net/core/{kind}mem_max")));
    let least = least.into_iter().flatten().min()?;
    let wanted = DATAGRAM_BUFFER_BYTES as u64;
    Some(match least >= wanted {
        true => Finding::ok(ABOUT, format!("{wanted} bytes")),
        false => Finding::hint(
            ABOUT,
            format!("{least} bytes, and not {wanted}: the kernel drops datagrams of long bursts"),
            format!("sysctl net.core.rmem_max={wanted} net.core.wmem_max={wanted}"),
        ),
    })
}

/// What the kernel reads the time from.
fn clock(on: &System) -> Option<Finding> {
    const ABOUT: &str = "clock";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let current = on.text(&format!("{FOLDER}/current_clocksource"))?;
    if FAST_CLOCKS.contains(&&*current) {
        return Some(Finding::ok(ABOUT, current));
    }
    let others = on.text(&format!("{FOLDER}/available_clocksource"))?;
    let faster = others.split(' ').find(|other| FAST_CLOCKS.contains(other));
    let found = format!("{current} needs a system call for each reading");
    Some(match faster {
        Some(faster) => Finding::hint(
            ABOUT,
            found,
            format!("echo {faster} > /{FOLDER}/current_clocksource"),
        ),
        None => Finding::hint(
            ABOUT,
            found,
            "another kind of (virtual) machine has a faster one",
        ),
    })
}

/// The time that the host of a virtual machine gave to others, since the machine has started.
fn stolen(on: &System) -> Option<Finding> {
    const ABOUT: &str = "stolen time";
    let text = on.text("proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = line
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    // User, nice, system, idle, waiting, two kinds of interrupts, stolen.
    let ticks: Vec<u64> = ticks.take(8).collect();
    let (all, stolen) = (ticks.iter().sum::<u64>(), *ticks.get(7)?);
    (stolen * 100 > all * STOLEN_PERCENT).then(|| {
        Finding::hint(
            ABOUT,
            format!(
                "the host gave {}% of the time to others",
                stolen * 100 / all
            ),
            "latencies suffer: ask for cores that nobody shares",
        )
    })
}

/// How the frequency of the cores is chosen.
fn governor(on: &System) -> Option<Finding> {
    let governor = on.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")?;
    (governor == "powersave").then(|| {
        Finding::hint(
            "frequency",
            "the cores save power (powersave)",
            "cpupower frequency-set -g performance, where latency matters more",
        )
    })
}

/// Several nodes of memory.
fn nodes(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "NUMA";
    let names = on.names(Path::new("sys/devices/system/node"));
    let is_node = |name: &&String| {
        let number = name.strip_prefix("node");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let count = names.iter().filter(is_node).count();
    (count > 1).then(|| match config.pin {
        true => Finding::ok(
            ABOUT,
            format!("{count} nodes, and --pin keeps workers on theirs"),
        ),
        false => Finding::hint(
            ABOUT,
            format!("{count} nodes of memory, and workers move between them"),
            "--pin, or a server for each node (numactl --cpunodebind)",
        ),
    })
}
