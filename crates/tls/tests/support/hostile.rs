//! The body of the fuzz target `tls`, which the bounded run of the test suite shares: from bytes of
//! a client to the replies of an encrypted connection.
//!
//! | first byte | what follows is |
//! | --- | --- |
//! | `strangers_bytes` | all that a client says |
//! | `records` | what a sound client says after its handshake, with bytes of others in between |
//! | `keyholders_records` | records that are encrypted with the client's keys, and hold anything |
//! | `changed_handshake` | changes to what a sound client says in its handshake |

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use glimmer_tls::{ClientCertificates, Settings, Tls, TlsStream};
use glimmer_transport::stream::{
    ByteStream, Handshaking, LocalStream, Received, Sent, StreamFaults,
};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::pki_types::ServerName;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionTrafficSecrets, ProtocolVersion,
    RootCertStore, version,
};

const NAME: &str = "cache.example";

/// Times that each end has its turn. Nothing takes as many.
const TURNS_MAX: usize = 10_000;

struct Ends {
    server: Tls,
    /// For TLS 1.3 and for TLS 1.2.
    clients: [Arc<ClientConfig>; 2],
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
        let client = |version| {
            let mut provider = rustls::crypto::ring::default_provider();
            provider.cipher_suites.retain(|suite| {
                let has_aes = [
                    CipherSuite::TLS13_AES_128_GCM_SHA256,
                    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                ];
                has_aes.contains(&suite.suite())
            });
            let client = ClientConfig::builder_with_provider(Arc::new(provider));
            let client = client.with_protocol_versions(&[version]).unwrap();
            let client = client.with_root_certificates(roots.clone());
            let mut client = client.with_no_client_auth();
            client.resumption = rustls::client::Resumption::disabled();
            client.enable_secret_extraction = true;
            Arc::new(client)
        };
        Ends {
            server: Tls::load(settings, 1 << 20).unwrap(),
            clients: [client(&version::TLS13), client(&version::TLS12)],
        }
    })
}

/// A client that has said nothing.
fn client(is_12: bool) -> ClientConnection {
    let name = ServerName::try_from(NAME).unwrap();
    ClientConnection::new(ends().clients[usize::from(is_12)].clone(), name).unwrap()
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

/// Has both ends shake hands, with what the client sends changed on its way. Returns whether they
/// come to agree.
fn shake(
    server: &mut TlsStream,
    client: &mut ClientConnection,
    far: &mut LocalStream,
    mut change: impl FnMut(&mut Vec<u8>),
) -> bool {
    for _ in 0..TURNS_MAX {
        let mut out = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut out).unwrap();
        }
        change(&mut out);
        far.send(&out);
        let standing = server.handshake();
        let mut received = Vec::with_capacity(1 << 16);
        far.receive(&mut received);
        let mut rest = &received[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        let is_over = !client.is_handshaking() && !client.wants_write();
        match standing {
            Handshaking::Failed => return false,
            Handshaking::Done if is_over => return true,
            // Something is missing of what the client has sent, and it waits.
            Handshaking::Waits if out.is_empty() && received.is_empty() => return false,
            _ => {}
        }
    }
    panic!("they do not come to an end");
}

/// What a client says after its handshake: each piece of the input begins with a byte that says
/// what it is, and one with its length.
fn records(mut data: &[u8], is_12: bool) {
    let (mut server, mut far) = connected();
    let mut client = client(is_12);
    assert!(shake(&mut server, &mut client, &mut far, |_| {}));
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
            // TLS 1.2 has no such thing.
            1 => drop(client.refresh_traffic_keys()),
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

/// The keys of a client: encrypts records that it would not make.
struct Keys {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    is_12: bool,
}

impl Keys {
    fn of(client: ClientConnection) -> Keys {
        let is_12 = client.protocol_version() == Some(ProtocolVersion::TLSv1_2);
        let (sequence, secrets) = client.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else {
            panic!("the client offers nothing else")
        };
        Keys {
            key: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key.as_ref()).unwrap()),
            iv: iv.as_ref().try_into().unwrap(),
            sequence,
            is_12,
        }
    }

    /// A record of this type with this content and, in TLS 1.3, zeros after it.
    fn seal(&mut self, kind: u8, content: &[u8], zeros: usize) -> Vec<u8> {
        let mut nonce = self.iv;
        for (byte, of_sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of_sequence;
        }
        let mut inner = content.to_vec();
        let (outer, explicit): (u8, &[u8]) = match self.is_12 {
            true => (kind, &nonce[4..]),
            false => {
                inner.push(kind);
                inner.resize(inner.len() + zeros, 0);
                (23, &[])
            }
        };
        let body = (explicit.len() + inner.len() + 16) as u16;
        let header = [outer, 3, 3, (body >> 8) as u8, body as u8];
        let mut additional = header.to_vec();
        if self.is_12 {
            additional = self.sequence.to_be_bytes().to_vec();
            additional.extend([outer, 3, 3]);
            additional.extend((inner.len() as u16).to_be_bytes());
        }
        let record = [&header[..], explicit].concat();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (key, additional) = (&self.key, Aad::from(additional));
        key.seal_in_place_append_tag(nonce, additional, &mut inner)
            .unwrap();
        self.sequence += 1;
        [record, inner].concat()
    }
}

