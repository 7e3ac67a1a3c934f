//! The keys of a server: listed at once, and kept in a file until their turn comes.
//!
//! memcached's crawler waits for its client while it lists, serves no other listing meanwhile, and
//! gives the client up after some minutes. So the listing is read as fast as it comes.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, bail};
use glimmer_base::limits::KEY_BYTES_MAX;
use glimmer_base::shown;
use glimmer_connect::Link;
use glimmer_proto::meta::base64;

/// How long a server may be busy with another listing.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// How often it is asked meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// Bytes of a key in base64, and of what stands around it.
const LINE_BYTES_MAX: usize = 2 * KEY_BYTES_MAX;

/// A key in the words of meta commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The key, or its base64.
    pub text: Vec<u8>,
    pub is_base64: bool,
    /// What the listing says of the item: the bytes that it occupies. 0 if it does not say.
    pub item_bytes: u64,
}

impl Key {
    /// The key after `key=` in a line of [`LISTING`]. One that is no text, or has a space or a
    /// control character, is in base64, so that nothing in it is a word or a command of its own.
    fn of_listing(line: &[u8]) -> Option<Key> {
        let text = line.strip_prefix(b"key=")?;
        let end = text.iter().position(|&byte| byte == b' ')?;
        let (text, rest) = text.split_at(end);
        let key = shown::read(text).filter(|key| !key.is_empty())?;
        let mut words = rest.split(|&byte| byte == b' ');
        let item_bytes = words.find_map(|word| number(word.strip_prefix(b"size=")?));
        let is_base64 = !shown::is_visible(&key);
        let text = if is_base64 {
            let mut text = Vec::new();
            base64::encode(&key, &mut text);
            text
        } else {
            key
        };
        Some(Key {
            text,
            is_base64,
            item_bytes: item_bytes.unwrap_or(0),
        })
    }

    /// Whether a command can name it: base64 makes keys of more than 187 bytes too long.
    pub fn is_nameable(&self) -> bool {
        self.text.len() <= KEY_BYTES_MAX
    }

    /// Whether `me` can ask for it. memcached answers with the key as it is, so one that a binary
    /// client has chosen could end the line. Several versions do not know base64 there.
    pub fn can_be_asked(&self) -> bool {
        !self.is_base64
    }

    /// The flag that belongs to it in a command.
    pub fn flag(&self) -> &'static [u8] {
        if self.is_base64 { b" b" } else { b"" }
    }
}

/// Has a server list its keys, each as in a URI. `lru_crawler mgdump` costs less, but memcached
/// writes the keys of binary clients as they are there, with spaces and line ends.
const LISTING: &str = "lru_crawler metadump all";
/// The last line of it.
const LISTING_END: &[u8] = b"END";

/// All keys of a server, at one moment.
pub struct Keys {
    file: BufReader<File>,
    /// How many there are.
    pub count: u64,
    /// The next one, if it had no room in the last batch.
    held: Option<Key>,
}

impl Keys {
    /// Has the server list its keys.
    ///
    /// # Errors
    ///
    /// If the server cannot list them or does not permit it, or if there is no room for them.
    pub fn of(server: &mut Link) -> Result<Keys> {
        let mut line = Vec::new();
        begin(server, &mut line)?;
        Keys::read(server, line)
    }

    /// Reads a listing whose first line has arrived.
    fn read(server: &mut Link, mut line: Vec<u8>) -> Result<Keys> {
        let no_room = || format!("no room for the keys in {}", env::temp_dir().display());
        let mut out = BufWriter::new(nameless_file().with_context(no_room)?);
        let mut count = 0;
        while line != LISTING_END {
            if line != b"OK" {
                let key = Key::of_listing(&line);
                let key = key
                    .with_context(|| format!("not a line of a listing: {}", line.escape_ascii()))?;
                let size = format!("{} ", key.item_bytes);
                let parts = [size.as_bytes(), &key.text, key.flag(), b"\n"].concat();
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
            held: None,
        })
    }

