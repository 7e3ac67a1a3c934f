//! Records: encrypted from slices, decrypted in place (RFC 8446, §5; RFC 5246, §6.2, with RFC 5288
//! and RFC 7905).
//!
//! The keys come from rustls, the cryptography from the library that rustls uses as well. Nonces
//! are the initial vector and the number of the record, so none is used twice with a key.

use std::io::IoSlice;

use glimmer_base::limits::{TLS_KEY_BLOCKS_MAX, TLS_RECORD_BYTES_MAX};
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

/// Bytes before each record: its type, its version, and how many bytes follow.
pub(crate) const HEADER_BYTES: usize = 5;

/// Most bytes that follow a header: TLS 1.2 allows more than TLS 1.3.
pub(crate) const BODY_BYTES_MAX: usize = TLS_RECORD_BYTES_MAX + 2_048;

/// Most bytes by which a record is longer than what it carries.
pub(crate) const OVERHEAD_BYTES: usize = HEADER_BYTES + EXPLICIT_NONCE_BYTES + TAG_BYTES;

const TAG_BYTES: usize = 16;

/// Bytes of the nonce that a record of TLS 1.2 with AES-GCM carries.
const EXPLICIT_NONCE_BYTES: usize = 8;

/// What a record carries.
pub(crate) mod kind {
    pub const ANY: std::ops::RangeInclusive<u8> = 20..=23;
    pub const ALERT: u8 = 21;
    pub const HANDSHAKE: u8 = 22;
    pub const DATA: u8 = 23;
}

/// Why a record is wrong, as an alert says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    UnexpectedMessage = 10,
    BadRecordMac = 20,
    RecordOverflow = 22,
    DecodeError = 50,
    InternalError = 80,
}

/// How records of a connection are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// TLS 1.3: the type is encrypted, after what is carried.
    Tls13,
    /// TLS 1.2 with AES-GCM: a part of the nonce comes first.
    Tls12Gcm,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12ChaCha,
}

/// The keys of one direction.
struct Keys {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    /// The number of the next record.
    sequence: u64,
    layout: Layout,
}

impl Keys {
    fn new((sequence, secrets): (u64, ConnectionTrafficSecrets), is_13: bool) -> Option<Keys> {
        use ConnectionTrafficSecrets as Secrets;
        let (algorithm, key, iv) = match &secrets {
            Secrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            Secrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            Secrets::Chacha20Poly1305 { key, iv } => (&aead::CHACHA20_POLY1305, key, iv),
            _ => return None,
        };
        let layout = match secrets {
            _ if is_13 => Layout::Tls13,
            Secrets::Chacha20Poly1305 { .. } => Layout::Tls12ChaCha,
            _ => Layout::Tls12Gcm,
        };
        Some(Keys {
            key: LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?),
            iv: iv.as_ref().try_into().ok()?,
            sequence,
            layout,
        })
    }

    /// The nonce of the next record.
    #[inline]
    fn nonce(&self) -> [u8; aead::NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, of_sequence) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of_sequence;
        }
        nonce
    }

    /// What is authenticated beside what is carried, and its length.
    #[inline]
    fn additional(&self, header: [u8; HEADER_BYTES], carried: usize) -> ([u8; 13], usize) {
        let mut bytes = [0; 13];
        match self.layout {
            Layout::Tls13 => {
                bytes[..HEADER_BYTES].copy_from_slice(&header);
                (bytes, HEADER_BYTES)
            }
            Layout::Tls12Gcm | Layout::Tls12ChaCha => {
                bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
                bytes[8..11].copy_from_slice(&header[..3]);
                bytes[11..].copy_from_slice(&(carried as u16).to_be_bytes());
                (bytes, 13)
            }
        }
    }
}

/// How many bytes the record has that begins here, with its header; none if the header is not there
/// as a whole. A fault if it is none.
#[inline]
pub(crate) fn record_bytes(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    if !kind::ANY.contains(&header[0]) || header[1] != 3 {
        return Err(Fault::UnexpectedMessage);
    }
    let body = usize::from(u16::from_be_bytes([header[3], header[4]]));
    match body <= BODY_BYTES_MAX {
        true => Ok(Some(HEADER_BYTES + body)),
        false => Err(Fault::RecordOverflow),
    }
}

/// Decrypts what a peer sends.
pub(crate) struct Opener(Keys);

impl Opener {
    /// The keys of one direction, from a record of this number on.
    pub fn new(secrets: (u64, ConnectionTrafficSecrets), is_13: bool) -> Option<Opener> {
        Keys::new(secrets, is_13).map(Opener)
    }

