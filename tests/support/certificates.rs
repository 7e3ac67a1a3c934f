//! Certificates for tests of programs that use TLS.

// Each test program compiles all of it and uses some.
#![allow(dead_code)]

use std::{fs, path::PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// Years in which certificates are valid.
pub const VALID: (i32, i32) = (2020, 2100);
/// Years that are over.
pub const EXPIRED: (i32, i32) = (2020, 2021);

/// A certificate and its key, in PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// An authority, in a folder for files.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub certificate: String,
    folder: TempDir,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let authority = Authority {
            issuer: Issuer::new(params, key),
            certificate,
            folder: tempfile::tempdir().unwrap(),
        };
        authority.file("ca.pem", &authority.certificate);
        authority
    }

    /// A certificate for these names and addresses.
    pub fn sign(&self, names: &[&str], (from, until): (i32, i32)) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        identity(&params.signed_by(&key, &self.issuer).unwrap(), &key)
    }

    /// The path of a file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file with this text.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Files with a certificate and its key, as arguments name them.
    pub fn files(&self, name: &str, identity: &Identity) -> [String; 2] {
        let certificate = self.file(&format!("{name}.pem"), &identity.certificate);
        let key = self.file(&format!("{name}.key"), &identity.key);
        [certificate, key].map(|path| path.to_str().unwrap().to_owned())
    }

    /// The file with its own certificate.
    pub fn named(&self) -> String {
        self.path("ca.pem").to_str().unwrap().to_owned()
    }

    /// The arguments of a server with this certificate.
    pub fn server(&self, identity: &Identity) -> Vec<String> {
        let [certificate, key] = self.files("server", identity);
        let files = format!("ssl_chain_cert={certificate},ssl_key={key}");
        ["-Z", "-o", &files].map(str::to_owned).into()
    }
}

/// One that is its own authority, as `openssl req -x509` makes it.
pub fn alone(name: &str) -> Identity {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    identity(&params.self_signed(&key).unwrap(), &key)
}

fn identity(certificate: &Certificate, key: &KeyPair) -> Identity {
    Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}
