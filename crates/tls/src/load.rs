//! From files to a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{
    fs,
    io::{self, Read},
};

use glimmer_base::limits::{TLS_FILE_BYTES_MAX, TLS_TICKETS};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, CipherSuite, DigitallySignedStruct, DistinguishedName, RootCertStore,
    ServerConfig, SignatureScheme, version,
};

use crate::settings::{CLIENT_CERTIFICATES, KeyFormat, MinVersion, Settings, Verify};
use crate::x509::{Certificate, Time};

/// Why there is no configuration. Each is one line, which names the flag and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error(
        "-o {flag}={path}: cannot be read: {source}: name a file that the server's user may read"
    )]
    Unreadable {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no certificate.
    #[error(
        "-o {flag}={path}: holds no certificate as PEM text (\"-----BEGIN CERTIFICATE-----\"): \
         convert it with openssl x509 -inform der"
    )]
    NoCertificate {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A certificate in a file is none.
    #[error("-o {flag}={path}: holds a certificate that is damaged: {reason}")]
    Damaged {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file holds no private key.
    #[error(
        "-o ssl_key={path}: holds no private key as {format}: openssl pkey converts keys, and \
         removes the password of one that is encrypted"
    )]
    NoKey {
        /// The file.
        path: PathBuf,
        /// How it is to be written.
        format: &'static str,
    },
    /// The key cannot be used.
    #[error(
        "-o ssl_key={path}: the key cannot be used ({reason}): give one for RSA of 2,048 bits or \
         more, for ECDSA over P-256, P-384 or P-521, or for Ed25519"
    )]
    UnusableKey {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key is not the certificate's.
    #[error(
        "-o ssl_key={key}: is not the key of the certificate in ssl_chain_cert={chain}: give the \
         one with which the certificate was requested"
    )]
    OtherKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        chain: PathBuf,
    },
    /// The certificate has ended.
    #[error("-o ssl_chain_cert={path}: the certificate has expired on {on}: renew it")]
    Expired {
        /// The file.
        path: PathBuf,
        /// When.
        on: String,
    },
    /// The certificate has yet to begin.
    #[error(
        "-o ssl_chain_cert={path}: the certificate is not valid before {on}: wait, or look at the \
         clock"
    )]
    NotYet {
        /// The file.
        path: PathBuf,
        /// When it begins.
        on: String,
    },
    /// None of the cipher suites is known.
    #[error(
        "-o ssl_ciphers={given}: names no cipher suite that is supported: give some of {}",
        names().join(":")
    )]
    NoCiphers {
        /// What was given.
        given: String,
    },
    /// Everything is there and the library refuses it.
    #[error("-Z: TLS cannot be set up: {0}")]
    Other(#[from] rustls::Error),
}

/// OpenSSL's names of the cipher suites that are supported, the best first.
const CIPHERS: [(&str, CipherSuite); 9] = [
    (
        "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_128_GCM_SHA256,
    ),
    (
        "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_AES_256_GCM_SHA384,
    ),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// How many of those are of TLS 1.3.
const CIPHERS_OF_13: usize = 3;

fn names() -> Vec<&'static str> {
    CIPHERS.iter().map(|&(name, _)| name).collect()
}

/// What was loaded.
pub(crate) struct Loaded {
    /// For the connections of an address, in the order of [`CLIENT_CERTIFICATES`].
    pub configs: [Arc<ServerConfig>; CLIENT_CERTIFICATES.len()],
    /// Until when the certificate is valid, in seconds since 1970.
    pub not_after_unix_s: i64,
}

