//! TLS in a build that has it.

use super::{KeyFormat, ListenerTls, MinVersion, TlsConfig, TlsFigures, VerifyMode};
use glimmer_node::Encryption;
use glimmer_tls as tls;
pub use glimmer_tls::LoadError as TlsError;
use glimmer_transport::stream::StreamListener;
use std::sync::Arc;

/// TLS of a server.
#[derive(Debug)]
pub struct Tls(Arc<tls::Tls>);

/// TLS of its listeners.
#[derive(Debug)]
struct OfListeners {
    tls: Arc<tls::Tls>,
    /// How the connections of each address are encrypted.
    listeners: Vec<ListenerTls>,
}

impl Tls {
    pub(super) fn load(config: &TlsConfig, bytes_max: usize) -> Result<Tls, TlsError> {
        let settings = settings(config);
        Ok(Tls(Arc::new(tls::Tls::load(settings, bytes_max)?)))
    }

    /// Reads the files again.
    pub(crate) fn renew(&self) -> Result<(), TlsError> {
        self.0.renew()
    }

    /// What encrypts the connections at TCP addresses, as it says for each.
    pub(crate) fn of_listeners(&self, listeners: &[ListenerTls]) -> Arc<dyn Encryption> {
        Arc::new(OfListeners {
            tls: self.0.clone(),
            listeners: listeners.to_vec(),
        })
    }

    pub(crate) fn figures(&self) -> TlsFigures {
        let of = self.0.counters();
        TlsFigures {
            new_sessions: of.new_sessions(),
            resumed: of.resumed(),
            handshake_errors: of.handshake_errors(),
            protocol_errors: of.protocol_errors(),
            renewals: of.renewals(),
            renewal_errors: of.renewal_errors(),
            refusals: of.refusals(),
            bytes: of.bytes(),
            bytes_max: of.bytes_max(),
            not_after_unix_s: self.0.not_after_unix_s(),
            since_renewal_s: self.0.since_renewal().as_secs(),
        }
    }
}

impl Encryption for OfListeners {
    fn over(&self, listener: Box<dyn StreamListener>, index: usize) -> Box<dyn StreamListener> {
        let clients = match self.listeners.get(index).copied().unwrap_or_default() {
            ListenerTls::Plain => return listener,
            ListenerTls::AsSet => tls::ClientCertificates::AsSet,
            ListenerTls::NoClientCertificates => tls::ClientCertificates::Never,
            ListenerTls::ClientCertificates => tls::ClientCertificates::Always,
        };
        self.tls.over(listener, clients)
    }

    fn bytes(&self) -> usize {
        self.tls.counters().bytes()
    }

    fn bytes_max(&self) -> usize {
        self.tls.counters().bytes_max()
    }

    fn note_closed(&self) {
        self.tls.counters().note_closed();
    }
}

fn settings(config: &TlsConfig) -> tls::Settings {
    tls::Settings {
        chain: config.chain.clone().unwrap_or_default(),
        key: config.key.clone(),
        key_format: match config.key_format {
            KeyFormat::Pem => tls::KeyFormat::Pem,
            KeyFormat::Der => tls::KeyFormat::Der,
        },
        verify: match config.verify {
            VerifyMode::None => tls::Verify::None,
            VerifyMode::Request => tls::Verify::Request,
            VerifyMode::Require | VerifyMode::Once => tls::Verify::Require,
        },
        roots: config.roots.clone(),
        ciphers: config.ciphers.clone(),
        min_version: match config.min_version {
            MinVersion::Tls12 => tls::MinVersion::Tls12,
            MinVersion::Tls13 => tls::MinVersion::Tls13,
        },
    }
}
