//! Clients against servers of TLS that are right, and that are wrong in each way that happens.

mod support;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

use glimmer_connect::{Files, Sealed, Tls};
use rustls::version::{TLS12, TLS13};
use support::{Authority, EXPIRED, Identity, Setup, VALID, alone, echo};

const PATIENCE: Duration = Duration::from_secs(20);
const NAME: &str = "localhost";

/// A client that trusts an authority.
fn client(authority: &Authority) -> Files {
    Files {
        authorities: Some(authority.path("ca.pem")),
        ..Files::default()
    }
}

fn connect(port: u16, files: &Files) -> anyhow::Result<Sealed<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Sealed::begin(&Tls::new(files)?, NAME, stream)
}

/// One round trip.
fn exchange(stream: &mut Sealed<TcpStream>, data: &[u8]) -> anyhow::Result<()> {
    stream.write_all(data)?;
    let mut back = vec![0; data.len()];
    stream.read_exact(&mut back)?;
    assert!(back == data, "{} bytes come back changed", data.len());
    Ok(())
}

/// What a client is told that connects to such a server and uses the connection once.
fn told(identity: &Identity, clients: Option<&Authority>, files: &Files) -> String {
    let setup = Setup {
        identity,
        versions: &[&TLS13],
        clients,
    };
    let (port, server) = echo(&setup);
    let used = connect(port, files).and_then(|mut stream| exchange(&mut stream, b"data"));
    server.join().unwrap();
    format!("{:#}", used.expect_err("the client or the server refuses"))
}

#[test]
fn data_of_any_length_goes_through_in_both_versions() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&[NAME], VALID);
    for (versions, name) in [(&TLS12, "TLS 1.2, TLS_"), (&TLS13, "TLS 1.3, TLS_AES_")] {
        let setup = Setup {
            identity: &identity,
            versions: &[versions],
            clients: None,
        };
        let (port, server) = echo(&setup);
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let tls = Tls::new(&client(&authority)).unwrap();
        assert_eq!(tls.agreed(), None);
        let mut sealed = Sealed::begin(&tls, NAME, stream).unwrap();
        assert!(
            tls.agreed().unwrap().starts_with(name),
            "{:?}",
            tls.agreed()
        );
        // Around the length of a record, and around those of the buffers.
        for bytes in [1, 100, 16_383, 16_384, 16_385, 40_000, 1 << 20] {
            let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            exchange(&mut sealed, &data).unwrap();
        }
        drop(sealed);
        assert!(server.join().unwrap(), "the client says that it ends");
    }
}

#[test]
fn a_certificate_that_is_its_own_authority_is_accepted_where_it_is_named() {
    let authority = Authority::new("a folder");
    let identity = alone(NAME);
    let files = Files {
        authorities: Some(authority.file("server.pem", &identity.certificate)),
        ..Files::default()
    };
    let setup = Setup {
        identity: &identity,
        versions: &[&TLS13],
        clients: None,
    };
    let (port, server) = echo(&setup);
    exchange(&mut connect(port, &files).unwrap(), b"data").unwrap();
    server.join().unwrap();
    let error = told(&identity, None, &client(&authority));
    assert!(error.contains("not signed by an authority in "), "{error}");
    assert!(error.contains("give --tls-ca"), "{error}");
    // The name counts for it, too.
    let elsewhere = alone("elsewhere");
    let files = Files {
        authorities: Some(authority.file("server.pem", &elsewhere.certificate)),
        ..Files::default()
    };
    let error = told(&elsewhere, None, &files);
    assert!(error.contains("not for localhost"), "{error}");
    assert!(error.contains("elsewhere"), "{error}");
}

