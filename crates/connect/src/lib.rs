//! Floor 1: how the tools connect to a server.
//!
//! A [`Link`] is a connection with one request at a time, for tools that ask and read lines. The
//! load generator has connections of its own, and takes the parts: [`Tls`], which reads the
//! certificates once, [`Session`], which encrypts and decrypts in the caller's buffers, and
//! [`Login`].

#[cfg(feature = "tls")]
mod explain;
#[cfg(feature = "tls")]
mod files;
mod hint;
mod link;
mod login;
#[cfg(feature = "tls")]
mod sealed;
#[cfg(feature = "tls")]
mod session;
#[cfg_attr(not(feature = "tls"), path = "without_tls.rs")]
mod tls;
#[cfg(feature = "tls")]
mod trust;

use std::path::PathBuf;

pub use hint::hint;
pub use link::{ELSEWHERE, Link, OTHER_NAME};
pub use login::{Login, Speech};
pub use tls::Tls;
#[cfg(feature = "tls")]
pub use {rustls::CipherSuite, sealed::Sealed, session::Session};

/// The files of a client, as flags name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// `--tls-ca`: whom it trusts; `None` for the authorities that the system trusts.
    pub authorities: Option<PathBuf>,
    /// `--tls-cert`: its own certificate, for servers that want one.
    pub certificate: Option<PathBuf>,
    /// `--tls-key`: the key of that certificate.
    pub key: Option<PathBuf>,
    /// `--tls-insecure`: accept any certificate of the server.
    pub insecure: bool,
}

/// What a server wants of a client before it serves it. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// An encrypted connection.
    pub tls: Option<Tls>,
    /// A user and a password.
    pub login: Option<Login>,
    /// The name that the server's certificate has to bear, if it is not the one by which the client
    /// connects.
    pub host: Option<String>,
}
