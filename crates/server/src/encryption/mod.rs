//! TLS: what a server is told about it, and what it has of it. A build without the feature `tls`
//! has the settings too, and refuses to use them.

#[cfg(feature = "tls")]
mod built;
#[cfg(not(feature = "tls"))]
mod unbuilt;

#[cfg(feature = "tls")]
pub use built::{Tls, TlsError};
#[cfg(not(feature = "tls"))]
pub use unbuilt::{Tls, TlsError};

use std::path::PathBuf;
use std::sync::Arc;

/// Bytes that an idle connection takes for TLS, at most.
const IDLE_BYTES: usize = 2_304;

/// Bytes for parts of records and for handshakes, of all connections together.
const BUFFER_BYTES: usize = 4 << 20;

/// TLS has at most this fraction (1 / n) of `-m`.
const SHARE: usize = 8;

/// What a server is told about TLS, in memcached's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// Whether connections are encrypted (`-Z`).
    pub is_enabled: bool,
    /// `ssl_chain_cert`.
    pub chain: Option<PathBuf>,
    /// `ssl_key`.
    pub key: Option<PathBuf>,
    /// `ssl_keyformat`.
    pub key_format: KeyFormat,
    /// `ssl_verify_mode`.
    pub verify: VerifyMode,
    /// `ssl_ca_cert`.
    pub roots: Option<PathBuf>,
    /// `ssl_ciphers`.
    pub ciphers: Option<String>,
    /// `ssl_min_version`.
    pub min_version: MinVersion,
    /// `ssl_wbuf_size`, which has no effect.
    pub write_buffer_kib: usize,
    /// `ssl_session_cache`: whether new sessions are shown. They can be resumed in any case.
    pub counts_sessions: bool,
}

impl TlsConfig {
    /// Whether clients are asked for certificates, at an address that is encrypted like this, and
    /// there are no roots to verify them by.
    pub fn has_no_roots(&self, listeners: &[ListenerTls]) -> bool {
        let asks = |listener: &ListenerTls| match listener {
            ListenerTls::AsSet => self.verify != VerifyMode::None,
            ListenerTls::ClientCertificates => true,
            ListenerTls::Plain | ListenerTls::NoClientCertificates => false,
        };
        self.is_enabled && self.roots.is_none() && listeners.iter().any(asks)
    }
}

impl Default for TlsConfig {
    fn default() -> TlsConfig {
        TlsConfig {
            is_enabled: false,
            chain: None,
            key: None,
            key_format: KeyFormat::Pem,
            verify: VerifyMode::None,
            roots: None,
            ciphers: None,
            min_version: MinVersion::Tls12,
            write_buffer_kib: 16,
            counts_sessions: false,
        }
    }
}

/// How the file of a private key is written, by OpenSSL's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFormat {
    /// As text.
    Pem = 1,
    /// As bytes.
    Der = 2,
}

/// Whether clients show certificates, by memcached's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMode {
    /// They are not asked for one.
    None,
    /// They are asked; one that is shown has to be good.
    Request,
    /// They have to.
    Require,
    /// The same: a connection is never asked twice.
    Once,
}

impl VerifyMode {
    /// OpenSSL's flags for it, which `stats settings` shows.
    pub(crate) fn openssl_flags(self) -> u8 {
        match self {
            VerifyMode::None => 0,
            VerifyMode::Request => 1,
            VerifyMode::Require => 3,
            VerifyMode::Once => 7,
        }
    }
}

/// The oldest version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl MinVersion {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MinVersion::Tls12 => "tlsv1.2",
            MinVersion::Tls13 => "tlsv1.3",
        }
    }
}

/// How the connections of one address are encrypted, when there is TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenerTls {
    /// As the settings say.
    #[default]
    AsSet,
    /// Not at all (`notls:`).
    Plain,
    /// Without certificates of clients (`btls:`).
    NoClientCertificates,
    /// With them (`mtls:`).
    ClientCertificates,
}

impl ListenerTls {
    /// The names of those that an address may ask for.
    pub const NAMES: [(&str, ListenerTls); 3] = [
        ("notls", ListenerTls::Plain),
        ("btls", ListenerTls::NoClientCertificates),
        ("mtls", ListenerTls::ClientCertificates),
    ];
}

/// What TLS has done so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsFigures {
    pub new_sessions: u64,
    pub resumed: u64,
    pub handshake_errors: u64,
    pub protocol_errors: u64,
    pub renewals: u64,
    pub renewal_errors: u64,
    pub refusals: u64,
    pub bytes: usize,
    pub bytes_max: usize,
    pub not_after_unix_s: i64,
    pub since_renewal_s: u64,
}

/// Bytes that connections may take for TLS.
pub(crate) fn bytes(config: &TlsConfig, connections_max: usize, memory_bytes: usize) -> usize {
    match config.is_enabled {
        true => {
            let wanted = connections_max.saturating_mul(IDLE_BYTES);
            (wanted.saturating_add(BUFFER_BYTES)).min(memory_bytes / SHARE)
        }
        false => 0,
    }
}

/// Reads the files, if there is TLS.
pub(crate) fn load(config: &TlsConfig, bytes_max: usize) -> Result<Option<Arc<Tls>>, TlsError> {
    let tls = config.is_enabled.then(|| Tls::load(config, bytes_max));
    tls.transpose().map(|tls| tls.map(Arc::new))
}