#[test]
fn a_refused_certificate_is_explained() {
    let authority = Authority::new("an authority");
    let other = Authority::new("another authority");
    let trusting = client(&authority);
    let error = told(&other.sign(&[NAME], VALID), None, &trusting);
    assert!(error.contains("not signed by an authority in "), "{error}");
    assert!(error.contains("--tls-ca"), "{error}");
    let error = told(&authority.sign(&[NAME], EXPIRED), None, &trusting);
    assert!(
        error.contains("expired ") && error.contains(" days ago"),
        "{error}"
    );
    let error = told(&authority.sign(&[NAME], (2090, 2100)), None, &trusting);
    assert!(error.contains("compare the clocks"), "{error}");
    let error = told(&authority.sign(&["cache.example"], VALID), None, &trusting);
    assert!(error.contains("it is for cache.example;"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn any_certificate_is_accepted_insecurely() {
    let identity = Authority::new("unknown").sign(&["elsewhere"], EXPIRED);
    let setup = Setup {
        identity: &identity,
        versions: &[&TLS12, &TLS13],
        clients: None,
    };
    let (port, server) = echo(&setup);
    let insecure = Files {
        insecure: true,
        ..Files::default()
    };
    exchange(&mut connect(port, &insecure).unwrap(), b"data").unwrap();
    server.join().unwrap();
}

#[test]
fn a_server_may_want_a_certificate() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&[NAME], VALID);
    let with = |own: &Identity| Files {
        certificate: Some(authority.file("client.pem", &own.certificate)),
        key: Some(authority.file("client.key", &own.key)),
        ..client(&authority)
    };
    let setup = Setup {
        identity: &identity,
        versions: &[&TLS13],
        clients: Some(&authority),
    };
    let (port, server) = echo(&setup);
    let files = with(&authority.sign(&["client"], VALID));
    exchange(&mut connect(port, &files).unwrap(), b"data").unwrap();
    server.join().unwrap();

    let error = told(&identity, Some(&authority), &client(&authority));
    assert!(error.contains("give --tls-cert"), "{error}");
    let foreign = Authority::new("another authority").sign(&["client"], VALID);
    let error = told(&identity, Some(&authority), &with(&foreign));
    assert!(
        error.contains("refuses this client's certificate"),
        "{error}"
    );
    let expired = authority.sign(&["client"], EXPIRED);
    let error = told(&identity, Some(&authority), &with(&expired));
    assert!(error.contains("--tls-cert has expired"), "{error}");
}

/// What becomes of a handshake with a server that answers it with these bytes, and then stays or
/// closes.
fn answered(reply: &'static [u8], closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]).unwrap();
        peer.write_all(reply).unwrap();
        (!closes).then_some(peer)
    });
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let patience = if closes {
        PATIENCE
    } else {
        Duration::from_millis(100)
    };
    stream.set_read_timeout(Some(patience)).unwrap();
    let tls = Tls::new(&client(&Authority::new("an authority"))).unwrap();
    let error = Sealed::begin(&tls, NAME, stream).err().unwrap();
    server.join().unwrap();
    format!("{error:#}")
}

#[test]
fn a_server_without_tls_is_named_so() {
    for (reply, closes) in [
        (&b"ERROR\r\nERROR\r\n"[..], true),
        (b"ERROR\r\n", false),
        (b"-ERR unknown command\r\n", true),
        (b"", true),
        (b"", false),
    ] {
        let error = answered(reply, closes);
        assert!(
            error.contains("leave --tls out"),
            "{reply:?}, {closes}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn wrong_files_are_complained_about_with_their_flag() {
    let authority = Authority::new("an authority");
    let [own, other] = [(); 2].map(|()| authority.sign(&["client"], VALID));
    // The files of a case replace those of the one before.
    let complaint = |files: &Files| format!("{:#}", Tls::new(files).unwrap_err());
    let with = |certificate: &str, key: &str| Files {
        certificate: Some(authority.file("client.pem", certificate)),
        key: Some(authority.file("client.key", key)),
        ..client(&authority)
    };
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n\
                     -----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\n!";
    for (certificate, key, words) in [
        (own.key.as_str(), own.key.as_str(), "no certificate in it"),
        ("nothing", &own.key, "no certificate in it"),
        (broken, &own.key, "broken PEM"),
        (&own.certificate, &own.certificate, "no private key in it"),
        (&own.certificate, encrypted, "openssl pkey"),
        (&own.certificate, &other.key, "does not belong to"),
    ] {
        let error = complaint(&with(certificate, key));
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let lone = Files {
        key: None,
        ..with(&own.certificate, &own.key)
    };
    assert!(complaint(&lone).contains("give both"));
    let missing = Files {
        authorities: Some("/no/such/file".into()),
        ..Files::default()
    };
    let error = complaint(&missing);
    assert!(
        error.contains("--tls-ca /no/such/file: No such file"),
        "{error}"
    );
}
