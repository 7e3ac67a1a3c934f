//! From a connection's first byte to its traffic keys.

use std::sync::Arc;

use glimmer_base::limits::TLS_HANDSHAKE_BYTES_MAX;
use rustls::kernel::KernelConnection;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion, ServerConfig};

use crate::record::{self, Opener, Sealer, kind};
use crate::x509::Certificate;

/// Bytes that rustls is reckoned to hold for a handshake, beside those that are received: keys, the
/// hash of what was said, and what it is about to say.
const HANDSHAKE_BYTES: usize = 4 << 10;

/// A handshake that is under way.
pub(crate) struct Handshake {
    connection: UnbufferedServerConnection,
    /// What was received and is not taken.
    pub incoming: Vec<u8>,
    /// Bytes of that which rustls has been shown. It is shown one record after another, so that
    /// what follows the handshake is left to the traffic keys.
    shown: usize,
}

/// What comes of a handshake.
pub(crate) struct Traffic {
    pub opener: Opener,
    pub sealer: Sealer,
    /// What derives the next keys, in TLS 1.3.
    pub kernel: Option<Box<KernelConnection<ServerConnectionData>>>,
}

/// How a handshake stands.
pub(crate) enum Standing {
    /// The client has to say more.
    Waits(Box<Handshake>),
    /// It is over.
    Done(Box<Done>),
    /// It has failed.
    Failed,
}

/// A handshake that ended well.
pub(crate) struct Done {
    pub traffic: Traffic,
    /// The first records after the handshake.
    pub rest: Vec<u8>,
    /// Whether it resumed an earlier session.
    pub is_resumed: bool,
    /// The common name of the client's certificate, which is verified.
    pub client: Option<String>,
}

/// What one call of rustls came to.
enum Step {
    Encoded,
    Transmitted,
    Blocked,
    Over,
    Failed,
}

impl Handshake {
    /// A connection that has said nothing.
    pub fn new(config: Arc<ServerConfig>) -> Result<Handshake, rustls::Error> {
        Ok(Handshake {
            connection: UnbufferedServerConnection::new(config)?,
            incoming: Vec::new(),
            shown: 0,
        })
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of::<UnbufferedServerConnection>() + HANDSHAKE_BYTES + self.incoming.capacity()
    }

    /// Takes what has been received, and appends what is to be sent.
    pub fn advance(mut self: Box<Self>, out: &mut Vec<u8>) -> Standing {
        if self.incoming.len() > TLS_HANDSHAKE_BYTES_MAX {
            return Standing::Failed;
        }
        loop {
            match self.step(out) {
                Step::Encoded | Step::Transmitted => {}
                Step::Over => return self.finish(),
                Step::Blocked => match self.show_more() {
                    Some(true) => {}
                    Some(false) => return Standing::Waits(self),
                    None => return Standing::Failed,
                },
                Step::Failed => {
                    // What says so to the client is yet to be encoded, after what has been said
                    // before. No more is asked for: rustls would look at what follows, and fail
                    // again.
                    while self.connection.wants_write() && matches!(self.step(out), Step::Encoded) {
                    }
                    return Standing::Failed;
                }
            }
        }
    }

    /// Shows rustls one record more. Returns whether there is one; none if what comes is no TLS.
    fn show_more(&mut self) -> Option<bool> {
        let unseen = &self.incoming[self.shown..];
        let whole = record::record_bytes(unseen).ok()?;
        let is_there = whole.filter(|&bytes| bytes <= unseen.len());
        // Something else need not arrive as a whole.
        let is_tls = unseen.first().is_none_or(|&kind| kind::ANY.contains(&kind));
        self.shown += is_there.unwrap_or(0);
        (is_there.is_some() || is_tls).then_some(is_there.is_some())
    }

    fn step(&mut self, out: &mut Vec<u8>) -> Step {
        let incoming = &mut self.incoming[..self.shown];
        let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(incoming);
        let step = match state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                encode(&mut |into| data.encode(into), out);
                Step::Encoded
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Step::Transmitted
            }
            Ok(ConnectionState::WriteTraffic(_)) => Step::Over,
            Ok(ConnectionState::BlockedHandshake) => Step::Blocked,
            Ok(_) | Err(_) => Step::Failed,
        };
        self.incoming.drain(..discard);
        self.shown -= discard;
        match step {
            Step::Over if self.connection.is_handshaking() => Step::Blocked,
            step => step,
        }
    }

    fn finish(self: Box<Self>) -> Standing {
        let handshake = *self;
        let is_resumed = handshake.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let certificates = handshake.connection.peer_certificates();
        let client = certificates.and_then(|chain| client_name(chain.first()?));
        if handshake.shown > 0 {
            return Standing::Failed;
        }
        let made = handshake.connection.dangerous_into_kernel_connection();
        let (secrets, kernel) = match made {
            Ok(made) => made,
            Err(_) => return Standing::Failed,
        };
        let is_13 = kernel.protocol_version() == ProtocolVersion::TLSv1_3;
        let opener = Opener::new(secrets.rx, is_13);
        let Some((opener, sealer)) = opener.zip(Sealer::new(secrets.tx, is_13)) else {
            return Standing::Failed;
        };
        Standing::Done(Box::new(Done {
            traffic: Traffic {
                opener,
                sealer,
                kernel: is_13.then(|| Box::new(kernel)),
            },
            rest: handshake.incoming,
            is_resumed,
            client,
        }))
    }
}

/// The common name of a certificate, as text.
fn client_name(der: &[u8]) -> Option<String> {
    let name = Certificate::read(der)?.common_name?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Appends what rustls encodes.
fn encode(encode: &mut dyn FnMut(&mut [u8]) -> Result<usize, EncodeError>, out: &mut Vec<u8>) {
    let start = out.len();
    if let Err(EncodeError::InsufficientSize(error)) = encode(&mut []) {
        out.resize(start + error.required_size, 0);
        let written = encode(&mut out[start..]).unwrap_or(0);
        out.truncate(start + written);
    }
}