    /// The next keys: at most this many, of items that have at most this many bytes together; at
    /// least one, if there is one.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn batch(&mut self, items_max: u64, bytes: u64) -> Result<Vec<Key>> {
        let (mut batch, mut left) = (Vec::new(), bytes);
        while (batch.len() as u64) < items_max
            && let Some(key) = self.next()?
        {
            if !batch.is_empty() && key.item_bytes.max(1) > left {
                self.held = Some(key);
                break;
            }
            left = left.saturating_sub(key.item_bytes);
            batch.push(key);
        }
        Ok(batch)
    }

    fn next(&mut self) -> Result<Option<Key>> {
        if let Some(key) = self.held.take() {
            return Ok(Some(key));
        }
        let mut line = Vec::with_capacity(LINE_BYTES_MAX);
        if self.file.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        line.pop();
        let mut words = line.split(|&byte| byte == b' ');
        let size = words.next().and_then(number);
        Ok(Some(Key {
            text: words.next().unwrap_or_default().to_vec(),
            is_base64: words.next().is_some(),
            item_bytes: size.unwrap_or(0),
        }))
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Begins a listing, and reads its first line.
fn begin(server: &mut Link, line: &mut Vec<u8>) -> Result<()> {
    let since = Instant::now();
    loop {
        server.send_bytes(format!("{LISTING}\r\n").as_bytes())?;
        server.read_line(line)?;
        match &line[..] {
            b"ERROR" => bail!("it cannot list its keys: memcached can since 1.4.31"),
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
            _ => return Ok(()),
        }
    }
}

/// A file that is gone when this process ends, and that nobody else can open. It has a random name
/// for a moment, as others could make a file with a name that they know.
fn nameless_file() -> Result<File> {
    let random = RandomState::new().build_hasher().finish();
    let path = env::temp_dir().join(format!("glimmer-copy-{random:016x}"));
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
            item_bytes: 50,
        })
    }

    #[test]
    fn keys_are_those_of_the_listing() {
        let rest = " exp=-1 la=0 cas=1 fetch=no cls=1 size=50";
        let of = |shown: &str| Key::of_listing(format!("key={shown}{rest}").as_bytes());
        assert_eq!(of("a%3A1"), key("a:1", false));
        assert_eq!(of("hello%20world%21"), key("aGVsbG8gd29ybGQh", true));
        assert_eq!(of("%FF"), key("/w==", true));
        for shown in ["", "%", "%f"] {
            assert_eq!(of(shown), None);
        }
        let long = |bytes| of(&"%00".repeat(bytes)).unwrap().is_nameable();
        assert!(long(186) && !long(188));
    }

    #[test]
    fn nobody_knows_the_name_of_the_file() {
        let known = env::temp_dir().join(format!("glimmer-copy-{}", std::process::id()));
        File::create(&known).unwrap();
        let made = nameless_file();
        fs::remove_file(&known).unwrap();
        made.unwrap();
    }

    #[test]
    fn a_batch_has_few_items_or_few_bytes() {
        let mut file = nameless_file().unwrap();
        file.write_all(b"9 a\n9 Zm9v b\n9 c\n99 d\n0 e\n0 f\n")
            .unwrap();
        file.rewind().unwrap();
        let mut keys = Keys {
            file: BufReader::new(file),
            count: 6,
            held: None,
        };
        let mut batch = |items_max, bytes| {
            let batch = keys.batch(items_max, bytes).unwrap();
            let texts = batch.iter().map(|key| &key.text[..]);
            let coded = batch.iter().any(|key| key.is_base64);
            (
                String::from_utf8(texts.collect::<Vec<_>>().concat()).unwrap(),
                coded,
            )
        };
        assert_eq!(batch(64, 1), ("a".to_owned(), false));
        assert_eq!(batch(64, 10), ("Zm9v".to_owned(), true));
        assert_eq!(batch(64, 18), ("c".to_owned(), false));
        assert_eq!(batch(64, 0), ("d".to_owned(), false));
        assert_eq!(batch(1, u64::MAX), ("e".to_owned(), false));
        assert_eq!(batch(64, u64::MAX), ("f".to_owned(), false));
        assert_eq!(batch(64, u64::MAX), (String::new(), false));
    }
}
