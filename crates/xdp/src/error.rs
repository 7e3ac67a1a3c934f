//! Why the packet program cannot be attached.

use std::io;

/// Why the packet program cannot be loaded or attached.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not load programs, or may not attach them.
    #[error(
        "loading a packet program needs the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NoRights,
    /// The kernel lacks something that the program needs.
    #[error("the kernel is too old: {0}")]
    KernelTooOld(&'static str),
    /// The program is proven for another architecture only.
    #[error("the packet program runs on x86-64 only")]
    Architecture,
    /// The interface has another XDP program.
    #[error("the interface has another XDP program")]
    OtherProgram,
    /// The interface's driver has no XDP.
    #[error("the interface's driver does not support XDP")]
    NoDriverSupport,
    /// There is no interface with this index.
    #[error("there is no such interface")]
    NoInterface,
    /// The settings exceed a limit, which this names.
    #[error("{0}")]
    Settings(&'static str),
    /// The kernel's verifier refuses the program. This is its log.
    #[error("the kernel refuses the packet program: {0}")]
    Verifier(String),
    /// A system call failed, and what it was for.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
    /// The object file is damaged.
    #[error("the packet program's object: {0}")]
    Object(String),
}

impl Error {
    /// The error of a system call that was for this.
    pub(crate) fn from_call(purpose: &'static str, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Error::NoRights,
            _ => Error::Io(purpose, error),
        }
    }
}
