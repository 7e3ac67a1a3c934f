//! What the tools say to be served: certificates, and a login.

use std::path::PathBuf;

use anyhow::Result;
use glimmer_connect::{Admission, Files, Login, Tls};

const HEADING: &str = "TLS and login";

/// How a tool connects to a server that encrypts, or that wants a login.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AdmissionArguments {
    /// Encrypt the connection, for a server with -Z
    #[arg(long, help_heading = HEADING)]
    tls: bool,
    /// Accept what this authority signed, or exactly this certificate: a PEM file [default: the
    /// authorities that the system trusts]
    #[arg(long, value_name = "FILE", requires = "tls", help_heading = HEADING)]
    tls_ca: Option<PathBuf>,
    /// The client's own certificate, for a server that wants one (ssl_verify_mode): a PEM file
    #[arg(long, value_name = "FILE", requires = "tls", help_heading = HEADING)]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls", help_heading = HEADING)]
    tls_key: Option<PathBuf>,
    /// Accept any certificate. An attacker on the network can then pose as the server, and read and
    /// change everything
    #[arg(long, requires = "tls", conflicts_with = "tls_ca", help_heading = HEADING)]
    tls_insecure: bool,
    /// The user, for a server with -Y or --users. The password is in --password-file, or in the
    /// environment variable GLIMMER_PASSWORD
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    auth_user: Option<String>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE", requires = "auth_user", help_heading = HEADING)]
    password_file: Option<PathBuf>,
}

impl AdmissionArguments {
    /// Reads the files, and warns on standard error if nothing is verified.
    ///
    /// # Errors
    ///
    /// If a file is missing or wrong, or if there is no password.
    pub fn read(&self) -> Result<Admission> {
        let files = Files {
            authorities: self.tls_ca.clone(),
            certificate: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            insecure: self.tls_insecure,
        };
        let tls = self.tls.then(|| Tls::new(&files)).transpose()?;
        if self.tls_insecure {
            eprintln!(
                "warning: --tls-insecure accepts any certificate; anyone on the way can read and \
                 change what is sent"
            );
        }
        let login = |user: &String| Login::read(user, self.password_file.as_deref());
        Ok(Admission {
            tls,
            login: self.auth_user.as_ref().map(login).transpose()?,
            host: None,
        })
    }
}
