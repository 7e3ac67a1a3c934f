//! What the process may take: memory, cores, open files.

use super::files::fault;
use super::finding::Finding;
use super::system::System;
use glimmer_server::machine::{self, BESIDE_LIMIT_BYTES};
use glimmer_server::memory_plan::{MemoryPlan, Needs};
use glimmer_server::{Config, descriptors_reserved, descriptors_wanted, preflight};

pub fn all(config: &Config, on: &System) -> Vec<Finding> {
    let mut findings = vec![memory(config, on)];
    findings.extend(item(config));
    findings.push(workers(config));
    findings.extend(files(config, on));
    findings.extend(addresses(config, on));
    findings.extend(locked(config, on));
    findings.extend(core_files(config, on));
    findings.extend(user(config, on));
    findings
}

/// Whether the memory is there, and may be taken.
fn memory(config: &Config, on: &System) -> Finding {
    const ABOUT: &str = "memory";
    let mib = |bytes: u64| bytes >> 20;
    let needed = config.memory_bytes as u64 + BESIDE_LIMIT_BYTES;
    let takes = format!("-m and the process take {} MiB", mib(needed));
    let Some(allowed) = machine::memory_allowed() else {
        return Finding::hint(
            ABOUT,
            format!("{takes}, and the system does not say how much there is"),
            "see to it that there is as much",
        );
    };
    let limit = mib(allowed.bytes);
    if allowed.bytes < needed {
        let (found, advice) = match allowed.by {
            Some(file) => (
                format!(
                    "{takes}, and the control group {limit} ({})",
                    file.display()
                ),
                "choose less, such as -m 75%, or raise that limit",
            ),
            None => (
                format!("{takes}, and the machine has {limit}"),
                "choose less, such as -m 75%",
            ),
        };
        return Finding::fault(ABOUT, found, advice);
    }
    let available = on.line("proc/meminfo", "MemAvailable:");
    match available.map(|kib| kib << 10) {
        Some(available) if available < needed => Finding::hint(
            ABOUT,
            format!("{takes}, and of the machine's {} are free", mib(available)),
            "choose less, or end what else takes memory",
        ),
        _ => Finding::ok(ABOUT, format!("{takes}, of {limit} that it may take")),
    }
}

/// The largest item, if that is less than was asked for.
fn item(config: &Config) -> Option<Finding> {
    let plan = MemoryPlan::make(Needs::of(config)).ok()?;
    (plan.item_bytes_max < config.item_bytes_max).then(|| {
        Finding::hint(
            "largest item",
            format!(
                "{} bytes, and not {}: -m is small for such items",
                plan.item_bytes_max, config.item_bytes_max
            ),
            "raise -m, or lower -I",
        )
    })
}

fn workers(config: &Config) -> Finding {
    const ABOUT: &str = "workers";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let of = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let (workers, on) = (of(config.workers, "worker"), of(cores, "core"));
    match config.workers <= cores {
        true => Finding::ok(ABOUT, format!("{workers}, {on}")),
        false => Finding::hint(
            ABOUT,
            format!("{workers} share {on}: each waits for others"),
            "leave -t out, or allow more cores",
        ),
    }
}

/// The limit of open files.
fn files(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "open files";
    let (_, hard) = on.limits("Max open files")?;
    let connections = config.connections_max as u64;
    let reserved = descriptors_reserved(config.workers);
    let wanted = descriptors_wanted(config.connections_max, config.workers);
    let needs = format!("-c {connections} needs {wanted}, the hard limit is {hard}");
    let advice = format!("raise it to {wanted} (LimitNOFILE= of the unit, ulimit -Hn)");
    // Who may raise the hard limit may not raise it above that of the kernel.
    let most = match on.may_raise_limits() {
        true => hard.max(on.number("proc/sys/fs/nr_open").unwrap_or(u64::MAX)),
        false => hard,
    };
    Some(if most >= wanted {
        Finding::ok(ABOUT, needs)
    } else if hard >= connections && hard > reserved {
        let left = hard - reserved;
        Finding::hint(ABOUT, format!("{needs}: -c becomes {left}"), advice)
    } else {
        Finding::fault(ABOUT, needs, format!("{advice}, or lower -c"))
    })
}

/// The limit of addresses (`ulimit -v`), which a store reserves and does not fill.
fn addresses(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "address space";
    let (soft, _) = on.limits("Max address space")?;
    let limit = format!("{} MiB (ulimit -v)", soft >> 20);
    if soft < config.memory_bytes as u64 + BESIDE_LIMIT_BYTES {
        return Some(Finding::fault(
            ABOUT,
            format!("{limit}, and -m is {} MiB", config.memory_bytes >> 20),
            "lift that limit, or lower -m",
        ));
    }
    (soft != u64::MAX).then(|| {
        Finding::hint(
            ABOUT,
            format!("{limit}: partitions cannot share their memory"),
            "lift that limit, and bound the memory by -m or a control group",
        )
    })
}

/// The limit of locked memory, if `-k` asks for it.
fn locked(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "locked memory";
    let (_, hard) = on
        .limits("Max locked memory")
        .filter(|_| config.lock_memory)?;
    Some(if hard == u64::MAX || on.may_raise_limits() {
        Finding::ok(ABOUT, "-k may lock all of it")
    } else {
        Finding::hint(
            ABOUT,
            format!(
                "-k may lock {} MiB only, and then locks nothing",
                hard >> 20
            ),
            "lift that limit (LimitMEMLOCK= of the unit, ulimit -l)",
        )
    })
}

/// The limit of core files, if `-r` asks for them.
fn core_files(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "core files";
    let (_, hard) = on
        .limits("Max core file size")
        .filter(|_| config.core_files)?;
    Some(if hard > 0 || on.may_raise_limits() {
        Finding::ok(ABOUT, "-r may write them")
    } else {
        Finding::fault(
            ABOUT,
            "-r: this user is not allowed to write core files",
            "lift that limit (LimitCORE= of the unit, ulimit -c), or leave -r out",
        )
    })
}

fn user(config: &Config, on: &System) -> Option<Finding> {
    const ABOUT: &str = "user";
    match (on.is_root(), &config.user) {
        (true, None) => Some(Finding::hint(
            ABOUT,
            "the server would run as root",
            "give -u USER, or start it as another user",
        )),
        (true, Some(user)) => Some(match preflight::user(user) {
            Ok(()) => Finding::ok(ABOUT, format!("it becomes {user}")),
            Err(error) => fault(ABOUT, &error),
        }),
        (false, _) => None,
    }
}
