//! Which files are taken for new ones, and what becomes of a file that is not begun.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The name of a file that is removed in the end.
struct Place(PathBuf);

impl Place {
    fn of(test: &str) -> Place {
        let name = format!("glimmer-{test}-{}", std::process::id());
        Place(std::env::temp_dir().join(name))
    }

    fn open(&self, partitions: usize, memory: &str) -> Result<Arc<MemoryFile>, FileError> {
        MemoryFile::open(&self.0, partitions, &[("-m", memory.to_owned())], false)
    }

    /// What is found in a file of these bytes.
    fn found_in(&self, bytes: &[u8]) -> Result<FileState, FileError> {
        fs::write(&self.0, bytes).unwrap();
        self.open(1, "64").map(|file| file.state())
    }

    fn is_left(&self, bytes: &[u8]) -> bool {
        fs::read(&self.0).unwrap() == bytes
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_that_begins_with_zeros_is_not_new() {
    let place = Place::of("zeros");
    let with_data_at = |at: usize, len: usize| {
        let mut bytes = vec![0; len];
        bytes[at..][..4].copy_from_slice(b"data");
        bytes
    };
    for bytes in [
        with_data_at(65_536, 100_000),
        with_data_at(65_536, HUGE_PAGE),
        with_data_at(HUGE_PAGE - 4, HUGE_PAGE),
        with_data_at(HUGE_PAGE, 2 * HUGE_PAGE),
        with_data_at(8, HUGE_PAGE),
        vec![0; 2 * HEADER_BYTES],
        vec![0; 2 * HUGE_PAGE],
    ] {
        let found = place.found_in(&bytes);
        assert!(matches!(found, Err(FileError::Foreign)), "{found:?}");
        assert!(place.is_left(&bytes), "it was changed");
    }
}

/// A process that is ended between any two words of the header.
#[test]
fn a_file_that_was_being_made_is_made_again() {
    let place = Place::of("unmade");
    fs::write(&place.0, b"").unwrap();
    drop(place.open(1, "64").unwrap());
    let whole = fs::read(&place.0).unwrap();
    let words: Vec<&[u8]> = whole.chunks(8).collect();
    let written = |at: &usize| words[*at].iter().any(|&byte| byte != 0);
    let last = [CHECK_AT, STATE_AT];
    let others = (1..HEADER_BYTES / 8).filter(|at| written(at) && !last.contains(at));
    let mut bytes = vec![0; whole.len()];
    for at in [MAGIC_AT].into_iter().chain(others).chain(last) {
        assert_eq!(place.found_in(&bytes).unwrap(), FileState::New, "{at}");
        bytes[8 * at..][..8].copy_from_slice(words[at]);
    }
    assert!(bytes == whole);
    // A damaged one has memory after the header, or records.
    bytes[8 * STATE_AT..][..8].fill(0);
    bytes.resize(2 * HUGE_PAGE, 0);
    let found = place.found_in(&bytes);
    assert!(matches!(found, Err(FileError::Damaged(_))), "{found:?}");
    bytes.truncate(HUGE_PAGE);
    bytes[HEADER_BYTES] = 1;
    let found = place.found_in(&bytes);
    assert!(matches!(found, Err(FileError::Damaged(_))), "{found:?}");
}

#[test]
fn a_file_in_which_no_store_was_begun_fits_any_settings() {
    let place = Place::of("never-begun");
    let new = |partitions, memory: &str| {
        let file = place.open(partitions, memory).unwrap();
        file.memory(1000, super::super::PagePolicy::Small).unwrap();
        assert_eq!(file.state(), FileState::New, "{memory}");
        file
    };
    drop(new(1, "200"));
    assert!(!place.0.exists(), "it was made for nothing");
    // As if the process had been killed.
    fs::write(&place.0, b"").unwrap();
    drop(new(1, "200"));
    assert!(place.0.exists(), "it was there before");
    drop(new(300, "64"));
    new(1, "32").begin();
    let refused = place.open(1, "64").unwrap_err().to_string();
    assert_eq!(refused, "it was made with -m 32, and this server has -m 64");
    assert_eq!(place.open(1, "32").unwrap().state(), FileState::Open);
    assert!(place.0.exists());
}

#[test]
fn only_a_file_that_was_made_here_is_removed() {
    let place = Place::of("moved");
    let file = place.open(1, "64").unwrap();
    fs::remove_file(&place.0).unwrap();
    fs::write(&place.0, b"another").unwrap();
    drop(file);
    assert!(place.is_left(b"another"));
    let (link, target) = (Place::of("link"), Place::of("target"));
    std::os::unix::fs::symlink(&target.0, &link.0).unwrap();
    drop(link.open(1, "64").unwrap());
    assert!(link.0.exists(), "the link is not the server's");
    let one = link.open(1, "64").unwrap();
    assert!(matches!(target.open(1, "64"), Err(FileError::InUse)));
    drop(one);
}

#[test]
fn nobody_else_reads_a_file_that_was_there() {
    let place = Place::of("private");
    let mode = || place.0.metadata().unwrap().permissions().mode() & 0o777;
    let permit = |mode| fs::set_permissions(&place.0, fs::Permissions::from_mode(mode)).unwrap();
    let foreign = vec![1; 9];
    fs::write(&place.0, &foreign).unwrap();
    permit(0o644);
    place.open(1, "64").unwrap_err();
    assert_eq!(mode(), 0o644, "it is not a memory file");
    fs::write(&place.0, b"").unwrap();
    place.open(1, "64").unwrap().begin();
    assert_eq!(mode(), 0o600);
    permit(0o666);
    place.open(1, "64").unwrap();
    assert_eq!(mode(), 0o600);
}
