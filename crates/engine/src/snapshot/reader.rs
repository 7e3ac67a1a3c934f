//! Reads a snapshot block by block, whatever its bytes are.
//!
//! A block counts only if the checksums of its head and of its payload are right. Where a head is
//! damaged, the next one is looked for: it is four bytes that begin a head with the right checksum.
//! It is looked for within a damaged payload as well, because bytes may be missing there.

use super::format::{
    BLOCK_HEAD_BYTES, BLOCK_MAGIC, BlockHead, FILE_HEAD_BYTES, FILE_MAGIC, FileHead, Kind, Totals,
    VERSION, is_closed, u32_at,
};
use glimmer_base::checksum;
use glimmer_base::limits::SNAPSHOT_BLOCK_BYTES_MAX;
use std::io::{self, Read};

/// Bytes that are read at a time into memory that is not there yet: the length of a payload is
/// believed as far as there are bytes.
const STEP_BYTES: usize = 1 << 20;

/// Why a file is not a snapshot that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It does not begin as one does.
    NotOurs,
    /// It has another version of the format.
    Version(u32),
    /// Its head is damaged.
    Head,
}

/// What has been found to be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Blocks whose payload is not what its checksum says, or no items.
    pub blocks: u64,
    /// Stretches between blocks that are no block.
    pub gaps: u64,
}

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextBlock<'a> {
    /// A block that is proven whole: its payload, and how many items that has.
    Items(&'a [u8], u32),
    /// The end of the file. Without totals, the file is not complete.
    End(Option<Totals>),
}

/// Reads a snapshot.
#[derive(Debug)]
pub struct SnapshotReader<R> {
    from: R,
    head: FileHead,
    payload: Vec<u8>,
    /// Bytes of a damaged payload that are read once more, and how many of them have been.
    again: (Vec<u8>, usize),
    /// What is read next need not be a head, because what came before it was damaged.
    is_astray: bool,
    damage: Damage,
    /// Bytes that have been read.
    bytes: u64,
}

impl<R: Read> SnapshotReader<R> {
    /// Reads the head of a file. The inner error says why the file is not a snapshot.
    ///
    /// # Errors
    ///
    /// Those of the source.
    pub fn open(mut from: R) -> io::Result<Result<SnapshotReader<R>, Foreign>> {
        let mut head = [0; FILE_HEAD_BYTES];
        let read = fill(&mut from, &mut head)?;
        if read < FILE_MAGIC.len() || head[..8] != FILE_MAGIC {
            return Ok(Err(Foreign::NotOurs));
        }
        let version = u32_at(&head, 8);
        // Another version may have a head of another length.
        if read >= 12 && version != VERSION {
            return Ok(Err(Foreign::Version(version)));
        }
        if read < head.len() || !is_closed(0, &head) {
            return Ok(Err(Foreign::Head));
        }
        Ok(Ok(SnapshotReader {
            from,
            head: FileHead::decode(&head),
            payload: Vec::new(),
            again: (Vec::new(), 0),
            is_astray: false,
            damage: Damage::default(),
            bytes: FILE_HEAD_BYTES as u64,
        }))
    }

    /// The head of the file.
    pub fn head(&self) -> FileHead {
        self.head
    }

    /// What was wrong so far.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Bytes of the source that have been read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next block that is whole, or the end.
    ///
    /// # Errors
    ///
    /// Those of the source.
    pub fn next_block(&mut self) -> io::Result<NextBlock<'_>> {
        loop {
            let Some(head) = self.next_head()? else {
                return Ok(NextBlock::End(None));
            };
            let is_complete = self.read_payload(head.bytes)?;
            let is_whole = is_complete && checksum(self.head.seed, &self.payload) == head.checksum;
            match head.kind {
                _ if !is_whole => self.go_astray(),
                Kind::Items(items) => return Ok(NextBlock::Items(&self.payload, items)),
                Kind::End => return Ok(NextBlock::End(Totals::decode(&self.payload))),
            }
        }
    }

    /// A payload is damaged: there may be heads in it.
    fn go_astray(&mut self) {
        self.damage.blocks += 1;
        self.is_astray = true;
        let (again, used) = &mut self.again;
        self.payload.extend_from_slice(&again[*used..]);
        self.again = (std::mem::take(&mut self.payload), 0);
    }

    /// A block of items was whole, and yet its payload is no items.
    pub fn note_nonsense(&mut self) {
        self.damage.blocks += 1;
    }

    /// The next head of a block; none at the end of the source.
    fn next_head(&mut self) -> io::Result<Option<BlockHead>> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        let read = self.fill(&mut head)?;
        if read == head.len()
            && let Some(block) = self.decode(&head)
        {
            self.is_astray = false;
            return Ok(Some(block));
        }
        self.damage.gaps += u64::from(read > 0 && !self.is_astray);
        self.is_astray = false;
        if read < head.len() {
            return Ok(None);
        }
        loop {
            // The next place at which a head may begin.
            let skip = (1..head.len())
                .find(|&at| is_begin(&head[at..]))
                .unwrap_or(head.len());
            head.copy_within(skip.., 0);
            let kept = head.len() - skip;
            if self.fill(&mut head[kept..])? < skip {
                return Ok(None);
            }
            if let Some(block) = self.decode(&head) {
                return Ok(Some(block));
            }
        }
    }

    /// Reads a payload. Says whether all of it is there.
    fn read_payload(&mut self, bytes: u64) -> io::Result<bool> {
        self.payload.clear();
        let mut left = bytes as usize;
        while left > 0 {
            let (from, step) = (self.payload.len(), left.min(STEP_BYTES));
            self.payload.resize(from + step, 0);
            let mut payload = std::mem::take(&mut self.payload);
            let read = self.fill(&mut payload[from..])?;
            payload.truncate(from + read);
            self.payload = payload;
            if read < step {
                return Ok(false);
            }
            left -= step;
        }
        Ok(true)
    }

    /// The head that these bytes are, of a block that may be as long as it says.
    fn decode(&self, head: &[u8; BLOCK_HEAD_BYTES]) -> Option<BlockHead> {
        let head = BlockHead::decode(self.head.seed, head)?;
        (head.bytes <= SNAPSHOT_BLOCK_BYTES_MAX as u64).then_some(head)
    }

    fn fill(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let (again, used) = &mut self.again;
        let known = space.len().min(again.len() - *used);
        space[..known].copy_from_slice(&again[*used..*used + known]);
        *used += known;
        if *used == again.len() {
            // It may have been a large value.
            self.again = (Vec::new(), 0);
        }
        let read = fill(&mut self.from, &mut space[known..])?;
        self.bytes += read as u64;
        Ok(known + read)
    }
}

/// Whether these bytes may be the beginning of a head, as far as they go.
fn is_begin(bytes: &[u8]) -> bool {
    let bytes_known = bytes.len().min(BLOCK_MAGIC.len());
    bytes[..bytes_known] == BLOCK_MAGIC[..bytes_known]
}

/// Fills the space as far as the source has bytes.
fn fill(from: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < space.len() {
        match from.read(&mut space[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
