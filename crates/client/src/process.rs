//! State that must not be shared across a fork. After a fork, two processes would have the same
//! socket, client number and mutation numbers without knowing of each other. The server would then
//! take a change from one process for a retransmission of a change from the other.

use rand::TryRngCore;
use rand::rngs::OsRng;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Forks since the first process in this line of processes.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Identifies a process.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    forks: u64,
}

impl Process {
    /// The current process.
    ///
    /// # Errors
    ///
    /// If there is no memory to register the fork handler.
    pub fn this() -> io::Result<Process> {
        static TOLD: OnceLock<i32> = OnceLock::new();
        // SAFETY: the handler is a function of this library and is async-signal-safe, as code
        // between `fork` and `exec` must be: it only increments an atomic.
        let told = TOLD.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(count)) });
        match told {
            0 => Ok(Process {
                forks: FORKS.load(Ordering::Relaxed),
            }),
            &error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Whether the current process is still this one and not a forked child. Makes no system call.
    #[inline]
    pub fn is_this(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Draws a client number from the system. A generator in this process would continue with the same
/// numbers in the parent and in the child.
///
/// # Errors
///
/// If the system has no random numbers.
pub fn client_number() -> io::Result<u64> {
    OsRng.try_next_u64().map_err(io::Error::other)
}
