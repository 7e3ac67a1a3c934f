//! What is wrong with files is said in one line, and renewing certificates keeps the old ones then.

mod support;

use glimmer_tls::{KeyFormat, Settings, Tls};
use rcgen::date_time_ymd;
use support::{Authority, BYTES_MAX, NAME};

/// Settings with something wrong, and what is said about it.
fn wrong(authority: &Authority) -> Vec<(Settings, &'static str)> {
    let good = authority.settings();
    let other = authority.issue(NAME, |_| {});
    let expired = authority.issue(NAME, |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 6, 30);
    });
    let early = authority.issue(NAME, |params| params.not_before = date_time_ymd(2090, 1, 1));
    let chain = |name: &str, content: &[u8]| Settings {
        chain: authority.write(name, content),
        ..good.clone()
    };
    let key = |name: &str, content: &[u8]| Settings {
        key: Some(authority.write(name, content)),
        ..good.clone()
    };
    vec![
        (
            Settings {
                chain: "/nowhere/chain.pem".into(),
                ..good.clone()
            },
            "-o ssl_chain_cert=/nowhere/chain.pem: cannot be read: No such file",
        ),
        (
            // It would keep the worker that renews busy for ever.
            Settings {
                chain: "/dev/zero".into(),
                ..good.clone()
            },
            "-o ssl_chain_cert=/dev/zero: cannot be read: it is no regular file",
        ),
        (
            chain("der.crt", &other.chain[0]),
            "holds no certificate as PEM text",
        ),
        (
            chain(
                "cut.crt",
                b"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n",
            ),
            "holds a certificate that is damaged",
        ),
        (
            chain("expired.crt", expired.pem.as_bytes()),
            "has expired on 2021-06-30: renew it",
        ),
        (
            chain("early.crt", early.pem.as_bytes()),
            "is not valid before 2090-01-01",
        ),
        (
            chain("other.crt", other.pem.as_bytes()),
            "is not the key of the certificate in",
        ),
        (
            key("none.key", b"hello"),
            "holds no private key as PEM text",
        ),
        (
            key("der.key", other.key.secret_der()),
            "holds no private key as PEM text",
        ),
        (
            Settings {
                key_format: KeyFormat::Der,
                ..good.clone()
            },
            "holds no private key as DER",
        ),
        (
            Settings {
                key: Some("/nowhere/key.pem".into()),
                ..good.clone()
            },
            "-o ssl_key=/nowhere/key.pem: cannot be read",
        ),
        (
            Settings {
                roots: Some(authority.write("roots.pem", "")),
                ..good.clone()
            },
            "-o ssl_ca_cert=",
        ),
        (
            Settings {
                ciphers: Some("RC4-MD5".into()),
                ..good
            },
            "-o ssl_ciphers=RC4-MD5: names no cipher suite that is supported",
        ),
    ]
}

#[test]
fn wrong_files_are_refused_in_one_line() {
    let authority = Authority::new();
    for (settings, expected) in wrong(&authority) {
        let said = Tls::load(settings, BYTES_MAX).unwrap_err().to_string();
        assert!(
            said.contains(expected) && !said.contains('\n'),
            "{expected}: {said}"
        );
    }
}

#[test]
fn a_renewal_that_fails_keeps_the_old_certificate() {
    let authority = Authority::new();
    let settings = authority.settings();
    let tls = Tls::load(settings.clone(), BYTES_MAX).unwrap();
    let before = tls.not_after_unix_s();
    let later = authority.issue(NAME, |params| params.not_after = date_time_ymd(2090, 1, 1));
    std::fs::write(&settings.chain, &later.pem).unwrap();
    let said = tls.renew().unwrap_err().to_string();
    assert!(said.contains("is not the key"), "{said}");
    assert_eq!(
        (tls.not_after_unix_s(), tls.counters().renewals()),
        (before, 0)
    );
    std::fs::write(settings.key.unwrap(), &later.key_pem).unwrap();
    tls.renew().unwrap();
    assert_eq!(tls.not_after_unix_s(), 3_786_912_000);
    assert_eq!(tls.counters().renewals(), 1);
    assert_eq!(tls.counters().renewal_errors(), 1);
}

/// The key may be in the file of the certificates, or be written as bytes.
#[test]
fn a_key_is_found_where_it_is() {
    let authority = Authority::new();
    let issued = authority.issue(NAME, |_| {});
    let both = authority.write("both.pem", issued.pem.clone() + &issued.key_pem);
    Tls::load(
        Settings {
            chain: both.clone(),
            ..Settings::default()
        },
        BYTES_MAX,
    )
    .unwrap();
    Tls::load(
        Settings {
            chain: both,
            key: Some(authority.write("key.der", issued.key.secret_der())),
            key_format: KeyFormat::Der,
            ciphers: Some("ECDHE-ECDSA-AES256-GCM-SHA384:!aNULL".into()),
            ..Settings::default()
        },
        BYTES_MAX,
    )
    .unwrap();
}
