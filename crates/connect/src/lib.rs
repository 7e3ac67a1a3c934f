//! Floor 1: how the tools connect to a server.
//!
//! A [`Link`] is a connection with one request at a time, for tools that ask and read lines. The
//! load generator has connections of its own, and takes the parts: [`Tls`], which reads the
//! certificates once, [`Session`], which encrypts and decrypts in the caller's buffers, and
//! [`Login`].

mod explain;
mod files;
mod link;
mod login;
mod sealed;
mod session;
mod tls;
mod trust;

pub use link::Link;
pub use login::{Login, Speech};
pub use sealed::Sealed;
pub use session::Session;
pub use tls::{Files, Tls};

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

/// What is said of a connection that broke before its first reply was complete, if that may be for
/// want of TLS or of a certificate. `reply` is what has arrived.
pub fn hint(reply: &[u8], is_encrypted: bool) -> Option<&'static str> {
    match (reply, is_encrypted) {
        ([], true) => Some(explain::CLOSED_ENCRYPTED),
        ([], false) => Some(explain::CLOSED_PLAIN),
        (reply, false) if explain::is_tls(reply) => Some(explain::TLS_SPOKEN),
        _ => None,
    }
}
