//! Says in one line why a connection with TLS failed, and what to do about it.

use std::io::{self, ErrorKind};

use anyhow::{Error, anyhow};
use rustls::{AlertDescription, CertificateError, pki_types::UnixTime};

use crate::Tls;

/// A server that closes while hands are shaken.
pub const CLOSED: &str = "the server closed the connection during the TLS handshake: does it \
                          speak TLS at this port? Without TLS, leave --tls out";
/// What rustls says of a certificate that is its own authority, as `openssl req -x509` makes it.
const OWN_AUTHORITY: &str = "CaUsedAsEndEntity";
const DAY_S: u64 = 24 * 60 * 60;

/// The socket failed while hands were shaken.
pub fn interrupted(error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => anyhow!(
            "the server does not answer the TLS handshake: does it speak TLS at this port? \
             Without TLS, leave --tls out"
        ),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
            anyhow!(CLOSED)
        }
        _ => anyhow!("the TLS handshake failed: {error}"),
    }
}

/// Either side refused, or something is broken.
pub fn refused(error: &rustls::Error, tls: &Tls, shaking_hands: bool) -> Error {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};
    match error {
        InvalidCertificate(error) => anyhow!(unacceptable(error, tls)),
        AlertReceived(alert) => anyhow!(alerted(*alert)),
        InvalidMessage(_) if shaking_hands => anyhow!(
            "the server does not speak TLS at this port: leave --tls out, or give the port where \
             it does"
        ),
        PeerIncompatible(why) => anyhow!(
            "the server and this client have no version or cipher of TLS in common: {why:?}; \
             this client speaks TLS 1.2 and 1.3"
        ),
        error => anyhow!("TLS: {error}"),
    }
}

/// Why the server's certificate is not accepted.
fn unacceptable(error: &CertificateError, tls: &Tls) -> String {
    let trusted = match &*tls.trusted {
        "" => "that this system trusts; name the one that signed it with --tls-ca FILE".to_owned(),
        file => format!("in {file}; give --tls-ca the file of the one that signed it"),
    };
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("the server's certificate is not signed by an authority {trusted}")
        }
        CertificateError::Other(other) if other.to_string() == OWN_AUTHORITY => {
            format!("the server's certificate is not signed by an authority {trusted}")
        }
        CertificateError::ExpiredContext { time, not_after } => format!(
            "the server's certificate expired {} ago: it has to be renewed on the server",
            apart(*not_after, *time)
        ),
        CertificateError::NotValidYetContext { time, not_before } => format!(
            "the server's certificate is valid only in {}: compare the clocks of both machines",
            apart(*time, *not_before)
        ),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "the server's certificate is not for {}: it is for {}; connect by such a name, or \
             renew it with this one in its subjectAltName",
            expected.to_str(),
            match presented.as_slice() {
                [] => "no name at all".to_owned(),
                names => names
                    .iter()
                    .map(|name| plain(name))
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        ),
        CertificateError::Other(other) => format!(
            "the server's certificate cannot be used ({other}): make one of X.509 version 3, and \
             give --tls-ca the authority that signed it"
        ),
        error => format!("the server's certificate is not acceptable: {error}"),
    }
}

/// A name of a certificate, which rustls writes with its kind: `DnsName("cache.example")`.
fn plain(name: &str) -> &str {
    let inside = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

/// Why the server does not accept this client.
fn alerted(alert: AlertDescription) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => "the server wants a certificate of its clients: give --tls-cert \
                                   and --tls-key"
            .to_owned(),
        A::UnknownCA
        | A::BadCertificate
        | A::CertificateUnknown
        | A::CertificateRevoked
        | A::UnsupportedCertificate
        | A::DecryptError
        | A::AccessDenied => format!(
            "the server refuses this client's certificate ({alert:?}): --tls-cert has to be \
             signed by an authority that the server trusts"
        ),
        A::CertificateExpired => {
            "the server refuses this client's certificate: --tls-cert has expired".to_owned()
        }
        A::HandshakeFailure => "the server refuses the TLS handshake: it may want a certificate \
                                (--tls-cert and --tls-key), or have no cipher in common with this \
                                client"
            .to_owned(),
        A::ProtocolVersion => "the server and this client have no version of TLS in common: this \
                               client speaks TLS 1.2 and 1.3"
            .to_owned(),
        alert => format!("the server ends the connection with the TLS alert {alert:?}"),
    }
}

/// The time between two moments, as people say it.
fn apart(earlier: UnixTime, later: UnixTime) -> String {
    let seconds = later.as_secs().saturating_sub(earlier.as_secs());
    let (number, unit) = match seconds {
        0..=7_199 => (seconds.div_ceil(60), "minute"),
        7_200..=172_799 => (seconds / 3_600, "hour"),
        _ => (seconds / DAY_S, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_said_in_a_fitting_unit() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let said = |seconds| apart(at(1_000), at(1_000 + seconds));
        assert_eq!(said(59), "1 minute");
        assert_eq!(said(7_200), "2 hours");
        assert_eq!(said(400 * DAY_S), "400 days");
    }
}
