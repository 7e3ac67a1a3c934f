//! Continues in the background (`-d`). The original process waits until the background process
//! serves clients, so that a failure to start is visible in its message and exit code. memcached
//! exits at once and reports neither.

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{
    ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, pipe, setsid,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// The background process's connection to the waiting one.
#[must_use = "the process that was started waits for it"]
pub struct Birth(File);

/// Continues as another process in a new session. The process must not have other threads yet.
pub fn to_background() -> io::Result<Birth> {
    let (reader, writer) = pipe()?;
    // SAFETY: the process has one thread, so the child has a consistent copy of everything,
    // including locks.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            drop(writer);
            std::process::exit(exit_code_of(child, reader))
        }
        ForkResult::Child => {
            setsid()?;
            Ok(Birth(writer.into()))
        }
    }
}

/// Waits until the child serves clients or has ended. Returns the exit code for either case.
fn exit_code_of(child: Pid, reader: OwnedFd) -> i32 {
    match File::from(reader).read_exact(&mut [0]) {
        Ok(()) => 0,
        Err(_) => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => code,
            _ => 1,
        },
    }
}

impl Birth {
    /// Releases the waiting process, and leaves its terminal and folder. `talkative` keeps the
    /// terminal.
    pub fn announce(mut self, talkative: bool) -> io::Result<()> {
        if !talkative {
            let null = File::options().read(true).write(true).open("/dev/null")?;
            dup2_stdin(&null)?;
            dup2_stdout(&null)?;
            dup2_stderr(&null)?;
        }
        chdir("/")?;
        self.0.write_all(&[1])
    }
}
