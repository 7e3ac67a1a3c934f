//! Certificates made for a test, and a client over an in-process stream.

#![allow(dead_code, reason = "each test uses some of it")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use glimmer_tls::{Settings, Tls};
use glimmer_transport::stream::{ByteStream, LocalStream, Received, Sent};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

/// Bytes that all connections of a server may hold.
pub const BYTES_MAX: usize = 64 << 20;

pub const NAME: &str = "cache.example";

/// A root that issues certificates, and a folder for them.
pub struct Authority {
    pub folder: tempfile::TempDir,
    params: CertificateParams,
    key: KeyPair,
    root: CertificateDer<'static>,
    pub root_pem: String,
}

/// A certificate and its key.
pub struct Issued {
    pub pem: String,
    pub key_pem: String,
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "Test Root");
        let key = new_key();
        let root = params.self_signed(&key).unwrap();
        Authority {
            folder: tempfile::tempdir().unwrap(),
            root: root.der().clone(),
            root_pem: root.pem(),
            params,
            key,
        }
    }

    pub fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = new_key();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let made = params.signed_by(&key, &issuer).unwrap();
        Issued {
            pem: made.pem(),
            key_pem: key.serialize_pem(),
            chain: vec![made.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    /// Writes a file of the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The settings of a server with a certificate of its own.
    pub fn settings(&self) -> Settings {
        let issued = self.issue(NAME, |_| {});
        Settings {
            chain: self.write("chain.pem", &issued.pem),
            key: Some(self.write("key.pem", &issued.key_pem)),
            ..Settings::default()
        }
    }

    pub fn server(&self) -> Arc<Tls> {
        Arc::new(Tls::load(self.settings(), BYTES_MAX).unwrap())
    }

    /// A client that trusts the root, and shows a certificate if it has one.
    pub fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        shows: Option<&Issued>,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(versions).unwrap();
        let builder = builder.with_root_certificates(roots);
        Arc::new(match shows {
            None => builder.with_no_client_auth(),
            Some(issued) => builder
                .with_client_auth_cert(issued.chain.clone(), issued.key.clone_key())
                .unwrap(),
        })
    }
}

impl Authority {
    /// A client that shows a certificate with whatever key.
    pub fn showing(
        &self,
        version: &'static SupportedProtocolVersion,
        shows: &Issued,
    ) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.client(&[version], None));
        let keys = rustls::crypto::ring::default_provider().key_provider;
        let key = keys.load_private_key(shows.key.clone_key()).unwrap();
        let shown = CertifiedKey::new(shows.chain.clone(), key);
        config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
        Arc::new(config)
    }
}

/// A certificate that is its own authority.
pub fn own_authority(change: impl FnOnce(&mut CertificateParams)) -> Issued {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "web-3");
    change(&mut params);
    let key = new_key();
    let made = params.self_signed(&key).unwrap();
    Issued {
        pem: made.pem(),
        key_pem: key.serialize_pem(),
        chain: vec![made.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
}

/// A key whose signatures all have one length.
fn new_key() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
}

pub fn names() -> [SocketAddr; 2] {
    ["127.0.0.1:1", "127.0.0.1:2"].map(|name| name.parse().unwrap())
}

/// A client's end, by another implementation than the server's.
pub struct Client {
    pub tls: ClientConnection,
    pub stream: LocalStream,
    out: Vec<u8>,
    pub has_ended: bool,
}

impl Client {
    pub fn new(config: Arc<ClientConfig>, stream: LocalStream) -> Client {
        let name = ServerName::try_from(NAME).unwrap();
        Client {
            tls: ClientConnection::new(config, name).unwrap(),
            stream,
            out: Vec::new(),
            has_ended: false,
        }
    }

    /// Sends what the stream takes, and receives once, at most this many bytes. Returns the data.
    pub fn pump(&mut self, bytes_max: usize) -> Result<Vec<u8>, rustls::Error> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.out).unwrap();
        }
        match self.stream.send(&self.out) {
            Sent::All => self.out.clear(),
            Sent::Part(bytes) => drop(self.out.drain(..bytes)),
            Sent::Failed => self.out.clear(),
        }
        let mut received = Vec::with_capacity(bytes_max);
        match self.stream.receive_at_most(&mut received, bytes_max) {
            Received::Ended => self.has_ended = true,
            Received::Full(_) | Received::Drained(_) => {}
        }
        let mut rest = &received[..];
        let mut data = Vec::new();
        while !rest.is_empty() {
            self.tls.read_tls(&mut rest).unwrap();
            let state = self.tls.process_new_packets()?;
            let before = data.len();
            data.resize(before + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut data[before..]).unwrap();
            self.has_ended |= state.peer_has_closed();
        }
        Ok(data)
    }

    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.tls.writer().write(bytes).unwrap()
    }

    /// Whether nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        !self.tls.wants_write() && self.out.is_empty()
    }
}
