//! Going on in the background (`-d`). The process that was started stays until the one that goes on says that it serves, so that whoever
//! started it sees the message and the exit code if it cannot; memcached leaves at once and keeps both to itself.

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{
    ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, pipe, setsid,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

/// What the process in the background owes the one that waits for it.
#[must_use = "the process that was started waits for it"]
pub struct Birth(File);

/// Goes on as another process, in a session of its own. There is no other thread yet.
pub fn to_background() -> io::Result<Birth> {
    let (reader, writer) = pipe()?;
    // SAFETY: the process has one thread, so that the child has all that its parent had, locks included.
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

/// Waits until the child serves, or has ended; returns the exit code that says which.
fn exit_code_of(child: Pid, reader: OwnedFd) -> i32 {
    match File::from(reader).read(&mut [0]) {
        Ok(1..) => 0,
        _ => match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => code,
            _ => 1,
        },
    }
}

impl Birth {
    /// Lets the process that was started go, and leaves its terminal and folder; `talkative` keeps the terminal.
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
