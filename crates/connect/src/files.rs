//! Reads certificates and keys in PEM.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject};

/// The certificates in the file that `flag` names.
pub fn certificates(flag: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = read(flag, path)?;
    let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let shown = path.display();
    let certificates = certificates.with_context(|| format!("{flag} {shown}: broken PEM"))?;
    ensure!(
        !certificates.is_empty(),
        "{flag} {shown}: no certificate in it; it must be PEM, with a line that begins \
         -----BEGIN CERTIFICATE-----"
    );
    Ok(certificates)
}

/// The private key in the file that `flag` names.
pub fn key(flag: &str, path: &Path) -> Result<PrivateKeyDer<'static>> {
    let bytes = read(flag, path)?;
    let shown = path.display();
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if is_encrypted(&bytes) => bail!(
            "{flag} {shown}: the key is encrypted; write one without a passphrase: \
             openssl pkey -in {shown} -out key.pem"
        ),
        Err(pem::Error::NoItemsFound) => bail!(
            "{flag} {shown}: no private key in it; it must be PEM, with a line such as \
             -----BEGIN PRIVATE KEY-----"
        ),
        Err(error) => Err(error).with_context(|| format!("{flag} {shown}: broken PEM")),
    }
}

/// Whether a file contains a key with a passphrase.
fn is_encrypted(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{flag} {}", path.display()))
}