/// Records of a client that keeps to nothing: each has a type, how often its content is repeated,
/// how many zeros follow it, what is missing at its end, and a content.
fn keyholders_records(mut data: &[u8], is_12: bool) {
    let (mut server, mut far) = connected();
    let mut client = client(is_12);
    assert!(shake(&mut server, &mut client, &mut far, |_| {}));
    let mut keys = Keys::of(client);
    // The data of records that are sound, until one is not.
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    let (mut is_sound, mut is_allowed, mut has_ended) = (true, true, false);
    while let [kind, times, zeros, missing, length, rest @ ..] = data {
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        let content = piece.repeat(1 + usize::from(*times));
        // Most are data. In TLS 1.3, a type of 0 would be one zero more after the content.
        let kind = if *kind < 128 { 23 } else { 1 + kind % 32 };
        let mut record = keys.seal(kind, &content, usize::from(*zeros) * 8);
        if missing % 16 == 15 {
            record.truncate(record.len().saturating_sub(usize::from(*missing)));
            is_sound = false;
            is_allowed = false;
        }
        // Data may follow an alert that is only a warning.
        let is_warning = match content[..] {
            [_, 90] => kind == 21,
            [1, what] => kind == 21 && is_12 && what != 0,
            _ => false,
        };
        is_sound &= kind == 23;
        is_allowed &= is_warning || kind == 23 && content.len() <= 1 << 14;
        if is_allowed && kind == 23 {
            sent.extend_from_slice(&content);
        }
        // RFC 8446, §5.2, has fewer zeros than the server takes.
        is_sound &= is_allowed && record.len() <= 5 + (1 << 14) + 256;
        far.send(&record);
        // A little at a time, or all at once.
        let room = if zeros % 2 == 0 { 1 << 15 } else { 999 };
        loop {
            let mut buffer = Vec::with_capacity(room);
            match server.receive(&mut buffer) {
                Received::Full(count) => assert_eq!(count, buffer.len()),
                Received::Drained(count) => {
                    assert_eq!(count, buffer.len());
                    arrived.extend(buffer);
                    break;
                }
                Received::Ended => {
                    has_ended = true;
                    break;
                }
            }
            arrived.extend(buffer);
        }
        if has_ended || server.send(b"END\r\n") == Sent::Failed {
            break;
        }
        far.receive(&mut Vec::with_capacity(1 << 16));
    }
    assert!(sent.starts_with(&arrived), "what arrives was not sent");
    if is_sound {
        assert!(!has_ended, "a sound record ends the connection");
        assert_eq!(arrived.len(), sent.len(), "something is lost");
    }
}

/// A handshake, of which the client's messages are changed: each byte at a place becomes another.
/// If both agree in the end, nothing was changed that counts.
fn changed_handshake(data: &[u8], is_12: bool) {
    let (mut server, mut far) = connected();
    let mut client = client(is_12);
    let mut at = 0;
    let agree = shake(&mut server, &mut client, &mut far, |out| {
        for change in data.chunks_exact(4) {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
            if let Some(byte) = place.checked_sub(at).and_then(|place| out.get_mut(place)) {
                *byte ^= change[2];
            }
            if change[3] == 255 {
                out.truncate(out.len() / 2);
            }
        }
        at += out.len();
    });
    if agree {
        server.send(b"END\r\n");
        let mut received = Vec::with_capacity(1 << 16);
        far.receive(&mut received);
        let mut rest = &received[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().unwrap();
        }
        let mut reply = Vec::new();
        let _ = client.reader().read_to_end(&mut reply);
        assert_eq!(reply, b"END\r\n");
    }
}

/// One input. Its first byte says what it is about.
pub fn talk(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let is_12 = mode & 4 != 0;
    match mode % 4 {
        0 => strangers_bytes(data),
        1 => records(data, is_12),
        2 => keyholders_records(data, is_12),
        _ => changed_handshake(data, is_12),
    }
}
