//! What stands for TLS in a build without it.

use anyhow::{Result, bail};

use crate::Files;

/// Stands in for the TLS client, which this build leaves out.
#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn new(_: &Files) -> Result<Tls> {
        bail!(
            "this program was built without TLS: build it with the feature tls, or leave --tls out"
        )
    }

    /// What connections agreed on.
    pub fn agreed(&self) -> Option<&str> {
        match *self {}
    }
}

/// The stream over TLS.
pub fn over<S>(tls: &Tls, _: &str, _: S) -> Result<S> {
    match *tls {}
}
