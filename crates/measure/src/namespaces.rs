//! Network namespaces without names. They go when nothing is in them any more, so that nothing is
//! left behind, however this process ends.

use std::{
    fs::File,
    io,
    marker::PhantomData,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// How long a busy machine may take until an interface carries packets.
const CARRIER_PATIENCE: Duration = Duration::from_secs(20);

/// The network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] without CAP_SYS_ADMIN; if the kernel has none,
    /// [`io::ErrorKind::InvalidInput`] or [`io::ErrorKind::Unsupported`].
    pub fn new() -> io::Result<Namespace> {
        on_a_thread(|| {
            // SAFETY: a new network namespace changes no descriptor and no memory of this thread,
            // which ends here. Sockets stay in the namespace in which they were made.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            Ok(Namespace(File::open(OWN)?.into()))
        })
    }

    /// Does something within it, on another thread. Sockets and devices stay where they were made.
    ///
    /// # Errors
    ///
    /// Those of `work`, and of the kernel.
    pub fn inside<T: Send, E: From<io::Error> + Send>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        on_a_thread(|| {
            enter(self.as_fd())?;
            work()
        })
    }

    /// Moves the calling thread there, until the result is dropped. Threads and processes that it
    /// starts meanwhile are there as well.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn visit(&self) -> io::Result<Visit> {
        let former = File::open(OWN)?.into();
        enter(self.as_fd())?;
        Ok(Visit {
            former,
            of_one_thread: PhantomData,
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A thread's stay in another namespace.
#[derive(Debug)]
pub struct Visit {
    /// Where the thread was before.
    former: OwnedFd,
    /// Only the thread that came can go back.
    of_one_thread: PhantomData<*const ()>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // It was possible to come, so it is possible to go back.
        if let Err(error) = enter(self.former.as_fd()) {
            eprintln!("cannot leave a network namespace: {error}");
        }
    }
}

/// Moves the calling thread.
fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let moved = move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network));
    moved.map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(
            error.kind(),
            format!("entering a network namespace: {error}"),
        )
    })
}

fn on_a_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let done = scope.spawn(work).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` with these arguments in the namespace of the calling thread.
///
/// # Errors
///
/// If there is no such program, and what it says if it fails.
pub fn ip(arguments: &str) -> io::Result<()> {
    shown_by("ip", arguments).map(drop)
}

/// Runs `tc` with these arguments in the namespace of the calling thread.
///
/// # Errors
///
/// If there is no such program, and what it says if it fails.
pub fn tc(arguments: &str) -> io::Result<()> {
    shown_by("tc", arguments).map(drop)
}

/// Waits until an interface in the namespace of the calling thread carries packets. The kernel
/// notices some time after both ends of a pair are up, and drops what is sent before.
///
/// # Errors
///
/// Those of [`ip`], and [`io::ErrorKind::TimedOut`] after 20 seconds.
pub fn wait_for_carrier(interface: &str) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        let shown = shown_by("ip", &format!("link show dev {interface}"))?;
        if shown.contains(" state UP ") {
            return Ok(());
        }
        if begin.elapsed() > CARRIER_PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, shown));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn shown_by(program: &str, arguments: &str) -> io::Result<String> {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.map_err(|error| {
        let missing = format!("cannot run {program}: {error}: apt-get install iproute2");
        io::Error::new(error.kind(), missing)
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = format!("{program} {arguments}: {}", said.trim());
            Err(io::Error::other(said))
        }
    }
}
