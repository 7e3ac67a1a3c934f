//! A user and a password, as each protocol sends them.

use std::{
    env::{self, VarError},
    fmt, fs,
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};

/// The variable that holds the password if no file is named.
pub const PASSWORD_VARIABLE: &str = "GLIMMER_PASSWORD";
/// Length of the longest reply to a login.
const REPLY_BYTES_MAX: usize = 4096;
const LOST: &str = "the connection is lost during the login; a server that encrypts needs --tls";

const HEADER_BYTES: usize = 24;
const SASL_LIST_MECHANISMS: u8 = 0x20;
const SASL_AUTH: u8 = 0x21;
const UNKNOWN_COMMAND: u16 = 0x81;

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    password: String,
}

impl fmt::Debug for Login {
    /// Without the password.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Login").field(&self.user).finish()
    }
}

/// How a protocol takes a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// memcached's text protocol and its meta commands: a write whose value is both.
    Text,
    /// memcached's binary protocol: SASL's mechanism PLAIN.
    Binary,
    /// RESP: `AUTH`.
    Resp,
}

impl Login {
    /// A user whose password is the first line of a file, or in the environment.
    ///
    /// # Errors
    ///
    /// If there is no password, or if user or password cannot be sent.
    pub fn read(user: &str, password_file: Option<&Path>) -> Result<Login> {
        let password = match password_file {
            Some(path) => {
                let shown = path.display();
                let text = fs::read_to_string(path);
                let text = text.with_context(|| format!("--password-file {shown}"))?;
                let line = text.lines().next().unwrap_or_default().to_owned();
                ensure!(
                    !line.is_empty(),
                    "--password-file {shown}: its first line is empty"
                );
                line
            }
            None => match env::var(PASSWORD_VARIABLE) {
                Ok(password) => password,
                Err(VarError::NotPresent) => bail!(
                    "--auth-user needs a password: put it into a file for --password-file, or into \
                     the variable {PASSWORD_VARIABLE}"
                ),
                Err(VarError::NotUnicode(_)) => bail!("{PASSWORD_VARIABLE} is no text (UTF-8)"),
            },
        };
        let is_plain = |text: &str| !text.contains(|c: char| c.is_whitespace() || c.is_control());
        ensure!(
            !user.is_empty() && is_plain(user) && is_plain(&password),
            "a user and a password are words without spaces"
        );
        Ok(Login {
            user: user.to_owned(),
            password,
        })
    }

    /// Logs in on a new connection. A server that wants no login is left as it is.
    ///
    /// # Errors
    ///
    /// If the server refuses, or the connection breaks.
    pub fn say(&self, speech: Speech, stream: &mut (impl Read + Write + ?Sized)) -> Result<()> {
        let Login { user, password } = self;
        let refused = |reply: &str| {
            format!(
                "the server refuses user {user}: {}; check --auth-user and the password",
                reply
            )
        };
        // Each protocol first asks whether a login is wanted. A server without users would store
        // the password for everyone to read, or refuse it.
        match speech {
            Speech::Text => {
                let reply = ask_line(stream, b"version\r\n")?;
                if reply.starts_with("VERSION") {
                    return Ok(());
                }
                let credentials = format!("{user} {password}");
                let head = format!("set login 0 0 {}\r\n", credentials.len());
                let reply = ask_line(stream, format!("{head}{credentials}\r\n").as_bytes())?;
                ensure!(reply == "STORED", refused(&reply));
            }
            // A server that also serves strangers is used as one of them.
            Speech::Resp => {
                if ask_line(stream, b"*1\r\n$4\r\nPING\r\n")? == "+PONG" {
                    return Ok(());
                }
                let words = ["AUTH", user, password];
                let words = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
                let reply = ask_line(stream, format!("*3\r\n{}", words.concat()).as_bytes())?;
                ensure!(reply == "+OK", refused(&reply));
            }
            Speech::Binary => {
                // A server with users closes the connection at any command that is not part of a
                // login, so this asks with one that is.
                let (status, _) = ask_packet(stream, SASL_LIST_MECHANISMS, b"", b"")?;
                if status == UNKNOWN_COMMAND {
                    return Ok(());
                }
                let credentials = format!("\0{user}\0{password}");
                let (status, reply) =
                    ask_packet(stream, SASL_AUTH, b"PLAIN", credentials.as_bytes())?;
                ensure!(status == 0, refused(&reply));
            }
        }
        Ok(())
    }
}

/// Sends a request of the binary protocol. Returns the status of the reply, and its text.
fn ask_packet(
    stream: &mut (impl Read + Write + ?Sized),
    opcode: u8,
    key: &[u8],
    value: &[u8],
) -> Result<(u16, String)> {
    let body = [key, value].concat();
    let mut packet = vec![0x80, opcode, 0, key.len() as u8];
    packet.resize(8, 0);
    packet.extend((body.len() as u32).to_be_bytes());
    packet.resize(HEADER_BYTES, 0);
    stream.write_all(&[packet, body].concat()).context(LOST)?;
    stream.flush().context(LOST)?;
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).context(LOST)?;
    let bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    ensure!(
        bytes as usize <= REPLY_BYTES_MAX,
        "the reply to the login is too long"
    );
    let mut text = vec![0; bytes as usize];
    stream.read_exact(&mut text).context(LOST)?;
    let status = u16::from_be_bytes([header[6], header[7]]);
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