/// Reads all files, and makes configurations of them, each with a ticketer of its own.
pub(crate) fn load(
    settings: &Settings,
    ticketers: &[Arc<dyn ProducesTickets>; CLIENT_CERTIFICATES.len()],
) -> Result<Loaded, LoadError> {
    let provider = Arc::new(provider_for(settings)?);
    let (key, not_after) = certified_key(settings, &provider)?;
    let key = Arc::new(SingleCertAndKey::from(key));
    let roots = settings.roots.as_deref().map(roots).transpose()?;
    let config = |verify: Verify,
                  ticketer: &Arc<dyn ProducesTickets>|
     -> Result<Arc<ServerConfig>, LoadError> {
        let versions: &[_] = match settings.min_version {
            MinVersion::Tls12 => &[&version::TLS12, &version::TLS13],
            MinVersion::Tls13 => &[&version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(versions)?;
        let builder = match verify {
            Verify::None => builder.with_no_client_auth(),
            Verify::Request | Verify::Require => {
                let verifier = verifier(roots.as_ref(), verify, &provider);
                builder.with_client_cert_verifier(verifier?)
            }
        };
        let mut config = builder.with_cert_resolver(key.clone());
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = ticketer.clone();
        config.send_tls13_tickets = TLS_TICKETS;
        config.ignore_client_order = true;
        // The keys are used by this crate.
        config.enable_secret_extraction = true;
        Ok(Arc::new(config))
    };
    let [as_set, never, always] = ticketers;
    Ok(Loaded {
        configs: [
            config(settings.verify, as_set)?,
            config(Verify::None, never)?,
            config(Verify::Require, always)?,
        ],
        not_after_unix_s: not_after.unix_s(),
    })
}

/// The cryptography, with the cipher suites that are wanted, the wanted one first.
fn provider_for(settings: &Settings) -> Result<CryptoProvider, LoadError> {
    let mut provider = provider::default_provider();
    let wanted: Vec<CipherSuite> = match &settings.ciphers {
        None => CIPHERS.iter().map(|&(_, suite)| suite).collect(),
        Some(given) => wanted(given).ok_or_else(|| LoadError::NoCiphers {
            given: given.clone(),
        })?,
    };
    let all = std::mem::take(&mut provider.cipher_suites);
    let suite = |wanted: CipherSuite| all.iter().find(|suite| suite.suite() == wanted).copied();
    provider.cipher_suites = wanted.into_iter().filter_map(suite).collect();
    Ok(provider)
}

/// The cipher suites in a list of OpenSSL's, which is about TLS 1.2: those of TLS 1.3 stay, unless
/// the list names some of them. Names that are not known are passed over, as OpenSSL does; words
/// for several suites stand for all. None if none is left.
fn wanted(list: &str) -> Option<Vec<CipherSuite>> {
    let mut wanted: Vec<CipherSuite> = Vec::new();
    for word in list.split([':', ',', ' ']) {
        let is_group = [
            "ALL",
            "DEFAULT",
            "HIGH",
            "COMPLEMENTOFDEFAULT",
            "ECDHE",
            "AESGCM",
        ]
        .contains(&word);
        for &(name, suite) in &CIPHERS {
            if (name == word || is_group) && !wanted.contains(&suite) {
                wanted.push(suite);
            }
        }
    }
    if wanted.is_empty() {
        return None;
    }
    let of_13 = CIPHERS[..CIPHERS_OF_13].iter().map(|&(_, suite)| suite);
    if !of_13.clone().any(|suite| wanted.contains(&suite)) {
        wanted.extend(of_13);
    }
    Some(wanted)
}

/// Reads a file. `refresh_certs` does so in a worker, so what might keep it waiting is refused.
fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, LoadError> {
    read_bounded(path).map_err(|source| LoadError::Unreadable {
        flag,
        path: path.into(),
        source,
    })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if about.len() > TLS_FILE_BYTES_MAX {
        return Err(io::Error::other(
            "it is too large for certificates and keys",
        ));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    file.take(TLS_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn certificates(
    flag: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let bytes = read(flag, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| LoadError::Damaged {
        flag,
        path: path.into(),
        reason: error.to_string(),
    })?;
    match found.is_empty() {
        true => Err(LoadError::NoCertificate {
            flag,
            path: path.into(),
        }),
        false => Ok(found),
    }
}

/// The server's certificates and key, which belong together and are valid now. Also says until
/// when.
fn certified_key(
    settings: &Settings,
    provider: &CryptoProvider,
) -> Result<(CertifiedKey, Time), LoadError> {
    let path = &settings.chain;
    let chain = certificates("ssl_chain_cert", path)?;
    let own = Certificate::read(&chain[0]).ok_or_else(|| LoadError::Damaged {
        flag: "ssl_chain_cert",
        path: path.clone(),
        reason: "it is not X.509".into(),
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_unix_s = now.map_or(0, |since| since.as_secs() as i64);
    if now_unix_s > own.not_after.unix_s() {
        return Err(LoadError::Expired {
            path: path.clone(),
            on: own.not_after.to_string(),
        });
    }
    if now_unix_s < own.not_before.unix_s() {
        return Err(LoadError::NotYet {
            path: path.clone(),
            on: own.not_before.to_string(),
        });
    }
    let key_path = settings.key.as_ref().unwrap_or(path);
    let key = private_key(key_path, settings)?;
    let key = provider.key_provider.load_private_key(key);
    let key = key.map_err(|error| LoadError::UnusableKey {
        path: key_path.clone(),
        reason: error.to_string(),
    })?;
    if (key.public_key()).is_some_and(|of_key| of_key.as_ref() != own.public_key) {
        return Err(LoadError::OtherKey {
            key: key_path.clone(),
            chain: path.clone(),
        });
    }
    let not_after = own.not_after;
    Ok((CertifiedKey::new(chain, key), not_after))
}

fn private_key(path: &Path, settings: &Settings) -> Result<PrivateKeyDer<'static>, LoadError> {
    let bytes = read("ssl_key", path)?;
    let (key, format) = match settings.key_format {
        KeyFormat::Pem => (PrivateKeyDer::from_pem_slice(&bytes).ok(), "PEM text"),
        KeyFormat::Der => (PrivateKeyDer::try_from(bytes).ok(), "DER"),
    };
    key.ok_or_else(|| LoadError::NoKey {
        path: path.into(),
        format,
    })
}

/// The roots of clients' certificates.
struct Roots {
    certificates: Vec<CertificateDer<'static>>,
    /// The same, as those of authorities.
    authorities: Arc<RootCertStore>,
}

fn roots(path: &Path) -> Result<Roots, LoadError> {
    let certificates = certificates("ssl_ca_cert", path)?;
    let mut authorities = RootCertStore::empty();
    for certificate in &certificates {
        let added = authorities.add(certificate.clone());
        added.map_err(|error| LoadError::Damaged {
            flag: "ssl_ca_cert",
            path: path.into(),
            reason: error.to_string(),
        })?;
    }
    Ok(Roots {
        certificates,
        authorities: authorities.into(),
    })
}

fn verifier(
    roots: Option<&Roots>,
    verify: Verify,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, LoadError> {
    let is_mandatory = verify == Verify::Require;
    let Some(roots) = roots else {
        let schemes = provider.signature_verification_algorithms;
        return Ok(Arc::new(Rootless {
            is_mandatory,
            schemes: schemes.supported_schemes(),
        }));
    };
    let authorities = roots.authorities.clone();
    let builder = WebPkiClientVerifier::builder_with_provider(authorities, provider.clone());
    let builder = match is_mandatory {
        true => builder,
        false => builder.allow_unauthenticated(),
    };
    let built = builder.build();
    let issued =
        built.map_err(|error| LoadError::Other(rustls::Error::General(error.to_string())))?;
    Ok(Arc::new(Rooted {
        issued,
        roots: roots.certificates.clone(),
    }))
}

/// Accepts clients with a certificate that a root has issued, and clients whose certificate is a
/// root. `openssl req -x509` makes such certificates, and rustls refuses them, because they are
/// authorities. This admits nobody new: the owner of a root's key could issue a certificate with
/// it. The handshake's signature proves that the client has the key.
#[derive(Debug)]
struct Rooted {
    issued: Arc<dyn ClientCertVerifier>,
    roots: Vec<CertificateDer<'static>>,
}

/// Whether a certificate is valid at this time.
fn is_valid(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    Certificate::read(certificate).is_some_and(|it| {
        let valid = it.not_before.unix_s()..=it.not_after.unix_s();
        i64::try_from(now.as_secs()).is_ok_and(|now| valid.contains(&now))
    })
}

impl ClientCertVerifier for Rooted {
    fn client_auth_mandatory(&self) -> bool {
        self.issued.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.issued.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        client: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match self.issued.verify_client_cert(client, between, now) {
            // That it is an authority has no error of its own.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.roots.contains(client) && is_valid(client, now) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        client: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls12_signature(message, client, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        client: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.issued.verify_tls13_signature(message, client, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.issued.supported_verify_schemes()
    }
}

/// Where there are no roots, no certificate of a client is good, as in memcached.
#[derive(Debug)]
struct Rootless {
    is_mandatory: bool,
    schemes: Vec<SignatureScheme>,
}

fn refuse<T>() -> Result<T, rustls::Error> {
    Err(CertificateError::UnknownIssuer.into())
}

impl ClientCertVerifier for Rootless {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        refuse()
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        refuse()
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        refuse()
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
