//! How clients log in, in the text protocol.

use crate::server::{PASSWORD, USER};

/// What a login is answered.
const ANSWER: &[u8] = b"STORED\r\n";

/// Appends a login that the server admits.
pub fn write_login(out: &mut Vec<u8>) {
    let login = format!("{USER} {PASSWORD}");
    let line = format!("set login 0 0 {}\r\n{login}\r\n", login.len());
    out.extend_from_slice(line.as_bytes());
}

/// The length of its answer, if that is complete. Fails if the server does not admit the client.
pub fn read_login(bytes: &[u8]) -> Result<Option<usize>, String> {
    let expected = &ANSWER[..ANSWER.len().min(bytes.len())];
    match bytes.starts_with(expected) {
        true => Ok((expected.len() == ANSWER.len()).then_some(ANSWER.len())),
        false => Err(format!("a login was answered {}", bytes.escape_ascii())),
    }
}
