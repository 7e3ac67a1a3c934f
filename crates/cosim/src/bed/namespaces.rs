//! Network namespaces without names. They go when nothing is in them any more, so that nothing is
//! left behind, however this process ends.

use anyhow::{Context, Result, bail, ensure};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::thread;

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
    /// Without CAP_SYS_ADMIN.
    pub fn new() -> Result<Namespace> {
        let make = || {
            // SAFETY: a new network namespace changes no descriptor and no memory of this thread,
            // which ends here.
            match unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
                Ok(()) => Ok(Namespace(File::open(OWN).context(OWN)?.into())),
                Err(Errno::PERM) => bail!("network namespaces need root"),
                Err(error) => Err(error).context("a network namespace"),
            }
        };
        on_a_thread(make)
    }

    /// Does something within it, on another thread. Sockets and devices stay where they were made.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
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
    pub fn visit(&self) -> Result<Visit> {
        let home = File::open(OWN).context(OWN)?.into();
        enter(self.as_fd())?;
        Ok(Visit {
            home,
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
    home: OwnedFd,
    /// Only the thread that came can go back.
    of_one_thread: PhantomData<*const ()>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        // It was possible to come, so it is possible to go back.
        if let Err(error) = enter(self.home.as_fd()) {
            eprintln!("cosim: {error:#}");
        }
    }
}

/// Moves the calling thread.
fn enter(namespace: BorrowedFd<'_>) -> Result<()> {
    move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
        .context("entering a network namespace")
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let done = scope.spawn(work).join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `ip` with these arguments in the namespace of the calling thread.
///
/// # Errors
///
/// What `ip` says.
pub fn ip(arguments: &str) -> Result<()> {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .context("ip is missing: apt-get install iproute2")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {arguments}: {}", said.trim());
    Ok(())
}
