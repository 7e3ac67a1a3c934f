//! Cores, priority and CPU time of measuring processes.

use std::{
    fs::{self, File},
    io::{self, Write},
    panic,
    sync::OnceLock,
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, clock_gettime},
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    low_level::{emulate_default_handler, register},
};

/// The core of the measured server.
pub const SERVER_CORE: usize = 0;
/// The core of the client.
pub const CLIENT_CORE: usize = 1;

/// The number of cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// The cores for this many client threads beside a server with one thread: the client's core, and
/// those after it as far as there are any.
pub fn client_cores(threads: usize) -> Vec<usize> {
    (CLIENT_CORE..cores()).take(threads).collect()
}

/// Pins the calling thread, and threads and processes that it starts, to these cores. Fails if the
/// machine has none of these cores, or if the process may use none.
pub fn pin(to: impl IntoIterator<Item = usize>) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in to {
        if core >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL.into());
        }
        set.set(core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Runs `work` on a new thread, pinned to `core` if one is given.
pub fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Some(core) = core {
                pin([core])?;
            }
            Ok(work())
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The priority that this session of processes had, and the kernel's file with it.
static BEFORE: OnceLock<(File, Vec<u8>)> = OnceLock::new();

/// Asks the scheduler to prefer this session over others until the process ends, if permitted. With
/// automatic process groups, `nice` has no effect between terminals, and a build in another
/// terminal can triple a measured time. Without privileges, measurements are noisier.
pub fn raise_priority() {
    if BEFORE.get().is_some() {
        return;
    }
    let Some((file, nice)) = session() else {
        return;
    };
    let (file, _) = BEFORE.get_or_init(|| (file, nice));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        if is_ignored(signal) {
            continue;
        }
        let end = move || {
            give_back();
            let _ = emulate_default_handler(signal);
        };
        // SAFETY: the action writes to a file and ends the process, which signal handlers may do.
        // If it is not registered, such a signal leaves the priority as it is then.
        let _ = unsafe { register(signal, end) };
    }
    // SAFETY: the function may be called when the process ends.
    unsafe { libc::atexit(give_back) };
    // A panic may abort the process.
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        give_back();
        usual(panicked);
    }));
    let _ = (&*file).write_all(b"-20");
}

/// Whether a signal has no effect, as SIGINT in the background of a script.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: zeros are a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action, the call only writes the present one.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// This session's nice value, as the kernel prints and takes it.
fn session() -> Option<(File, Vec<u8>)> {
    const SESSION: &str = "/proc/self/autogroup";
    let text = fs::read_to_string(SESSION).ok()?;
    let (_, nice) = text.trim_end().rsplit_once(' ')?;
    let file = File::options().write(true).open(SESSION).ok()?;
    Some((file, nice.as_bytes().to_vec()))
}

/// What the user runs next in this terminal is as important as before.
extern "C" fn give_back() {
    if let Some((file, nice)) = BEFORE.get() {
        let _ = (&*file).write_all(nice);
    }
}

/// Gives the calling thread real-time priority, if permitted: it then runs as soon as it wakes up,
/// also where others are busy on its core. For a thread that sends what is due and sleeps again;
/// one that does not sleep would keep the others from running. Threads and processes that it starts
/// do not inherit the priority.
///
/// # Errors
///
/// Without `CAP_SYS_NICE`, or a limit of at least 1 for real-time priorities (`ulimit -r`).
pub fn run_in_real_time() -> io::Result<()> {
    let least = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads the parameters through the reference.
    match unsafe { libc::sched_setscheduler(0, policy, &least) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process may [run in real time](run_in_real_time).
pub fn may_run_in_real_time() -> bool {
    std::thread::spawn(run_in_real_time)
        .join()
        .is_ok_and(|result| result.is_ok())
}

/// Lets this process, and those that it starts, have this many descriptors, and up to `spare` more
/// if the system allows that.
///
/// # Errors
///
/// If it does not allow those that are needed.
pub fn allow_descriptors(needed: usize, spare: usize) -> io::Result<()> {
    let (needed, wanted) = (needed as u64, (needed + spare) as u64);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let allow = |current, maximum| {
        let current = Some(current);
        setrlimit(Resource::Nofile, Rlimit { current, maximum })
    };
    let raised = limit.maximum.map(|maximum| maximum.max(wanted));
    allow(wanted, raised)
        .or_else(|refused| match limit.maximum {
            Some(maximum) if maximum >= needed => allow(maximum.min(wanted), limit.maximum),
            _ => Err(refused),
        })
        .map_err(|refused| {
            let maximum = limit.maximum.unwrap_or(u64::MAX);
            let why = format!("{needed} descriptors: {refused} (`ulimit -Hn` is {maximum})");
            io::Error::new(io::Error::from(refused).kind(), why)
        })
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of a process, including threads that have ended.
pub fn process_cpu(pid: u32) -> io::Result<Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the call writes a clock's number through the reference.
    let refused = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &mut clock) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes a time through the reference.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Resident memory of a process in bytes, now and at its peak. Includes reserved huge pages, which
/// the kernel counts separately.
pub fn resident_bytes(pid: u32) -> io::Result<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> io::Result<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        Ok(kib.ok_or_else(|| io::Error::other("an odd status"))? * 1024)
    };
    // A kernel without huge pages does not print this field.
    let hugetlb = field("HugetlbPages:").unwrap_or(0);
    Ok((field("VmRSS:")? + hugetlb, field("VmHWM:")? + hugetlb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_and_memory_of_this_process() {
        let before = process_cpu(std::process::id()).unwrap();
        let mut sum = 0u64;
        while thread_cpu() < Duration::from_millis(20) {
            (0..10_000u64).for_each(|i| sum = std::hint::black_box(sum + i));
        }
        assert!(process_cpu(std::process::id()).unwrap() > before);
        let (now, peak) = resident_bytes(std::process::id()).unwrap();
        assert!(now > 0 && peak >= now / 2);
    }

    #[test]
    fn a_pinned_thread_runs_where_it_was_told() {
        let core = on_core(Some(0), rustix::thread::sched_getcpu).unwrap();
        assert_eq!(core, 0);
    }
}
