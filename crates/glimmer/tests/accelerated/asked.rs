//! A read over memcached's UDP protocol, and its reply.

use crate::hammer::Random;
use crate::keys::{KEYS, name, value_of};

/// Bytes of the header of memcached's datagrams.
const HEADER_BYTES: usize = 8;

/// How a key is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Get,
    Gets,
    Binary,
}

/// One read that waits for its reply.
pub struct Asked {
    pub key: usize,
    id: u16,
    form: Form,
    /// The datagrams of the reply, as far as they have come.
    parts: Vec<Option<Vec<u8>>>,
}

impl Asked {
    pub fn draw(random: &mut Random, id: u16) -> Asked {
        let forms = [Form::Get, Form::Gets, Form::Binary];
        Asked {
            key: random.below(KEYS as u64) as usize,
            id,
            form: forms[random.below(3) as usize],
            parts: Vec::new(),
        }
    }

    /// A binary read of a key.
    #[allow(dead_code, reason = "tests of a server behind a circuit use it")]
    pub fn binary(key: usize, id: u16) -> Asked {
        Asked {
            key,
            id,
            form: Form::Binary,
            parts: Vec::new(),
        }
    }

    /// The datagram that asks.
    pub fn request(&self) -> Vec<u8> {
        let name = name(self.key);
        let mut request = [&self.id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
        match self.form {
            Form::Get => request.extend(format!("get {name}\r\n").bytes()),
            Form::Gets => request.extend(format!("gets {name}\r\n").bytes()),
            Form::Binary => {
                request.extend([0x80, 0, 0, name.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
                request.push(name.len() as u8);
                request.extend([0; 12]);
                request.extend(name.bytes());
            }
        }
        request
    }

    /// Takes a datagram, if it is one of the reply. Returns whether it is.
    pub fn take(&mut self, datagram: &[u8]) -> bool {
        let word = |at| u16::from_be_bytes([datagram[at], datagram[at + 1]]);
        if word(0) != self.id {
            return false;
        }
        self.parts.resize(word(4).into(), None);
        self.parts[usize::from(word(2))] = Some(datagram[HEADER_BYTES..].to_vec());
        true
    }

    /// Whether all datagrams of the reply have come.
    pub fn is_complete(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(Option::is_some)
    }

    /// The value in the reply, if there is one.
    pub fn value(&self) -> Option<Vec<u8>> {
        let reply: Vec<u8> = self.parts.iter().flatten().flatten().copied().collect();
        value_of(self.form == Form::Binary, &name(self.key), &reply)
    }
}
