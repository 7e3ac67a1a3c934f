//! A client's end of a connection, encrypted or not.

use glimmer_tls::{ClientCertificates, Settings, Tls};
use glimmer_transport::stream::{
    ByteStream, LocalStream, Ready, Received, Sent, StreamFaults, StreamListener,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

/// The server's name in its certificate.
const NAME: &str = "cache.example";

/// The server's half of TLS, and the clients'. All messages of a handshake have lengths that do not
/// depend on chance, so that a seed has the same outcome each time.
struct Ends {
    server: Arc<Tls>,
    client: Arc<ClientConfig>,
}

fn ends() -> &'static Ends {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    ENDS.get_or_init(|| make().expect("certificates can be made and loaded"))
}

fn make() -> anyhow::Result<Ends> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let mut params = CertificateParams::new(vec![NAME.into()])?;
    params.serial_number = Some(SerialNumber::from(1_u64));
    let certificate = params.self_signed(&key)?;
    let folder = tempfile::tempdir()?;
    let (chain, key_path) = (folder.path().join("chain"), folder.path().join("key"));
    std::fs::write(&chain, certificate.pem())?;
    std::fs::write(&key_path, key.serialize_pem())?;
    let settings = Settings {
        chain,
        key: Some(key_path),
        ..Settings::default()
    };
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions()?;
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    // A session that is resumed would depend on other scenarios of the process.
    client.resumption = rustls::client::Resumption::disabled();
    Ok(Ends {
        server: Arc::new(Tls::load(settings, usize::MAX)?),
        client: Arc::new(client),
    })
}

/// Encrypts the connections of a listener.
pub fn over(listener: Box<dyn StreamListener>) -> Box<dyn StreamListener> {
    let server = &ends().server;
    server.over(listener, ClientCertificates::AsSet)
}

/// A client's end of a connection.
pub struct ClientStream {
    stream: LocalStream,
    tls: Option<Box<ClientConnection>>,
    /// Records that the stream has yet to take.
    unsent: Vec<u8>,
}

impl ClientStream {
    /// A client's end, which has sent nothing.
    pub fn new(stream: LocalStream, is_encrypted: bool) -> ClientStream {
        let tls = is_encrypted.then(|| {
            let name = ServerName::try_from(NAME).expect("it is a name");
            let config = ends().client.clone();
            let mut tls = ClientConnection::new(config, name).expect("the settings are sound");
            tls.set_buffer_limit(None);
            Box::new(tls)
        });
        ClientStream {
            stream,
            tls,
            unsent: Vec::new(),
        }
    }

    /// Whether records wait to be taken.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub fn ready(&self) -> Ready {
        self.stream.ready()
    }

    pub fn set_faults(&self, faults: StreamFaults) {
        self.stream.set_faults(faults);
    }

    /// Sends bytes, perhaps none. Those of an encrypted connection are all taken.
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        let Some(tls) = &mut self.tls else {
            return self.stream.send(bytes);
        };
        tls.writer().write_all(bytes).expect("it has room");
        match self.flush() {
            true => Sent::All,
            false => Sent::Failed,
        }
    }

    /// Sends what the stream takes. Returns whether the connection goes on.
    fn flush(&mut self) -> bool {
        let Some(tls) = &mut self.tls else {
            return true;
        };
        while tls.wants_write() {
            tls.write_tls(&mut self.unsent)
                .expect("memory takes every byte");
        }
        if self.unsent.is_empty() {
            return true;
        }
        match self.stream.send(&self.unsent) {
            Sent::All => self.unsent.clear(),
            Sent::Part(count) => _ = self.unsent.drain(..count),
            Sent::Failed => return false,
        }
        true
    }

    /// Receives once, as much as the buffer has to spare, and appends what that was.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Result<Received, String> {
        let Some(tls) = &mut self.tls else {
            return Ok(self.stream.receive(into));
        };
        let mut records = Vec::with_capacity(into.capacity() - into.len());
        let received = self.stream.receive(&mut records);
        let mut rest = &records[..];
        while !rest.is_empty() {
            tls.read_tls(&mut rest).map_err(|error| error.to_string())?;
            let state = tls.process_new_packets();
            let state = state.map_err(|error| format!("a record of the server: {error}"))?;
            let start = into.len();
            into.resize(start + state.plaintext_bytes_to_read(), 0);
            let read = tls.reader().read_exact(&mut into[start..]);
            read.map_err(|error| error.to_string())?;
        }
        // An answer to what came, as a part of the handshake is.
        self.flush();
        Ok(received)
    }
}
