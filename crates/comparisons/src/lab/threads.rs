//! The kernel's threads that receive for an interface (threaded NAPI).
//!
//! A network card interrupts a core of the server, and a packet program runs there. A virtual cable
//! has no interrupts: the kernel receives, and runs the program, within the sender's
//! system call. With a thread it receives on a core that can be chosen.

use std::fs;

use anyhow::{Context, Result, ensure};
use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
    process::Pid,
    thread::{CpuSet, UnshareFlags, sched_setaffinity, unshare_unsafe},
};

/// Has the kernel receive with threads for an interface in the namespace of the calling thread. It
/// must have a packet program. The calling thread must end after this, since it sees other mounts
/// than its process.
pub fn switch_on(interface: &str) -> Result<()> {
    // Files of an interface are in the `sysfs` of its own namespace. Only this thread sees it.
    // SAFETY: a new mount namespace changes no descriptor and no memory. It also gives the thread a
    // working directory of its own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.context("making a mount namespace")?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).context("keeping mounts to a thread")?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None).context("mounting sysfs")?;
    let file = format!("/sys/class/net/{interface}/threaded");
    fs::write(&file, "1").with_context(|| format!("{file} (Linux 5.12 or later)"))
}

/// Pins the threads of an interface to a core. They are found by the interface's name alone. So the
/// threads of an interface of this name in another namespace are pinned, too.
///
/// # Errors
///
/// If it has none, or none that this process sees.
pub fn pin(interface: &str, core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    let threads = of(interface)?;
    ensure!(
        !threads.is_empty(),
        "{interface} has no thread that receives, or it is hidden from this process"
    );
    for thread in threads {
        match sched_setaffinity(Some(thread), &set) {
            // It was of another namespace, which has vanished meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            refused => refused.with_context(|| format!("pinning a thread of {interface}"))?,
        }
    }
    Ok(())
}

/// The threads of an interface.
pub(super) fn of(interface: &str) -> Result<Vec<Pid>> {
    let name = format!("napi/{interface}-");
    let processes = fs::read_dir("/proc").context("/proc")?.flatten();
    let threads = processes.filter_map(|process| {
        // A process may end meanwhile.
        let is_one = fs::read_to_string(process.path().join("comm"))
            .ok()?
            .starts_with(&name);
        let id = process.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(id).filter(|_| is_one)
    });
    Ok(threads.collect())
}
