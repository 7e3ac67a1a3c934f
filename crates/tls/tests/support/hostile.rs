//! The body of the fuzz target `tls`, which the bounded run of the test suite shares: from bytes of
//! a client to the replies of an encrypted connection. That is what comes before a handshake is
//! over, or records after it, some of which are not the client's.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use glimmer_tls::{ClientCertificates, Settings, Tls, TlsStream};
use glimmer_transport::stream::{
    ByteStream, Handshaking, LocalStream, Received, Sent, StreamFaults,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

const NAME: &str = "cache.example";

/// Times that each end has its turn. Nothing takes as many.
const TURNS_MAX: usize = 10_000;

struct Ends {
    server: Tls,
    client: Arc<ClientConfig>,
}

fn ends() -> &'static Ends {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    ENDS.get_or_init(|| {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let params = rcgen::CertificateParams::new(vec![NAME.into()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let chain = folder.path().join("chain");
        std::fs::write(&chain, certificate.pem() + &key.serialize_pem()).unwrap();
        let settings = Settings {
            chain,
            ..Settings::default()
        };
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider);
        let client = client.with_safe_default_protocol_versions().unwrap();
        let mut client = client.with_root_certificates(roots).with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        Ends {
            server: Tls::load(settings, 1 << 20).unwrap(),
            client: Arc::new(client),
        }
    })
}

fn connected() -> (TlsStream, LocalStream) {
    let names = ["127.0.0.1:1", "127.0.0.1:2"].map(|name| name.parse().unwrap());
    let [near, far] = LocalStream::pair(StreamFaults::default(), names, 1);
    let ends = ends();
    let config = ends.server.config(ClientCertificates::AsSet);
    let counters = ends.server.counters().clone();
    (
        TlsStream::new(Box::new(near), config, counters).unwrap(),
        far,
    )
}

/// Nothing but these bytes.
fn strangers_bytes(data: &[u8]) {
    let (mut server, mut far) = connected();
    far.send(data);
    far.finish();
    for _ in 0..TURNS_MAX {
        match server.handshake() {
            Handshaking::Failed => return,
            Handshaking::Done => panic!("a stranger shakes hands"),
            Handshaking::Waits | Handshaking::GoesOn => {}
        }
    }
    panic!("it goes on for ever");
}

/// Has both ends shake hands.
fn shake(server: &mut TlsStream, client: &mut ClientConnection, far: &mut LocalStream) {
    for _ in 0..TURNS_MAX {
        let mut out = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut out).unwrap();
        }
        far.send(&out);
        let is_done = server.handshake() == Handshaking::Done;
        let mut received = Vec::with_capacity(1 << 16);
        far.receive(&mut received);
        let mut rest = &received[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
        if is_done && !client.is_handshaking() && !client.wants_write() {
            return;
        }
    }
    panic!("they do not come to an end");
}

/// What a client says after its handshake: each piece of the input begins with a byte that says
/// what it is, and one with its length.
fn records(mut data: &[u8]) {
    let (mut server, mut far) = connected();
    let name = ServerName::try_from(NAME).unwrap();
    let mut client = ClientConnection::new(ends().client.clone(), name).unwrap();
    shake(&mut server, &mut client, &mut far);
    // What the client has sent before something else came, and what arrives.
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    let mut is_sound = true;
    while let [kind, length, rest @ ..] = data {
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        let mut out = Vec::new();
        match kind % 4 {
            0 => {
                client.writer().write_all(piece).unwrap();
                if is_sound {
                    sent.extend_from_slice(piece);
                }
            }
            1 => client.refresh_traffic_keys().unwrap(),
            2 => {
                is_sound &= piece.is_empty();
                out.extend_from_slice(piece);
            }
            _ => client.send_close_notify(),
        }
        if out.is_empty() {
            while client.wants_write() {
                client.write_tls(&mut out).unwrap();
            }
        }
        if kind % 4 == 3 {
            data = &[];
        }
        far.send(&out);
        let mut buffer = Vec::with_capacity(1 + usize::from(*length));
        if let Received::Full(count) | Received::Drained(count) = server.receive(&mut buffer) {
            assert_eq!(count, buffer.len());
        }
        arrived.extend(buffer);
        // The reply.
        if server.send(b"END\r\n") == Sent::Failed {
            break;
        }
        let mut received = Vec::with_capacity(1 << 16);
        far.receive(&mut received);
        let mut rest = &received[..];
        while !rest.is_empty() && client.read_tls(&mut rest).is_ok() {
            if client.process_new_packets().is_err() {
                assert!(!is_sound, "the server's records are wrong");
                return;
            }
            let mut replies = Vec::new();
            let _ = client.reader().read_to_end(&mut replies);
        }
    }
    assert!(
        sent.starts_with(&arrived) || !is_sound,
        "what arrives was not sent"
    );
    assert!(arrived.starts_with(&sent[..sent.len().min(arrived.len())]));
}

/// One input. Its first byte says which of the two it is about.
pub fn talk(data: &[u8]) {
    match data.split_first() {
        Some((mode, data)) if mode % 2 == 0 => strangers_bytes(data),
        Some((_, data)) => records(data),
        None => {}
    }
}
