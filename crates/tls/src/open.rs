//! A connection whose handshake is over: its keys, and records that carry no data.

use glimmer_base::limits::TLS_KEY_UPDATES_MAX;

use crate::handshake::Traffic;
use crate::kept::Kept;
use crate::record::{self, Fault, Opener, Sealer, kind};

/// The message of TLS 1.3 that its sender changes its key, and whether the other end is to do so as
/// well (RFC 8446, §4.6.3).
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];

/// The level of an alert after which the connection may go on.
pub(crate) const WARNING: u8 = 1;
/// The alert of an end that sends no more.
pub(crate) const CLOSE_NOTIFY: u8 = 0;
const USER_CANCELED: u8 = 90;

/// A connection whose handshake is over.
pub(crate) struct Open {
    pub traffic: Traffic,
    pub kept: Kept,
    /// The peer has asked for a new key of this end.
    pub owes_key: bool,
    /// Times that the peer has changed its key since it last sent data.
    pub key_updates: u32,
    pub client: Option<String>,
}

/// What a record was, beside data.
pub(crate) enum Control {
    Nothing,
    /// The peer sends no more.
    Closed,
}

impl Control {
    pub fn is_end(&self) -> bool {
        matches!(self, Control::Closed)
    }
}

impl Open {
    /// Decrypts the records that lie in a buffer from `start` on, where they lie, and keeps what is
    /// incomplete. Returns whether the peer sends no more.
    pub fn decrypt(&mut self, buffer: &mut Vec<u8>, start: usize) -> Result<bool, Fault> {
        let (mut out, mut at) = (start, start);
        let mut is_end = false;
        while !is_end {
            let Some(bytes) = record::record_bytes(&buffer[at..])? else {
                break;
            };
            let Some(records) = buffer.get_mut(out..at + bytes) else {
                break;
            };
            let (record_kind, length) = self.traffic.opener.open(records, at - out)?;
            at += bytes;
            match record_kind {
                kind::DATA => {
                    out += length;
                    if length > 0 {
                        self.key_updates = 0;
                    }
                }
                _ => {
                    let payload = records[..length].to_vec();
                    is_end = self.control(record_kind, &payload)?.is_end();
                }
            }
        }
        if !is_end {
            self.kept.keep(&buffer[at..]);
        }
        buffer.truncate(out);
        Ok(is_end)
    }

    /// Takes a record that carries no data.
    pub fn control(&mut self, record_kind: u8, payload: &[u8]) -> Result<Control, Fault> {
        match (record_kind, payload) {
            (kind::ALERT, [_, CLOSE_NOTIFY]) => Ok(Control::Closed),
            (kind::ALERT, [WARNING, _]) if self.traffic.kernel.is_none() => Ok(Control::Nothing),
            (kind::ALERT, [_, USER_CANCELED]) => Ok(Control::Nothing),
            // The peer has failed: it takes nothing any more.
            (kind::ALERT, [_, _]) => Ok(Control::Closed),
            (kind::HANDSHAKE, [message @ .., asks]) if *message == KEY_UPDATE && *asks <= 1 => {
                let kernel = self.traffic.kernel.as_mut();
                let kernel = kernel.ok_or(Fault::UnexpectedMessage)?;
                self.key_updates += 1;
                if self.key_updates > TLS_KEY_UPDATES_MAX {
                    return Err(Fault::UnexpectedMessage);
                }
                let secrets = kernel.update_rx_secret();
                let secrets = secrets.map_err(|_| Fault::InternalError)?;
                self.traffic.opener = Opener::new(secrets, true).ok_or(Fault::InternalError)?;
                self.owes_key |= *asks == 1;
                Ok(Control::Nothing)
            }
            _ => Err(Fault::UnexpectedMessage),
        }
    }

    /// Changes the key of this end if that is due. None if a connection whose key is worn cannot.
    pub fn renew_key(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let is_worn = self.traffic.sealer.is_worn();
        if !is_worn && !self.owes_key {
            return Some(());
        }
        let kernel = self.traffic.kernel.as_mut()?;
        self.owes_key = false;
        let [a, b, c, d] = KEY_UPDATE;
        let sealer = &mut self.traffic.sealer;
        sealer.seal_bytes(kind::HANDSHAKE, &[a, b, c, d, 0], out);
        let secrets = kernel.update_tx_secret().ok()?;
        self.traffic.sealer = Sealer::new(secrets, true)?;
        Some(())
    }
}
