//! A server of TLS on a thread.

#[path = "../../../../tests/support/certificates.rs"]
mod certificates;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
};

pub use certificates::{Authority, EXPIRED, Identity, VALID, alone};
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// How a server is set up.
pub struct Setup<'a> {
    pub identity: &'a Identity,
    pub versions: &'a [&'static SupportedProtocolVersion],
    /// Whose certificates clients need.
    pub clients: Option<&'a Authority>,
}

impl Setup<'_> {
    fn config(&self) -> ServerConfig {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(self.versions).unwrap();
        let builder = match self.clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                let pem = authority.certificate.as_bytes();
                roots
                    .add(CertificateDer::from_pem_slice(pem).unwrap())
                    .unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let certificate = CertificateDer::from_pem_slice(self.identity.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.identity.key.as_bytes());
        builder
            .with_single_cert(vec![certificate.unwrap()], key.unwrap())
            .unwrap()
    }
}

/// Serves one connection with an echo until it ends, or fails. Returns the port, and whether the
/// client ended it properly.
pub fn echo(setup: &Setup<'_>) -> (u16, JoinHandle<bool>) {
    let config = Arc::new(setup.config());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (stream, _) = listener.accept().unwrap();
        answer(ServerConnection::new(config).unwrap(), stream)
    };
    (port, thread::spawn(serve))
}

fn answer(connection: ServerConnection, stream: TcpStream) -> bool {
    stream.set_nodelay(true).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let mut data = vec![0; 1 << 20];
    // What a client has sent must not be unread at the end: the kernel would answer it with a reset
    // that may overtake an alert.
    loop {
        match stream.read(&mut data) {
            Ok(0) => return true,
            Ok(bytes) if stream.write_all(&data[..bytes]).is_ok() => {}
            _ => break,
        }
    }
    while !matches!(stream.sock.read(&mut data), Ok(0) | Err(_)) {}
    false
}
