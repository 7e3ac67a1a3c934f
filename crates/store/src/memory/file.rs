//! A file in which the memory of a store lies, so that the items outlive the process.
//!
//! ```text
//! +--------+----------+--------+-----+--------+---------+---------+-----
//! | header | settings | record | ... | record | memory  | memory  | ...
//! +--------+----------+--------+-----+--------+---------+---------+-----
//! 0        512        4 KiB    one to a partition        2 MiB or a multiple
//! ```
//!
//! The file is mapped into memory and shared, so what the process stores is in the file's pages at
//! once, and stays there however the process ends. It does not survive the machine, unless the file
//! system does: a file on a disk is written back by the kernel when it likes.
//!
//! The header says whose file it is, under which layout version, and for which settings: a store of
//! other sizes cannot use it. Numbers that belong to the store as a whole are kept in the header
//! ([`Kept`]), those of a partition in its [`Record`].
//!
//! A file is *new* until the store that was made in it is [begun](MemoryFile::begin), *open* while
//! a process uses it, and *closed* when that process has written down all that it knew
//! ([`close`](MemoryFile::close)). A process that finds an open file which nobody has locked comes
//! after one that was ended. A new file holds no item, so it is made again for any settings. If it
//! did not exist before, it is removed when a process that does not begin it gives it up.
//!
//! Such a process sees all that the instructions of the last one have stored: no processor forgets
//! a store that has been made. So what matters is the order of these instructions, and not the
//! order in which another thread sees the stores. The compiler chooses the former, except across a
//! call of [`in_program_order`]. Loom explores the latter, so it cannot check this. The tests of
//! memory files end a process after single stores, and try other orders of the stores between two
//! of these calls.

mod locked;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;

pub use locked::LockedFile;

use super::record::{RECORD_WORDS, Record};
use super::{HUGE_PAGE, ZeroedSlice};
use glimmer_base::sync::Ordering::{Relaxed, Release};
use glimmer_base::sync::{AtomicU64, in_program_order};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// "GLIMMER" and a byte that no text has.
const MAGIC: u64 = u64::from_le_bytes(*b"GLIMMER\x9d");
/// What is meant by the words of header, records, buckets and items. To be changed with them.
pub const LAYOUT_VERSION: u64 = 2;
/// Reads otherwise on a machine with the other byte order.
const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
const HEADER_BYTES: usize = 4 << 10;
/// Bytes of the settings, a line each.
const SETTINGS_BYTES_MAX: usize = HEADER_BYTES - 8 * SETTINGS_AT;

// Words of the header.
const MAGIC_AT: usize = 0;
const VERSION_AT: usize = 1;
const BYTE_ORDER_AT: usize = 2;
const STATE_AT: usize = 3;
const PARTITIONS_AT: usize = 4;
const SETTINGS_LEN_AT: usize = 5;
/// The sum of the words above but the state, and of the settings.
const CHECK_AT: usize = 6;
/// The sum of [`CONSTANT`], from when the file is begun.
const CONSTANT_CHECK_AT: usize = 7;
const KEPT_AT: usize = 8;
/// The sum of [`STILL`], from when the file is closed.
const STILL_CHECK_AT: usize = 15;
const NOTED_EPOCH_AT: usize = 16;
const SETTINGS_AT: usize = 64;

/// The states of a file. No few bits make one of another.
const NEW: u64 = u64::from_le_bytes(*b"new\0\0\0\0\0");
const OPEN: u64 = u64::from_le_bytes(*b"open\0\0\0\0");
const CLOSED: u64 = u64::from_le_bytes(*b"closed\0\0");

/// Numbers of the store as a whole that are kept in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// When the epoch was that times in the store are counted from, in milliseconds since 1970, as
    /// the wall clock said when the file was made.
    EpochUnixMs,
    /// Milliseconds since the epoch, as of late.
    NowMs,
    /// Flushes that have come due.
    Flushes,
    /// When the pending flush is due; zero for none.
    FlushPendingMs,
    /// The seed of keyhashes that clients compute.
    Seed,
    /// The first half of what keyhashes are made with.
    SecretFirst,
    /// The second half.
    SecretSecond,
    /// When the epoch was by the wall clock of late, which may have been set since the file was
    /// made. Zero if an earlier version made the file, which did not note it.
    NotedEpochUnixMs = (NOTED_EPOCH_AT - KEPT_AT) as isize,
}

