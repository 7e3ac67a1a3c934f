//! What a server is told about TLS, in memcached's words.

use std::path::PathBuf;

/// What a server is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The file with the server's certificate and those up to its root (`ssl_chain_cert`).
    pub chain: PathBuf,
    /// The file with the private key (`ssl_key`). Without one it is in the chain's file.
    pub key: Option<PathBuf>,
    /// How that file is written (`ssl_keyformat`).
    pub key_format: KeyFormat,
    /// Whether clients show certificates (`ssl_verify_mode`).
    pub verify: Verify,
    /// The file with the roots of clients' certificates (`ssl_ca_cert`).
    pub roots: Option<PathBuf>,
    /// Cipher suites by OpenSSL's names (`ssl_ciphers`).
    pub ciphers: Option<String>,
    /// The oldest version (`ssl_min_version`).
    pub min_version: MinVersion,
}

impl Settings {
    /// The same files for a process that goes to another folder.
    pub(crate) fn with_absolute_paths(mut self) -> Settings {
        let files = [
            Some(&mut self.chain),
            self.key.as_mut(),
            self.roots.as_mut(),
        ];
        for file in files.into_iter().flatten() {
            // This fails only without a path, or without a folder, in which case it stays.
            if let Ok(path) = std::path::absolute(&*file) {
                *file = path;
            }
        }
        self
    }
}

/// How a file of a private key is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    /// As text.
    #[default]
    Pem,
    /// As bytes.
    Der,
}

/// Whether clients show certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// They are not asked for one.
    #[default]
    None,
    /// They are asked; one that is shown has to be good.
    Request,
    /// They have to.
    Require,
}

/// Whether the clients of one address show certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientCertificates {
    /// As the settings say.
    #[default]
    AsSet,
    /// They are not asked for one (`btls`).
    Never,
    /// They have to (`mtls`).
    Always,
}

/// Each of them.
pub(crate) const CLIENT_CERTIFICATES: [ClientCertificates; 3] = [
    ClientCertificates::AsSet,
    ClientCertificates::Never,
    ClientCertificates::Always,
];

/// The oldest version that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}