    /// Decrypts the record from `at` to the end of `bytes`, to their beginning. Returns its
    /// type, and how many bytes it carried.
    pub fn open(&mut self, bytes: &mut [u8], at: usize) -> Result<(u8, usize), Fault> {
        let keys = &mut self.0;
        let header = *bytes[at..].first_chunk().ok_or(Fault::DecodeError)?;
        let body_at = at + HEADER_BYTES;
        let mut nonce = keys.nonce();
        let cipher_at = match keys.layout {
            Layout::Tls12Gcm => {
                let explicit = bytes[body_at..].first_chunk::<EXPLICIT_NONCE_BYTES>();
                nonce[4..].copy_from_slice(explicit.ok_or(Fault::BadRecordMac)?);
                body_at + EXPLICIT_NONCE_BYTES
            }
            Layout::Tls13 if header[0] != kind::DATA => return Err(Fault::UnexpectedMessage),
            Layout::Tls13 | Layout::Tls12ChaCha => body_at,
        };
        let carried = (bytes.len() - cipher_at).checked_sub(TAG_BYTES);
        let carried = carried.ok_or(Fault::BadRecordMac)?;
        let (additional, length) = keys.additional(header, carried);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let additional = Aad::from(&additional[..length]);
        let opened = keys.key.open_within(nonce, additional, bytes, cipher_at..);
        let plain = opened.map_err(|_| Fault::BadRecordMac)?;
        keys.sequence += 1;
        let (kind, length) = match keys.layout {
            Layout::Tls13 => {
                // Padding of zeros may follow the type.
                let type_at = plain.iter().rposition(|&byte| byte != 0);
                let type_at = type_at.ok_or(Fault::UnexpectedMessage)?;
                (plain[type_at], type_at)
            }
            _ => (header[0], plain.len()),
        };
        match length <= TLS_RECORD_BYTES_MAX {
            true => Ok((kind, length)),
            false => Err(Fault::RecordOverflow),
        }
    }
}

/// Encrypts what is sent to a peer.
pub(crate) struct Sealer {
    keys: Keys,
    /// Blocks of the cipher that its key was used for.
    blocks: u64,
}

impl Sealer {
    /// The keys of one direction, from a record of this number on.
    pub fn new(secrets: (u64, ConnectionTrafficSecrets), is_13: bool) -> Option<Sealer> {
        let keys = Keys::new(secrets, is_13)?;
        Some(Sealer { keys, blocks: 0 })
    }

    /// Whether the key was used for as much as one key may be.
    #[inline]
    pub fn is_worn(&self) -> bool {
        self.blocks >= TLS_KEY_BLOCKS_MAX
    }

    /// Appends a record with the next `length` bytes of these slices.
    pub fn seal(&mut self, kind: u8, from: &mut Slices<'_>, length: usize, into: &mut Vec<u8>) {
        debug_assert!(length <= TLS_RECORD_BYTES_MAX);
        let keys = &mut self.keys;
        let nonce = keys.nonce();
        let (outer, extra) = match keys.layout {
            Layout::Tls13 => (kind::DATA, 1),
            Layout::Tls12Gcm => (kind, EXPLICIT_NONCE_BYTES),
            Layout::Tls12ChaCha => (kind, 0),
        };
        let body = (length + extra + TAG_BYTES) as u16;
        let header = [outer, 3, 3, (body >> 8) as u8, body as u8];
        into.extend_from_slice(&header);
        if keys.layout == Layout::Tls12Gcm {
            into.extend_from_slice(&nonce[4..]);
        }
        let carried_at = into.len();
        from.take(length, into);
        if keys.layout == Layout::Tls13 {
            into.push(kind);
        }
        let (additional, additional_length) = keys.additional(header, length);
        let tag = keys.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(&additional[..additional_length]),
            &mut into[carried_at..],
        );
        into.extend_from_slice(tag.expect("a record is not too long").as_ref());
        keys.sequence += 1;
        self.blocks += 2 + length as u64 / 16;
    }

    /// Appends a record with these few bytes.
    pub fn seal_bytes(&mut self, kind: u8, bytes: &[u8], into: &mut Vec<u8>) {
        let parts = [IoSlice::new(bytes)];
        self.seal(kind, &mut Slices::new(&parts), bytes.len(), into);
    }
}

/// The bytes of several slices, taken from the first on.
pub(crate) struct Slices<'a> {
    parts: &'a [IoSlice<'a>],
    /// Bytes of the first part that are taken.
    taken: usize,
}

impl<'a> Slices<'a> {
    pub fn new(parts: &'a [IoSlice<'a>]) -> Slices<'a> {
        Slices { parts, taken: 0 }
    }

    /// Hands `count` bytes over, a piece at a time.
    fn each(&mut self, mut count: usize, mut hand: impl FnMut(&[u8])) {
        while count > 0 {
            let Some((first, rest)) = self.parts.split_first() else {
                return;
            };
            let piece = &first[self.taken..];
            let piece = &piece[..piece.len().min(count)];
            hand(piece);
            count -= piece.len();
            self.taken += piece.len();
            if self.taken == first.len() {
                (self.parts, self.taken) = (rest, 0);
            }
        }
    }

    /// Passes over bytes.
    pub fn skip(&mut self, count: usize) {
        self.each(count, |_| {});
    }

    fn take(&mut self, count: usize, into: &mut Vec<u8>) {
        self.each(count, |piece| into.extend_from_slice(piece));
    }
}