/// Numbers that do not change after the file was begun.
const CONSTANT: [Kept; 4] = [
    Kept::EpochUnixMs,
    Kept::Seed,
    Kept::SecretFirst,
    Kept::SecretSecond,
];

/// Numbers that do not change after the file was closed. The time goes on.
const STILL: [Kept; 2] = [Kept::Flushes, Kept::FlushPendingMs];

const _: () = assert!(KEPT_AT + Kept::SecretSecond as usize + 1 == STILL_CHECK_AT);

/// What was found in the place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Nothing: the store is made from scratch.
    New,
    /// What a store left that was closed.
    Closed,
    /// What a store left that was not.
    Open,
}

/// Why a file cannot be used. Each message is one line. The caller names the file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be opened, locked or mapped.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another process has locked it.
    #[error("another process uses it")]
    InUse,
    /// It is a folder, a device, a socket or a pipe.
    #[error("it is no regular file")]
    NoFile,
    /// Whoever owns it could change what is stored.
    #[error("it belongs to another user")]
    Owner,
    /// It does not begin as memory files do.
    #[error("it is no memory file of Glimmer")]
    Foreign,
    /// Its words mean something else.
    #[error("it has layout version {0}, and this version of Glimmer has {LAYOUT_VERSION}")]
    Version(u64),
    /// It was made on a machine with another byte order.
    #[error("it was made on a machine with another byte order")]
    ByteOrder,
    /// The header is not as it was written, or the file is shorter than it was.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It was made for a store of other settings.
    #[error("it was made with {name} {was}, and this server has {name} {is}")]
    Settings {
        /// The first setting that differs.
        name: String,
        /// Its value in the file.
        was: String,
        /// Its value now.
        is: String,
    },
}

/// The file that a partition lies in, if it lies in one, and which of the file's partitions it is.
pub type InFile = Option<(Arc<MemoryFile>, usize)>;

/// See the module's text.
pub struct MemoryFile {
    locked: LockedFile,
    header: ZeroedSlice<AtomicU64>,
    partitions: usize,
    state: FileState,
    /// Where the next memory begins.
    next: AtomicU64,
}

impl MemoryFile {
    /// Opens a file for a store of so many partitions with these settings, a name and a value each,
    /// or makes one. `discard` has what was there before be given up, unless a process uses it.
    ///
    /// # Errors
    ///
    /// As [`LockedFile::open`] and [`within`](Self::within).
    pub fn open(
        path: &Path,
        partitions: usize,
        settings: &[(&str, String)],
        discard: bool,
    ) -> Result<Arc<MemoryFile>, FileError> {
        let locked = LockedFile::open(path)?;
        MemoryFile::within(locked, partitions, settings, discard)
    }

    /// The same for a file that is locked already.
    ///
    /// # Errors
    ///
    /// [`FileError`]. The file is then as it was, or the system has refused to make it larger or to
    /// map it.
    pub fn within(
        locked: LockedFile,
        partitions: usize,
        settings: &[(&str, String)],
        discard: bool,
    ) -> Result<Arc<MemoryFile>, FileError> {
        let settings = text_of(settings);
        let header_bytes = header_bytes(partitions);
        let file = locked.file();
        let state = match (discard, file.metadata()?.len()) {
            (true, _) | (_, 0) => FileState::New,
            (false, len) => examine(file, len, partitions, &settings)?,
        };
        if state == FileState::New {
            file.set_len(0)?;
            file.set_len(header_bytes as u64)?;
        }
        let header = ZeroedSlice::in_file(header_bytes / 8, file, 0, super::PagePolicy::Small)?;
        let file = MemoryFile {
            locked,
            header,
            partitions,
            state,
            next: AtomicU64::new(header_bytes as u64),
        };
        match state {
            FileState::New => file.write_header(&settings),
            FileState::Closed => file.examine_records()?,
            FileState::Open => {}
        }
        file.locked.make_private()?;
        Ok(Arc::new(file))
    }

    /// The records of a closed file are as they were closed.
    fn examine_records(&self) -> Result<(), FileError> {
        let mut records = (0..self.partitions).map(|partition| self.record(partition));
        match records.any(|record| record.is_damaged()) {
            false => Ok(()),
            true => Err(FileError::Damaged(
                "the record of a partition is not as it was written",
            )),
        }
    }

