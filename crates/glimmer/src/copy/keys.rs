//! The keys of a server: listed at once, and kept in a file until their turn comes.
//!
//! memcached's crawler waits for its client while it lists, serves no other listing meanwhile, and
//! gives the client up after some minutes. So the listing is read as fast as it comes.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};
use std::{env, process, thread};

use anyhow::{Context, Result, bail};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::shown;
use glimmer_connect::Link;
use glimmer_proto::meta::base64;

/// How long a server may be busy with another listing.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Bytes of a key in base64, and what follows it.
const LINE_BYTES_MAX: usize = 2 * KEY_BYTES_MAX;

/// A key in the words of meta commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The key, or its base64.
    pub text: Vec<u8>,
    pub is_base64: bool,
}

impl Key {
    /// The key after `mg` in a line of `mgdump`.
    fn of_mgdump(line: &[u8]) -> Option<Key> {
        let text = line.strip_prefix(b"mg ")?;
        let (text, is_base64) = match text.strip_suffix(b" b") {
            Some(text) => (text, true),
            None => (text, false),
        };
        (!text.is_empty()).then(|| Key {
            text: text.to_vec(),
            is_base64,
        })
    }

    /// The key after `key=` in a line of `metadump`.
    fn of_metadump(line: &[u8]) -> Option<Key> {
        let text = line.strip_prefix(b"key=")?;
        let end = text.iter().position(|&byte| byte == b' ')?;
        let key = shown::read(&text[..end]).filter(|key| !key.is_empty())?;
        let is_base64 = !shown::is_visible(&key);
        let text = if is_base64 {
            let mut text = Vec::new();
            base64::encode(&key, &mut text);
            text
        } else {
            key
        };
        Some(Key { text, is_base64 })
    }

    /// Whether a command can name it: base64 makes keys of more than 187 bytes too long.
    pub fn is_nameable(&self) -> bool {
        self.text.len() <= KEY_BYTES_MAX
    }

    /// The flag that belongs to it in a command.
    pub fn flag(&self) -> &'static [u8] {
        if self.is_base64 { b" b" } else { b"" }
    }
}

/// How a server lists its keys.
struct Listing {
    command: &'static str,
    end: &'static [u8],
    key: fn(&[u8]) -> Option<Key>,
}

/// The first costs less. memcached has it since 1.6.19.
const LISTINGS: [Listing; 2] = [
    Listing {
        command: "lru_crawler mgdump all",
        end: b"EN",
        key: Key::of_mgdump,
    },
    Listing {
        command: "lru_crawler metadump all",
        end: b"END",
        key: Key::of_metadump,
    },
];

/// All keys of a server, at one moment.
pub struct Keys {
    file: BufReader<File>,
    /// How many there are.
    pub count: u64,
}

impl Keys {
    /// Has the server list its keys.
    ///
    /// # Errors
    ///
    /// If the server cannot list them or does not permit it, or if there is no room for them.
    pub fn of(server: &mut Link) -> Result<Keys> {
        let mut line = Vec::new();
        for listing in &LISTINGS {
            if begin(server, listing.command, &mut line)? {
                return Keys::read(server, listing, line);
            }
        }
        bail!("it cannot list its keys: memcached can since 1.4.31");
    }

    /// Reads a listing whose first line has arrived.
    fn read(server: &mut Link, listing: &Listing, mut line: Vec<u8>) -> Result<Keys> {
        let no_room = || format!("no room for the keys in {}", env::temp_dir().display());
        let mut out = BufWriter::new(nameless_file().with_context(no_room)?);
        let mut count = 0;
        while line != listing.end {
            if line != b"OK" {
                let key = (listing.key)(&line);
                let key = key
                    .with_context(|| format!("not a line of a listing: {}", line.escape_ascii()))?;
                let parts = [&key.text[..], key.flag(), b"\n"].concat();
                out.write_all(&parts).with_context(no_room)?;
                count += 1;
            }
            server.read_line(&mut line)?;
        }
        let mut file = out.into_inner().map_err(|error| error.into_error())?;
        file.rewind()?;
        Ok(Keys {
            file: BufReader::new(file),
            count,
        })
    }

    /// The next key.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn next(&mut self) -> Result<Option<Key>> {
        let mut line = Vec::with_capacity(LINE_BYTES_MAX);
        if self.file.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        line.pop();
        let is_base64 = line.ends_with(b" b");
        if is_base64 {
            line.truncate(line.len() - 2);
        }
        Ok(Some(Key {
            text: line,
            is_base64,
        }))
    }
}

/// Begins a listing, and reads its first line. Returns false if the server has no such command.
fn begin(server: &mut Link, command: &str, line: &mut Vec<u8>) -> Result<bool> {
    let since = Instant::now();
    loop {
        server.send_bytes(format!("{command}\r\n").as_bytes())?;
        server.read_line(line)?;
        match &line[..] {
            b"ERROR" => return Ok(false),
            b"CLIENT_ERROR unauthenticated" => bail!("it wants a login: give --auth-user"),
            busy if busy.starts_with(b"BUSY") && since.elapsed() < BUSY_MAX => {
                thread::sleep(ASK_EVERY);
            }
            refusal
                if [&b"BUSY"[..], b"ERROR ", b"CLIENT_ERROR", b"SERVER_ERROR"]
                    .iter()
                    .any(|word| refusal.starts_with(word)) =>
            {
                bail!("it does not list its keys: {}", refusal.escape_ascii());
            }
            _ => return Ok(true),
        }
    }
}

/// A file that is gone when this process ends, and that nobody else can open.
fn nameless_file() -> Result<File> {
    let path = env::temp_dir().join(format!("glimmer-copy-{}", process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, is_base64: bool) -> Option<Key> {
        Some(Key {
            text: text.into(),
            is_base64,
        })
    }

    #[test]
    fn keys_are_those_of_the_listing() {
        assert_eq!(Key::of_mgdump(b"mg a:1"), key("a:1", false));
        assert_eq!(Key::of_mgdump(b"mg Zm9v b"), key("Zm9v", true));
        assert_eq!(Key::of_mgdump(b"mg b"), key("b", false));
        for line in [&b"mg"[..], b"mg ", b"EN", b"key=a "] {
            assert_eq!(Key::of_mgdump(line), None);
        }
        let rest = " exp=-1 la=0 cas=1 fetch=no cls=1 size=50";
        let of = |shown: &str| Key::of_metadump(format!("key={shown}{rest}").as_bytes());
        assert_eq!(of("a%3A1"), key("a:1", false));
        assert_eq!(of("hello%20world%21"), key("aGVsbG8gd29ybGQh", true));
        assert_eq!(of("%FF"), key("/w==", true));
        for shown in ["", "%", "%f"] {
            assert_eq!(of(shown), None);
        }
        let long = |bytes| of(&"%00".repeat(bytes)).unwrap().is_nameable();
        assert!(long(186) && !long(188));
    }
}
