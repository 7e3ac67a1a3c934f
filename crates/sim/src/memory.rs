//! The file that a server's memory lies in, and what the next process finds of it.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where files are memory, on every Linux machine.
const MEMORY: &str = "/dev/shm";

/// The memory files of one run, each of which goes on from the one before.
pub struct MemoryFiles {
    folder: TempDir,
    number: u32,
}

impl MemoryFiles {
    /// No file yet.
    pub fn new() -> io::Result<MemoryFiles> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("glimmer-sim-");
        let folder = match Path::new(MEMORY).is_dir() {
            true => builder.tempdir_in(MEMORY)?,
            false => builder.tempdir()?,
        };
        Ok(MemoryFiles { folder, number: 0 })
    }

    /// The file of the next process.
    pub fn path(&self) -> PathBuf {
        self.of(self.number)
    }

    fn of(&self, number: u32) -> PathBuf {
        self.folder.path().join(number.to_string())
    }

    /// The next process finds the file as it is now. What the present one does from here on happens
    /// to a file that nobody opens again.
    pub fn leave(&mut self) -> io::Result<()> {
        copy(&self.path(), &self.of(self.number + 1))?;
        fs::remove_file(self.path())?;
        self.number += 1;
        Ok(())
    }
}

/// Copies a file, without its holes.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let bytes = source.metadata()?.len();
    let mut copied = File::create_new(to)?;
    copied.set_len(bytes)?;
    let mut end = 0;
    loop {
        let begin = match seek(&source, SeekFrom::Data(end)) {
            Ok(begin) => begin,
            // Only a hole is left.
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        end = seek(&source, SeekFrom::Hole(begin))?;
        source.seek(io::SeekFrom::Start(begin))?;
        copied.seek(io::SeekFrom::Start(begin))?;
        io::copy(&mut (&source).take(end - begin), &mut copied)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn a_file_is_left_as_it_is() {
        let mut files = MemoryFiles::new().unwrap();
        let first = File::create_new(files.path()).unwrap();
        first.set_len(1 << 30).unwrap();
        first.write_all_at(b"one", 0).unwrap();
        first.write_all_at(b"two", 1 << 20).unwrap();
        files.leave().unwrap();
        first.write_all_at(b"too late", 0).unwrap();
        let second = File::open(files.path()).unwrap();
        for (bytes, at) in [(b"one", 0), (b"two", 1 << 20), (b"\0\0\0", 1 << 29)] {
            let mut found = [0; 3];
            second.read_exact_at(&mut found, at).unwrap();
            assert_eq!(&found, bytes, "at {at}");
        }
        let second = second.metadata().unwrap();
        assert_eq!(second.len(), 1 << 30);
        assert!(512 * second.blocks() < 1 << 22, "{}", second.blocks());
    }
}
