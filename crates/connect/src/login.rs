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
        match speech {
            Speech::Text => {
                // A server without users would store the password for everyone to read.
                let reply = ask_line(stream, b"version\r\n")?;
                if reply.starts_with("VERSION") {
                    return Ok(());
                }
                let credentials = format!("{user} {password}");
                let head = format!("set login 0 0 {}\r\n", credentials.len());
                let reply = ask_line(stream, format!("{head}{credentials}\r\n").as_bytes())?;
                ensure!(reply == "STORED", refused(&reply));
            }
            Speech::Resp => {
                let words = ["AUTH", user, password];
                let words = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
                let reply = ask_line(stream, format!("*3\r\n{}", words.concat()).as_bytes())?;
                let is_unwanted = reply.contains("without any password configured");
                ensure!(reply == "+OK" || is_unwanted, refused(&reply));
            }
            Speech::Binary => {
                let mechanism = b"PLAIN";
                let credentials = format!("\0{user}\0{password}");
                let body = [mechanism, credentials.as_bytes()].concat();
                let mut packet = vec![0x80, SASL_AUTH, 0, mechanism.len() as u8];
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
                let reply = String::from_utf8_lossy(&text).into_owned();
                ensure!(matches!(status, 0 | UNKNOWN_COMMAND), refused(&reply));
            }
        }
        Ok(())
    }
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
        let (asked, outcome) = said(Speech::Resp, b"+OK\r\n");
        outcome.unwrap();
        assert_eq!(asked, b"*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$6\r\nsecret\r\n");
        let (asked, outcome) = said(Speech::Binary, &binary_reply(0, b"Authenticated"));
        outcome.unwrap();
        assert_eq!(asked[..12], [0x80, 0x21, 0, 5, 0, 0, 0, 0, 0, 0, 0, 16]);
        assert_eq!(asked[HEADER_BYTES..], *b"PLAIN\0ann\0secret");
    }

    #[test]
    fn a_server_without_users_never_sees_the_password() {
        let (asked, outcome) = said(Speech::Text, b"VERSION 1.6.45\r\n");
        outcome.unwrap();
        assert_eq!(asked, b"version\r\n");
    }

    #[test]
    fn a_refusal_names_the_user_and_not_the_password() {
        let text = b"CLIENT_ERROR unauthenticated\r\nCLIENT_ERROR authentication failure\r\n";
        for (speech, reply) in [
            (Speech::Text, text.to_vec()),
            (Speech::Resp, b"-WRONGPASS invalid\r\n".to_vec()),
            (Speech::Binary, binary_reply(0x20, b"Auth failure.")),
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