/// Sends a request, and reads one line without its end, byte by byte: nothing that follows it is
/// taken.
fn ask_line(stream: &mut (impl Read + Write + ?Sized), request: &[u8]) -> Result<String> {
    stream.write_all(request).context(LOST)?;
    stream.flush().context(LOST)?;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).context(LOST)?;
        line.push(byte[0]);
        ensure!(
            line.len() <= REPLY_BYTES_MAX,
            "the reply to the login has no end"
        );
    }
    line.truncate(line.len() - 2);
    Ok(String::from_utf8_lossy(&line).escape_debug().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A server that has written its replies before it is asked.
    struct Scripted {
        replies: io::Cursor<Vec<u8>>,
        asked: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.replies.read(room)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a client says to a server that replies like this, and what becomes of it.
    fn said(speech: Speech, replies: &[u8]) -> (Vec<u8>, Result<()>) {
        let login = Login {
            user: "ann".to_owned(),
            password: "secret".to_owned(),
        };
        let mut server = Scripted {
            replies: io::Cursor::new(replies.to_vec()),
            asked: Vec::new(),
        };
        let outcome = login.say(speech, &mut server);
        (server.asked, outcome)
    }

    const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
    /// Which mechanisms there are.
    const QUESTION: [u8; HEADER_BYTES] = {
        let mut packet = [0; HEADER_BYTES];
        (packet[0], packet[1]) = (0x80, 0x20);
        packet
    };

    fn binary_reply(status: u8, text: &[u8]) -> Vec<u8> {
        let mut packet = vec![
            0x81,
            SASL_AUTH,
            0,
            0,
            0,
            0,
            0,
            status,
            0,
            0,
            0,
            text.len() as u8,
        ];
        packet.resize(HEADER_BYTES, 0);
        [&packet, text].concat()
    }

    #[test]
    fn each_protocol_has_its_login() {
        let wanted = b"CLIENT_ERROR unauthenticated\r\n";
        let (asked, outcome) = said(Speech::Text, &[&wanted[..], b"STORED\r\n"].concat());
        outcome.unwrap();
        assert_eq!(asked, b"version\r\nset login 0 0 10\r\nann secret\r\n");
        let wanted = b"-NOAUTH Authentication required.\r\n";
        let (asked, outcome) = said(Speech::Resp, &[&wanted[..], b"+OK\r\n"].concat());
        outcome.unwrap();
        let login = b"*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n";
        assert_eq!(asked, [PING, login].concat());
        let replies = [binary_reply(0, b"PLAIN"), binary_reply(0, b"Authenticated")];
        let (asked, outcome) = said(Speech::Binary, &replies.concat());
        outcome.unwrap();
        let (question, login) = asked.split_at(HEADER_BYTES);
        assert_eq!(question, QUESTION);
        assert_eq!(login[..12], [0x80, 0x21, 0, 5, 0, 0, 0, 0, 0, 0, 0, 16]);
        assert_eq!(login[HEADER_BYTES..], *b"PLAIN\0ann\0secret");
    }

    #[test]
    fn a_server_without_users_never_sees_the_password() {
        let unknown = binary_reply(0x81, b"Unknown command");
        for (speech, reply, question) in [
            (
                Speech::Text,
                &b"VERSION 1.6.45\r\n"[..],
                &b"version\r\n"[..],
            ),
            (Speech::Resp, b"+PONG\r\n", PING),
            (Speech::Binary, &unknown, &QUESTION),
        ] {
            let (asked, outcome) = said(speech, reply);
            outcome.unwrap();
            assert_eq!(asked, question);
        }
    }

    #[test]
    fn a_refusal_names_the_user_and_not_the_password() {
        let text = b"CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR authentication failure\r\n";
        let binary = [
            binary_reply(0, b"PLAIN"),
            binary_reply(0x20, b"Auth failure."),
        ];
        for (speech, reply) in [
            (Speech::Text, text.to_vec()),
            (Speech::Resp, b"-NOAUTH\r\n-WRONGPASS invalid\r\n".to_vec()),
            (Speech::Binary, binary.concat()),
        ] {
            let error = format!("{:#}", said(speech, &reply).1.unwrap_err());
            assert!(error.contains("refuses user ann"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_comes_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "secret\nmore\n").unwrap();
        assert_eq!(Login::read("ann", Some(&file)).unwrap().password, "secret");
        assert!(Login::read("an n", Some(&file)).is_err());
        fs::write(&file, "\n").unwrap();
        let error = Login::read("ann", Some(&file)).unwrap_err().to_string();
        assert!(error.contains("first line is empty"), "{error}");
    }
}
