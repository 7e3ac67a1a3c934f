//! A copy of a file that is made again and again without a system call for each page.

use super::place::Place;
use super::watch::{PAGE, Watch};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;

const PAGE_WORDS: usize = PAGE / 8;

/// See the module's text.
pub struct Copy {
    words: *mut u64,
    count: usize,
    file: File,
}

impl Copy {
    /// A copy in another place of the file that is watched.
    pub fn of(watch: &Watch, place: &Place) -> Copy {
        let count = watch.words().len();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&place.0)
            .unwrap();
        file.set_len(8 * count as u64).unwrap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which replaces none.
        let first = unsafe {
            let at = std::ptr::null_mut();
            libc::mmap(at, 8 * count, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(first, libc::MAP_FAILED);
        Copy {
            words: first.cast(),
            count,
            file,
        }
    }

    /// Sets the copy to the known contents of the file. The store that attached the copy has
    /// changed it.
    pub fn become_what(&self, watch: &Watch) {
        // SAFETY: the mapping is as long, nobody else has it mapped now, and this is the only
        // reference to it.
        let copied = unsafe { std::slice::from_raw_parts_mut(self.words, self.count) };
        for page in watch.pages().union(&data_pages(&self.file)) {
            let words = page * PAGE_WORDS..(page + 1) * PAGE_WORDS;
            let (copied, page) = (&mut copied[words.clone()], &watch.words()[words]);
            if copied != page {
                copied.copy_from_slice(page);
            }
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: the mapping is this copy's, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.cast(), 8 * self.count) };
    }
}

/// Pages of a file that are no holes.
pub fn data_pages(file: &File) -> BTreeSet<usize> {
    let seek = |from: i64, what: i32| {
        // SAFETY: the call reads no memory.
        let at = unsafe { libc::lseek(file.as_raw_fd(), from, what) };
        (at >= 0).then_some(at)
    };
    let mut pages = BTreeSet::new();
    let mut at = 0;
    while let Some(from) = seek(at, libc::SEEK_DATA) {
        at = seek(from, libc::SEEK_HOLE).unwrap();
        pages.extend(from as usize / PAGE..(at as usize).div_ceil(PAGE));
    }
    pages
}
