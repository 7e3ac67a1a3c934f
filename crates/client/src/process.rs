//! What belongs to one process alone. A fork makes two of it, and neither knows of the other: a client's socket, the number that the server tells
//! it by, and the numbers of its mutations. Were they used by both, the server would take what one changes for what the other has changed before.

use rand::TryRngCore;
use rand::rngs::OsRng;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Forks between the process in which this was zero and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A process, as long as it is remembered in it.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    forks: u64,
}

impl Process {
    /// The one that this is.
    ///
    /// # Errors
    ///
    /// If there is no memory for being told of forks.
    pub fn this() -> io::Result<Process> {
        static TOLD: OnceLock<i32> = OnceLock::new();
        // SAFETY: the handler is a function of this library, and does what one may do between a fork and whatever comes then: it changes an atomic.
        let told = TOLD.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(count)) });
        match told {
            0 => Ok(Process {
                forks: FORKS.load(Ordering::Relaxed),
            }),
            &error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Whether this is still the same, and not a child of it. Costs no system call.
    #[inline]
    pub fn is_this(self) -> bool {
        self.forks == FORKS.load(Ordering::Relaxed)
    }
}

extern "C" fn count() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A number for a client. It is the system's: generators in this process would go on in parent and child with the same numbers.
///
/// # Errors
///
/// If the system has none.
pub fn client_number() -> io::Result<u64> {
    OsRng.try_next_u64().map_err(io::Error::other)
}
