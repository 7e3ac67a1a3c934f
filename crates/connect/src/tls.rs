//! What a client of TLS brings along: whom it trusts, and its own certificate.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use anyhow::{Context, Result, bail, ensure};
use rustls::{
    CertificateError, CipherSuite, ClientConfig, Error, ProtocolVersion, RootCertStore,
    SupportedCipherSuite,
    client::WebPkiServerVerifier,
    crypto::{CryptoProvider, ring},
};

use crate::{
    Files, files,
    trust::{Trusts, Verifier},
};

/// Where systems keep the authorities that they trust: Debian, Red Hat, Alpine and BSD. OpenSSL's
/// variable goes first.
const SYSTEM_VARIABLE: &str = "SSL_CERT_FILE";
const SYSTEM_FILES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// A client of TLS. Clones share sessions, so that later connections resume earlier ones.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    /// What is trusted, for error messages.
    pub(crate) trusted: Arc<str>,
    /// What the first connection agreed on with its server.
    agreed: Arc<OnceLock<Box<str>>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Tls").field(&self.trusted).finish()
    }
}

/// The cryptography, which is the server's.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER
        .get_or_init(|| Arc::new(ring::default_provider()))
        .clone()
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If one is missing or wrong, or if they do not fit together.
    pub fn new(wanted: &Files) -> Result<Tls> {
        Tls::offering(wanted, |_| true)
    }

    /// The same with one cipher suite, for comparisons: servers that may choose choose differently.
    ///
    /// # Errors
    ///
    /// As there, or if the suite is unknown.
    pub fn with_suite(wanted: &Files, suite: CipherSuite) -> Result<Tls> {
        Tls::offering(wanted, |offered| offered == suite)
    }

    fn offering(wanted: &Files, is_offered: impl Fn(CipherSuite) -> bool) -> Result<Tls> {
        let mut offered = CryptoProvider::clone(&provider());
        offered
            .cipher_suites
            .retain(|suite| is_offered(suite.suite()));
        let versions = ClientConfig::builder_with_provider(offered.into())
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?;
        let (trusts, trusted) = if wanted.insecure {
            (Trusts::Anyone, "everyone".to_owned())
        } else {
            let (named, trusted) = match &wanted.authorities {
                Some(path) => {
                    let named = files::certificates("--tls-ca", path)?;
                    (named, path.display().to_string())
                }
                None => {
                    let path = system_file()?;
                    let named = files::certificates("the system's authorities", &path)?;
                    (named, String::new())
                }
            };
            let mut roots = RootCertStore::empty();
            // A system's file may contain some that nobody can read any longer.
            let (added, _) = roots.add_parsable_certificates(named.iter().cloned());
            ensure!(
                added > 0,
                "--tls-ca {trusted}: no certificate that can be used"
            );
            let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider());
            let authorities = verifier.build().context("--tls-ca")?;
            (Trusts::Named { authorities, named }, trusted)
        };
        let verifier = Arc::new(Verifier {
            trusts,
            provider: provider(),
        });
        let builder = versions.dangerous();
        let builder = builder.with_custom_certificate_verifier(verifier);
        let config = match (&wanted.certificate, &wanted.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = files::certificates("--tls-cert", certificate)?;
                let private = files::key("--tls-key", key)?;
                let config = builder.with_client_auth_cert(chain, private);
                config.map_err(|error| anyhow::anyhow!(unusable(&error, certificate, key)))?
            }
            _ => bail!("--tls-cert and --tls-key belong together: give both"),
        };
        Ok(Tls {
            config: Arc::new(config),
            trusted: trusted.into(),
            agreed: Arc::default(),
        })
    }

    /// What the first connection agreed on with its server, such as `TLS 1.3,
    /// TLS_AES_256_GCM_SHA384`. `None` before that.
    pub fn agreed(&self) -> Option<&str> {
        self.agreed.get().map(|agreed| &**agreed)
    }

    pub(crate) fn note(&self, version: ProtocolVersion, suite: SupportedCipherSuite) {
        self.agreed.get_or_init(|| {
            let version = match version {
                ProtocolVersion::TLSv1_2 => "TLS 1.2",
                _ => "TLS 1.3",
            };
            let suite = suite.suite();
            let name = suite.as_str().unwrap_or("a suite without a name");
            // rustls names those of 1.3 differently from everyone else.
            format!("{version}, {}", name.replace("TLS13_", "TLS_")).into()
        });
    }
}

/// Why a certificate and a key cannot be used.
fn unusable(error: &Error, certificate: &Path, key: &Path) -> String {
    let (certificate, key) = (certificate.display(), key.display());
    match error {
        Error::InconsistentKeys(_) => format!(
            "--tls-key {key} does not belong to --tls-cert {certificate}: give the key that the \
             certificate was made with"
        ),
        Error::InvalidCertificate(CertificateError::Other(other)) => format!(
            "--tls-cert {certificate} cannot be used ({other}): make one of X.509 version 3, for \
             example with openssl x509 -req -extfile"
        ),
        error => format!("--tls-cert {certificate} with --tls-key {key}: {error}"),
    }
}

/// The file with the authorities that the system trusts.
fn system_file() -> Result<PathBuf> {
    let named = env::var_os(SYSTEM_VARIABLE).map(PathBuf::from);
    let known = SYSTEM_FILES.iter().map(PathBuf::from);
    let mut files = named.into_iter().chain(known);
    files.find(|file| file.is_file()).context(
        "this system has no list of authorities that it trusts: name the one that signed the \
         server's certificate with --tls-ca FILE",
    )
}