    /// A process may end within. The next one finds that the file [is unmade](is_unmade), because
    /// the first word is the magic number, and the last ones are the check and the state.
    fn write_header(&self, settings: &str) {
        let set = |at: usize, value: u64| self.header[at].store(value, Relaxed);
        set(MAGIC_AT, MAGIC);
        in_program_order();
        for (nth, bytes) in settings.as_bytes().chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            set(SETTINGS_AT + nth, u64::from_le_bytes(word));
        }
        set(VERSION_AT, LAYOUT_VERSION);
        set(BYTE_ORDER_AT, BYTE_ORDER);
        set(PARTITIONS_AT, self.partitions as u64);
        set(SETTINGS_LEN_AT, settings.len() as u64);
        set(CHECK_AT, check_of(|at| self.header[at].load(Relaxed)));
        in_program_order();
        self.header[STATE_AT].store(NEW, Release);
    }

    /// What was found when the file was opened.
    pub fn state(&self) -> FileState {
        self.state
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        self.locked.path()
    }

    /// Whether the file's pages are memory alone, and no disk's.
    pub fn is_in_memory(&self) -> bool {
        self.locked.is_in_memory()
    }

    /// A number of the store as a whole.
    pub fn kept(&self, number: Kept) -> &AtomicU64 {
        &self.header[KEPT_AT + number as usize]
    }

    /// The record of a partition.
    pub fn record(&self, partition: usize) -> Record {
        assert!(partition < self.partitions);
        Record::new(
            self.header.clone(),
            HEADER_BYTES / 8 + partition * RECORD_WORDS,
        )
    }

    /// Memory for `len` words, which are zero if the file is new. The same calls in the same order
    /// get the same memory every time.
    pub fn memory(
        &self,
        len: usize,
        policy: super::PagePolicy,
    ) -> io::Result<ZeroedSlice<AtomicU64>> {
        let bytes = (len * 8).next_multiple_of(HUGE_PAGE).max(HUGE_PAGE) as u64;
        let at = self.next.fetch_add(bytes, Relaxed);
        let file = self.locked.file();
        let size = file.metadata()?.len();
        match self.state {
            FileState::New => file.set_len(at + bytes)?,
            _ if size < at + bytes => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
        ZeroedSlice::in_file(len, file, at, policy)
    }

    /// The store in the file is whole, and changes from now on.
    pub fn begin(&self) {
        for record in (0..self.partitions).map(|partition| self.record(partition)) {
            // A process that ends before the file is open is followed by one that recovers.
            record.discard_image();
            record.forget_lost();
        }
        self.check_in(CONSTANT_CHECK_AT, &CONSTANT);
        in_program_order();
        self.header[STATE_AT].store(OPEN, Release);
        in_program_order();
        self.locked.keep();
    }

    /// The store does not change any more, and all that its writers knew is in the file.
    pub fn close(&self) {
        self.check_in(STILL_CHECK_AT, &STILL);
        self.header[STATE_AT].store(CLOSED, Release);
    }

    /// Has a word of the header be the sum of numbers.
    fn check_in(&self, at: usize, numbers: &[Kept]) {
        let sum = sum_of(numbers, |at| self.header[at].load(Relaxed));
        self.header[at].store(sum, Relaxed);
    }
}

fn header_bytes(partitions: usize) -> usize {
    (HEADER_BYTES + partitions * 8 * RECORD_WORDS).next_multiple_of(HUGE_PAGE)
}

fn text_of(settings: &[(&str, String)]) -> String {
    let lines = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"));
    let text: String = lines.collect();
    assert!(
        text.len() <= SETTINGS_BYTES_MAX,
        "the settings fit into the header"
    );
    text
}

/// A sum of the words that never change, by FNV-1a.
fn check_of(word: impl Fn(usize) -> u64) -> u64 {
    let settings = SETTINGS_AT..HEADER_BYTES / 8;
    let fixed = [VERSION_AT, BYTE_ORDER_AT, PARTITIONS_AT, SETTINGS_LEN_AT];
    super::record::sum(fixed.into_iter().chain(settings).map(word))
}

/// The sum of numbers that are kept in the header.
fn sum_of(numbers: &[Kept], word: impl Fn(usize) -> u64) -> u64 {
    let words = numbers.iter().map(|&number| KEPT_AT + number as usize);
    super::record::sum(words.map(word))
}

