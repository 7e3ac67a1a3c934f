//! TLS in a build that lacks it: it is refused.

use super::{ListenerTls, TlsConfig, TlsFigures};
use glimmer_node::Encryption;
use std::sync::Arc;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[error(
    "-Z: This server is not built with TLS support. Build it with the default features, or \
     leave -Z out"
)]
pub struct TlsError;

/// There is none.
#[derive(Debug)]
pub enum Tls {}

impl Tls {
    pub(super) fn load(_: &TlsConfig, _: usize) -> Result<Tls, TlsError> {
        Err(TlsError)
    }

    pub(crate) fn renew(&self) -> Result<(), TlsError> {
        match *self {}
    }

    pub(crate) fn of_listeners(&self, _: &[ListenerTls]) -> Arc<dyn Encryption> {
        match *self {}
    }

    pub(crate) fn figures(&self) -> TlsFigures {
        match *self {}
    }
}
