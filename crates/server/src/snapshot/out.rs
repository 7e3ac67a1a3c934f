//! The file that a snapshot is written to, and the way its bytes take to the disk.
//!
//! While the server serves, they pass the kernel's page cache (`O_DIRECT`). With the cache, the
//! kernel would copy them, look for pages, and write these back in threads of its own, and each of
//! these keeps a worker of the same core from running for as long as it takes. A direct write
//! submits memory that is there, and sleeps.

use glimmer_base::limits::{SNAPSHOT_SYNC_BYTES, SNAPSHOT_WRITE_BYTES};
use rustix::fs::{Advice, OFlags, fadvise, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::num::NonZero;

/// What the address, the place and the length of a direct write are multiples of. Disks want 512
/// or 4,096 bytes.
const ALIGNMENT: usize = 4096;

const _: () = assert!(SNAPSHOT_WRITE_BYTES.is_multiple_of(ALIGNMENT));

/// Whether workers serve meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// They do, and are to notice little of it.
    Steady,
    /// They do not. The kernel chooses when it writes to the disk.
    Fast,
}

/// The file, and how much of it is written.
pub(super) struct Out<'f> {
    file: &'f File,
    way: Way,
    /// Bytes that were given to be written.
    bytes: u64,
}

/// The way of the bytes.
enum Way {
    /// Past the page cache.
    Direct(Aligned),
    /// Through the page cache. All bytes before this number are on the disk.
    Synced(u64),
    /// Through the page cache.
    Cached,
}

/// Bytes that wait for a direct write.
struct Aligned {
    memory: Vec<u8>,
    /// Where the aligned part begins. It has room for one write.
    begin: usize,
    filled: usize,
}

impl<'f> Out<'f> {
    /// An empty file. Where its file system has no direct writes, its bytes are brought to the disk
    /// now and then, so that few of them are in the page cache.
    pub fn new(file: &'f File, pace: Pace) -> Out<'f> {
        let way = match pace {
            Pace::Fast => Way::Cached,
            Pace::Steady if set_direct(file, true).is_ok() => Way::Direct(Aligned::new()),
            Pace::Steady => Way::Synced(0),
        };
        let bytes = 0;
        Out { file, way, bytes }
    }

    /// Bytes of the file, when all of it is written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while let Way::Direct(waiting) = &mut self.way
            && !rest.is_empty()
        {
            rest = waiting.take(rest);
            if waiting.filled < SNAPSHOT_WRITE_BYTES {
                continue;
            }
            let written = write_direct(self.file, waiting.bytes());
            if written < waiting.filled {
                // The file system has no direct writes of this kind, or there was an error, which
                // the next write meets again.
                waiting.remove(written);
                self.leave_direct()?;
            } else {
                waiting.filled = 0;
            }
        }
        self.file.write_all(rest)?;
        if let Way::Synced(synced) = &mut self.way
            && self.bytes - *synced >= SNAPSHOT_SYNC_BYTES
        {
            self.file.sync_data()?;
            // The server does not read it.
            let new = NonZero::new(self.bytes - *synced);
            let _ = fadvise(self.file, *synced, new, Advice::DontNeed);
            *synced = self.bytes;
        }
        Ok(())
    }

    /// Writes what waits for more bytes. The file is not on the disk before it is synced.
    pub fn finish(mut self) -> io::Result<()> {
        self.leave_direct()
    }

    /// Goes on through the page cache, with what waits.
    fn leave_direct(&mut self) -> io::Result<()> {
        if let Way::Direct(waiting) = std::mem::replace(&mut self.way, Way::Synced(0)) {
            set_direct(self.file, false)?;
            self.file.write_all(waiting.bytes())?;
        }
        Ok(())
    }
}

impl Aligned {
    fn new() -> Aligned {
        let memory = vec![0; SNAPSHOT_WRITE_BYTES + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Aligned {
            memory,
            begin,
            filled: 0,
        }
    }

    /// Takes as many bytes as there is room for. Returns the others.
    fn take<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let room = &mut self.memory[self.begin..][..SNAPSHOT_WRITE_BYTES][self.filled..];
        let (taken, others) = bytes.split_at(bytes.len().min(room.len()));
        room[..taken.len()].copy_from_slice(taken);
        self.filled += taken.len();
        others
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..][..self.filled]
    }

    /// Removes this many bytes from the beginning.
    fn remove(&mut self, count: usize) {
        let filled = self.begin..self.begin + self.filled;
        self.memory
            .copy_within(filled.start + count..filled.end, self.begin);
        self.filled -= count;
    }
}

/// Writes until there is an error. Returns the bytes that were written.
fn write_direct(file: &File, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(file, &bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    written
}

fn set_direct(file: &File, is_direct: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_direct);
    Ok(fcntl_setfl(file, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use std::io::Read;

    /// Writes pieces of all lengths to a file that has `before` bytes, and looks what is in it.
    fn what_is_written_is_there(pace: Pace, before: usize, rng: &mut SmallRng) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut expected = vec![b'-'; before];
        file.write_all(&expected).unwrap();
        let mut out = Out::new(file.as_file(), pace);
        for _ in 0..rng.random_range(0..20) {
            let bytes_max = [100, 10_000, 2 * SNAPSHOT_WRITE_BYTES][rng.random_range(0..3)];
            let mut piece = vec![0; rng.random_range(0..bytes_max)];
            rng.fill(&mut piece[..]);
            out.write(&piece).unwrap();
            expected.extend(piece);
        }
        assert_eq!(out.bytes() as usize, expected.len() - before);
        out.finish().unwrap();
        let mut found = Vec::new();
        let mut again = File::open(file.path()).unwrap();
        again.read_to_end(&mut found).unwrap();
        assert!(found == expected, "{} of {}", found.len(), expected.len());
    }

    #[test]
    fn what_is_written_is_in_the_file() {
        let mut rng = SmallRng::seed_from_u64(glimmer_seeds::seed());
        for _ in 0..20 {
            what_is_written_is_there(Pace::Fast, 0, &mut rng);
            what_is_written_is_there(Pace::Steady, 0, &mut rng);
            // The kernel refuses direct writes that do not begin at a multiple of a disk's block.
            what_is_written_is_there(Pace::Steady, 1, &mut rng);
        }
    }

    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        for pace in [Pace::Fast, Pace::Steady] {
            let mut out = Out::new(&full, pace);
            let written = out.write(&vec![0; 2 * SNAPSHOT_WRITE_BYTES]);
            let error = written.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{pace:?}");
        }
    }
}
