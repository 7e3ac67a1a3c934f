//! Why a server does not start, and the exit code for it.

use crate::accelerate::AccelerateError;
use crate::auth::AuthError;
use crate::config::ConfigError;
use crate::encryption::TlsError;
use crate::memory_file::MemoryFileError;
use crate::memory_plan::PlanError;
use crate::process::ProcessError;
use crate::process::inherited::InheritedError;
use crate::snapshot::SnapshotError;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Why a server did not start. Each message is one line and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `-m` is too small or too large.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The tables cannot be built.
    #[error(transparent)]
    Store(#[from] glimmer_store::table::ConfigError),
    /// The memory cannot be had.
    #[error(
        "-m {mib}: {reason}; addresses for all of it are reserved at start, so lower -m or raise \
         their limit (ulimit -v, vm.overcommit_memory)"
    )]
    Memory {
        /// `-m` in MiB.
        mib: usize,
        /// What the kernel refused.
        reason: glimmer_store::table::ConfigError,
    },
    /// Reserved huge pages were required but cannot be allocated.
    #[error(
        "--hugepages hugetlb: {0}; reserve more of them (/proc/sys/vm/nr_hugepages), raise the \
         cgroup's limit (hugetlb.2MB.max), or use --hugepages auto"
    )]
    Hugetlb(glimmer_store::table::ConfigError),
    /// Another process has an address.
    #[error(
        "{0}: another process has it; end that one, or choose another port or address (-p, -U, \
         --native-port, -l)"
    )]
    InUse(glimmer_node::Error),
    /// An address cannot be bound, or a worker cannot be started.
    #[error(transparent)]
    Node(glimmer_node::Error),
    /// The address of `--http` cannot be bound.
    #[error(
        "--http {at}: {reason}; choose another address or port, or end the process that has it"
    )]
    Http {
        /// The address.
        at: SocketAddr,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A socket of the service manager cannot be served.
    #[error(transparent)]
    Inherited(#[from] InheritedError),
    /// The accelerator cannot be attached to its interface.
    #[error(transparent)]
    Accelerate(#[from] AccelerateError),
    /// The files of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file of the store cannot be used.
    #[error(transparent)]
    MemoryFile(#[from] MemoryFileError),
    /// The user file cannot be used.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The control group of the process would end it before `-m` is reached.
    #[error(
        "-m {wanted_mib}: the control group of this process may take {allowed_mib} MiB ({file}): \
         choose less, such as -m 75%, or raise that limit"
    )]
    Group {
        /// `-m` in MiB.
        wanted_mib: u64,
        /// What the group may take, in MiB.
        allowed_mib: u64,
        /// The file that says so.
        file: String,
    },
    /// The file of `--snapshot` cannot be used.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The system refused a request of the process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Signal handlers cannot be installed, or the list of cores cannot be read.
    #[error("cannot set up the process: {0}")]
    Setup(#[from] io::Error),
}

impl ServeError {
    /// The exit code that memcached uses for the same reason (`sysexits.h`).
    pub fn exit_code(&self) -> u8 {
        const USAGE: u8 = 64;
        const NO_USER: u8 = 67;
        const OS: u8 = 71;
        match self {
            ServeError::Config(
                ConfigError::ItemBytes(_)
                | ConfigError::Together(_)
                | ConfigError::SamePort { .. }
                | ConfigError::Dispatch { .. },
            )
            | ServeError::Tls(_) => USAGE,
            ServeError::Node(
                glimmer_node::Error::Listen { .. } | glimmer_node::Error::Udp { .. },
            ) => OS,
            ServeError::InUse(_) | ServeError::Http { .. } | ServeError::Inherited(_) => OS,
            ServeError::Process(ProcessError::NoSuchUser(_)) => NO_USER,
            ServeError::Process(_) => OS,
            _ => 1,
        }
    }
}

impl From<glimmer_node::Error> for ServeError {
    fn from(error: glimmer_node::Error) -> ServeError {
        use glimmer_node::Error::{Listen, Udp};
        match &error {
            Listen { source, .. } | Udp { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                ServeError::InUse(error)
            }
            _ => ServeError::Node(error),
        }
    }
}
