//! For how long the scheduler lets a thread run, and before which others.
#![allow(unsafe_code, reason = "the kernel is given pointers")]

/// The shortest slice that Linux gives, in nanoseconds.
const SLICE_NS_MIN: u64 = 100_000;
/// The longest one.
const SLICE_NS_MAX: u64 = 100_000_000;

/// Asks the scheduler for the shortest slices for the calling thread, which others wait for. Says
/// whether it has agreed.
///
/// Where threads want the same core, each runs for a slice and then lets the others run. A thread
/// that wakes waits until the slice of the one that runs has ended, which can take 4 ms. Linux 6.12
/// and newer let it run before that if its own slices are shorter. Its part of the core's time
/// stays the same. Older kernels agree and change nothing.
///
/// A thread of another scheduling policy, such as a real-time one, is left as it is.
pub fn ask_for_short_slices() -> bool {
    ask(SLICE_NS_MIN, i32::MIN)
}

/// Asks the scheduler for the longest slices for the calling thread, which has long work, and for a
/// priority of at most this nice value: every thread that wakes runs before it, and others that
/// want its core get the most of it. Otherwise as [`ask_for_short_slices`].
pub fn run_behind_others(nice: i32) -> bool {
    ask(SLICE_NS_MAX, nice)
}

fn ask(slice_ns: u64, nice: i32) -> bool {
    let Some(mut attributes) = attributes() else {
        return false;
    };
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return false;
    }
    attributes.sched_runtime = slice_ns;
    // A thread may not give itself a higher priority.
    attributes.sched_nice = attributes.sched_nice.max(nice);
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

/// What the scheduler knows of the calling thread.
fn attributes() -> Option<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    let mut attributes = libc::sched_attr {
        size: size as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes to where the pointer leads, which are ours.
    let known = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    (known == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn slices_are_as_asked_for_where_the_kernel_has_them() {
        let asked = |ask: fn() -> bool| {
            let asked = thread::spawn(move || ask().then(attributes).flatten());
            asked.join().unwrap().unwrap()
        };
        let before = attributes().unwrap();
        let short = asked(ask_for_short_slices);
        let long = asked(|| run_behind_others(19) && run_behind_others(5));
        assert_eq!(short.sched_nice, before.sched_nice);
        assert_eq!(long.sched_nice, 19);
        // Linux before 6.12 tells of no slices.
        let told = match before.sched_runtime {
            0 => [0; 2],
            _ => [SLICE_NS_MIN, SLICE_NS_MAX],
        };
        assert_eq!([short.sched_runtime, long.sched_runtime], told);
    }

    #[test]
    fn a_thread_of_another_policy_keeps_it() {
        let policy = thread::spawn(|| {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: the kernel reads one value.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
            assert_eq!(set, 0);
            assert!(!ask_for_short_slices());
            attributes().unwrap().sched_policy
        });
        assert_eq!(policy.join().unwrap(), libc::SCHED_BATCH as u32);
    }
}
