//! Certificates for servers that are compared over TLS.

use std::{fs, net::IpAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use glimmer_connect::{CipherSuite, Files, Tls};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use tempfile::TempDir;

use super::Kind;
use crate::lab::Place;

/// An authority of this process, and a certificate of servers on loopback that it has signed. The
/// files go with the last clone.
#[derive(Clone, Debug)]
pub struct Encryption(Arc<TempDir>);

impl PartialEq for Encryption {
    fn eq(&self, other: &Encryption) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Encryption {}

impl Encryption {
    /// Makes the certificates: all servers get the same one, with a key on the curve P-256.
    pub fn new() -> Result<Encryption> {
        let folder = tempfile::Builder::new()
            .prefix("glimmer-bench-tls")
            .tempdir();
        let encryption = Encryption(Arc::new(folder.context("a folder for certificates")?));
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate()?;
        let authority_pem = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut server = CertificateParams::new(vec!["localhost".to_owned()])?;
        let address: IpAddr = Place::loopback().ip;
        server.subject_alt_names.push(SanType::IpAddress(address));
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &issuer)?;
        fs::write(encryption.file(CA), authority_pem)?;
        fs::write(encryption.file(CERTIFICATE), certificate.pem())?;
        fs::write(encryption.file(KEY), key.serialize_pem())?;
        Ok(encryption)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A client that trusts these servers. Each server has its own, so that none resumes a session
    /// of another.
    pub(super) fn client(&self) -> Result<Tls> {
        let files = Files {
            authorities: Some(self.file(CA)),
            ..Files::default()
        };
        Tls::with_suite(&files, SUITE)
    }

    /// What a server is given so that it encrypts, if comparisons know how.
    pub(super) fn arguments(&self, kind: Kind) -> Vec<String> {
        let file = |name| self.file(name).display().to_string();
        let (ca, certificate, key) = (file(CA), file(CERTIFICATE), file(KEY));
        match kind {
            Kind::Glimmer | Kind::Memcached => {
                let files = format!("ssl_chain_cert={certificate},ssl_key={key}");
                vec!["-Z".to_owned(), "-o".to_owned(), files]
            }
            Kind::Redis | Kind::Valkey => {
                let flags = [
                    ("--tls-cert-file", certificate),
                    ("--tls-key-file", key),
                    ("--tls-ca-cert-file", ca),
                    ("--tls-auth-clients", "no".to_owned()),
                ];
                let flags = flags.map(|(flag, value)| [flag.to_owned(), value]);
                flags.into_iter().flatten().collect()
            }
            Kind::Pogocache | Kind::Masstree | Kind::Echo => Vec::new(),
        }
    }
}

/// The cipher suite of every connection. Left to themselves, servers choose differently.
const SUITE: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;

const CA: &str = "ca.pem";
const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";
