//! CPU time of threads.
#![allow(unsafe_code, reason = "the kernel is given a pointer")]

/// The kernel's number of the calling thread.
pub fn thread_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// CPU time that a thread of this process has used so far, in nanoseconds; `None` if there is no
/// such thread.
pub fn thread_cpu_ns(thread: u32) -> Option<u64> {
    // How the kernel numbers the clock of a thread's time on the CPU: CPUCLOCK_PERTHREAD_MASK and
    // CPUCLOCK_SCHED.
    const OF_THREAD: libc::clockid_t = 4 | 2;
    let clock = (!(thread as libc::clockid_t) << 3) | OF_THREAD;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec that outlives the call.
    let told = unsafe { libc::clock_gettime(clock, &mut time) };
    (told == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn the_time_of_a_thread_is_told_to_others_while_it_lives() {
        let (report, reported) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let worker = thread::spawn(move || {
            let (number, began_ns) = (thread_number(), thread_cpu_ns(thread_number()).unwrap());
            while thread_cpu_ns(number).unwrap() < began_ns + 1_000_000 {}
            report.send((number, began_ns)).unwrap();
            let _ = ended.recv();
        });
        let (number, began_ns) = reported.recv().unwrap();
        assert!(number != thread_number());
        assert!(thread_cpu_ns(number).unwrap() >= began_ns + 1_000_000);
        drop(end);
        worker.join().unwrap();
        assert_eq!(thread_cpu_ns(u32::MAX >> 4), None);
    }
}
