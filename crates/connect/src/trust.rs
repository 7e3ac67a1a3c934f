//! Which certificates of servers are accepted.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// Whom a client trusts. A server always has to have the key of the certificate that it shows.
#[derive(Debug)]
pub struct Verifier {
    pub trusts: Trusts,
    pub provider: Arc<CryptoProvider>,
}

/// Whose certificates are accepted.
#[derive(Debug)]
pub enum Trusts {
    /// What the authorities of a file have signed, and also the server's own certificate if it is
    /// in the file: `openssl req -x509` makes certificates that are their own authority, and rustls
    /// refuses an authority as a server.
    Named {
        authorities: Arc<WebPkiServerVerifier>,
        named: Vec<CertificateDer<'static>>,
    },
    /// Every one, for `--tls-insecure`.
    Anyone,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Trusts::Named { authorities, named } = &self.trusts else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(server, between, name, ocsp, now) {
            // rustls has looked at the time before it says this.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if named.contains(server) =>
            {
                verify_server_name(&ParsedCertificate::try_from(server)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