/// The state that the words of the header tell, if they do not contradict one another.
fn state_of(word: impl Fn(usize) -> u64) -> Result<FileState, FileError> {
    let state = match word(STATE_AT) {
        NEW => FileState::New,
        OPEN => FileState::Open,
        CLOSED => FileState::Closed,
        _ => return Err(FileError::Damaged("it is in no known state")),
    };
    let has_constants = sum_of(&CONSTANT, &word) == word(CONSTANT_CHECK_AT);
    let is_still = sum_of(&STILL, &word) == word(STILL_CHECK_AT);
    match state {
        FileState::New => Ok(state),
        FileState::Open if has_constants => Ok(state),
        FileState::Closed if has_constants && is_still => Ok(state),
        _ => Err(FileError::Damaged(
            "the numbers in its header are not as they were written",
        )),
    }
}

/// What a file holds that is not empty.
fn examine(
    file: &File,
    len: u64,
    partitions: usize,
    settings: &str,
) -> Result<FileState, FileError> {
    let mut bytes = vec![0; HEADER_BYTES];
    if len < 8 {
        return Err(FileError::Foreign);
    }
    let have = (len as usize).min(HEADER_BYTES);
    file.read_exact_at(&mut bytes[..have], 0)?;
    let (words, _) = bytes.as_chunks::<8>();
    let word = |at: usize| u64::from_ne_bytes(words[at]);
    if len == header_bytes(partitions) as u64 && is_unmade(file, len, &bytes)? {
        return Ok(FileState::New);
    }
    match word(MAGIC_AT) {
        MAGIC => {}
        other if other.swap_bytes() == MAGIC => return Err(FileError::ByteOrder),
        _ => return Err(FileError::Foreign),
    }
    if word(BYTE_ORDER_AT) == BYTE_ORDER.swap_bytes() {
        return Err(FileError::ByteOrder);
    }
    if word(VERSION_AT) != LAYOUT_VERSION {
        return Err(FileError::Version(word(VERSION_AT)));
    }
    if have < HEADER_BYTES || check_of(word) != word(CHECK_AT) {
        return Err(FileError::Damaged("its header is not as it was written"));
    }
    let state = state_of(word)?;
    if state == FileState::New {
        return Ok(state);
    }
    let was = &bytes[8 * SETTINGS_AT..][..word(SETTINGS_LEN_AT) as usize];
    let was = String::from_utf8_lossy(was);
    if let Some(error) = first_difference(&was, settings) {
        return Err(error);
    }
    if word(PARTITIONS_AT) != partitions as u64 {
        return Err(FileError::Damaged("its settings contradict one another"));
    }
    if len < header_bytes(partitions) as u64 {
        return Err(FileError::Damaged("it is shorter than it was"));
    }
    Ok(state)
}

/// Whether a process was ended while it made a file of this length: it has written nothing, or the
/// magic number and not yet the state, and nothing after the header.
fn is_unmade(file: &File, len: u64, header: &[u8]) -> io::Result<bool> {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    let (words, _) = header.as_chunks::<8>();
    let is_begun = u64::from_ne_bytes(words[MAGIC_AT]) == MAGIC;
    let is_unfinished = is_begun && is_zero(&words[STATE_AT]);
    if !is_zero(header) && !is_unfinished {
        return Ok(false);
    }
    let mut page = vec![0; HEADER_BYTES];
    for at in (0..len).step_by(HEADER_BYTES).skip(1) {
        file.read_exact_at(&mut page, at)?;
        if !is_zero(&page) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn first_difference(was: &str, is: &str) -> Option<FileError> {
    let value_in = |text: &str, name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let value = lines.find(|(other, _)| *other == name);
        value.map_or_else(|| "none".to_owned(), |(_, value)| value.to_owned())
    };
    let names = is.lines().chain(was.lines());
    let names = names.filter_map(|line| line.split_once('=').map(|(name, _)| name));
    names
        .map(|name| (name, value_in(was, name), value_in(is, name)))
        .find(|(_, was, is)| was != is)
        .map(|(name, was, is)| FileError::Settings {
            name: name.to_owned(),
            was,
            is,
        })
}

impl std::fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = f.debug_struct("MemoryFile");
        all.field("path", &self.path()).field("state", &self.state);
        all.finish_non_exhaustive()
    }
}
