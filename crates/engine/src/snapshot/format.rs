//! The head of a snapshot, the heads of its blocks, and its end. All integers are little-endian.

use glimmer_base::checksum;

/// The version of the format that this server writes, and the only one that it reads.
pub const VERSION: u32 = 1;
/// Bytes of the head of a file.
pub const FILE_HEAD_BYTES: usize = 64;
/// Bytes of the head of a block.
pub const BLOCK_HEAD_BYTES: usize = 40;

/// What a file begins with. The first byte is no text, and the line end shows a transfer that has
/// changed line ends.
pub const FILE_MAGIC: [u8; 8] = *b"\x89GLMRS\r\n";
/// What a block begins with.
pub const BLOCK_MAGIC: [u8; 4] = *b"GLBk";

const ITEMS: u32 = 1;
const END: u32 = 2;
/// Bytes of the end.
const END_BYTES: usize = 48;

/// What stands at the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// When the snapshot was begun, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// A random number. It is the seed of all checksums of the file's blocks, so that no value of
    /// an item can be taken for a block, whatever a client has stored.
    pub seed: u64,
}

/// What stands at the end of a file: by it, a file is known to be whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Blocks of items.
    pub blocks: u64,
    /// Items in these blocks.
    pub items: u64,
    /// Bytes of these blocks without their heads.
    pub bytes: u64,
    /// The highest CAS unique that the server had drawn.
    pub cas: u64,
    /// When the last item was copied, in milliseconds since 1970.
    pub ended_unix_ms: u64,
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The number of items.
    Items(u32),
    /// The end of the file.
    End,
}

/// The head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHead {
    pub kind: Kind,
    /// Bytes that follow the head.
    pub bytes: u64,
    /// Their checksum.
    pub checksum: u64,
}

impl FileHead {
    /// The bytes of the head.
    pub fn encode(self) -> [u8; FILE_HEAD_BYTES] {
        let mut head = [0; FILE_HEAD_BYTES];
        head[..8].copy_from_slice(&FILE_MAGIC);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[16..24].copy_from_slice(&self.begun_unix_ms.to_le_bytes());
        head[24..32].copy_from_slice(&self.seed.to_le_bytes());
        close(0, &mut head);
        head
    }

    /// The head that these bytes are, which have the right checksum.
    pub(super) fn decode(head: &[u8; FILE_HEAD_BYTES]) -> FileHead {
        FileHead {
            begun_unix_ms: u64_at(head, 16),
            seed: u64_at(head, 24),
        }
    }
}

/// The head of a block with this payload and this number of items, in a file with this seed.
pub fn seal(seed: u64, payload: &[u8], items: u32) -> [u8; BLOCK_HEAD_BYTES] {
    block_head(seed, (ITEMS, items), payload)
}

fn block_head(seed: u64, (kind, items): (u32, u32), payload: &[u8]) -> [u8; BLOCK_HEAD_BYTES] {
    let mut head = [0; BLOCK_HEAD_BYTES];
    head[..4].copy_from_slice(&BLOCK_MAGIC);
    head[4..8].copy_from_slice(&kind.to_le_bytes());
    head[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    head[16..20].copy_from_slice(&items.to_le_bytes());
    head[24..32].copy_from_slice(&checksum(seed, payload).to_le_bytes());
    close(seed, &mut head);
    head
}

impl BlockHead {
    /// The head that these bytes encode. None if they are not a head.
    pub fn decode(seed: u64, head: &[u8; BLOCK_HEAD_BYTES]) -> Option<BlockHead> {
        if head[..4] != BLOCK_MAGIC || !is_closed(seed, head) {
            return None;
        }
        let kind = match u32_at(head, 4) {
            ITEMS => Kind::Items(u32_at(head, 16)),
            END => Kind::End,
            _ => return None,
        };
        Some(BlockHead {
            kind,
            bytes: u64_at(head, 8),
            checksum: u64_at(head, 24),
        })
    }
}

impl Totals {
    /// The block with which a file with this seed ends.
    pub fn encode(self, seed: u64) -> [u8; BLOCK_HEAD_BYTES + END_BYTES] {
        let fields = [
            self.blocks,
            self.items,
            self.bytes,
            self.cas,
            self.ended_unix_ms,
        ];
        let mut end = [0; END_BYTES];
        for (space, field) in end.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
            *space = field.to_le_bytes();
        }
        let mut block = [0; BLOCK_HEAD_BYTES + END_BYTES];
        block[..BLOCK_HEAD_BYTES].copy_from_slice(&block_head(seed, (END, 0), &end));
        block[BLOCK_HEAD_BYTES..].copy_from_slice(&end);
        block
    }

    /// The totals in the payload of the last block.
    pub(super) fn decode(end: &[u8]) -> Option<Totals> {
        (end.len() == END_BYTES).then(|| Totals {
            blocks: u64_at(end, 0),
            items: u64_at(end, 8),
            bytes: u64_at(end, 16),
            cas: u64_at(end, 24),
            ended_unix_ms: u64_at(end, 32),
        })
    }
}

/// Writes the checksum of a head to its end.
fn close(seed: u64, head: &mut [u8]) {
    let at = head.len() - 8;
    let sum = checksum(seed, &head[..at]);
    head[at..].copy_from_slice(&sum.to_le_bytes());
}

/// Whether the checksum at the end of a head is right.
pub(super) fn is_closed(seed: u64, head: &[u8]) -> bool {
    let at = head.len() - 8;
    u64_at(head, at) == checksum(seed, &head[..at])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
