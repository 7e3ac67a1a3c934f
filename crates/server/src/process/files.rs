//! Files that a server makes, perhaps as root, in a folder to which other users may write, such as
//! `/tmp`.
//!
//! Such a user can leave a link under the name of a file that the server is about to make. So the
//! server opens the folder once and names files in its descriptor. It makes each file itself
//! (`O_EXCL`, `O_NOFOLLOW`), removes whatever another user has left under the name, and changes the
//! owner of a file through a descriptor that has been looked at. A link in the path of the folder
//! is the operator's own, and is followed.
//!
//! A file that takes long to write is locked (`flock`) until it is finished. So another server can
//! tell it from one that a killed process has left. Only files of the server's own user count as
//! locked, and those of root that it may write to: another user could lock a file to keep servers
//! out.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, geteuid, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How often the server makes a file again that another user has made meanwhile.
const TRIES_MAX: u32 = 16;

/// A file's place: its folder and its name there. It stays the same if the process changes its own
/// folder, and if another folder takes the path of this one.
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    /// The place of a path, whose folder has to exist.
    pub fn of(path: &Path) -> io::Result<Place> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Place {
            folder: openat(AT_FDCWD, folder, flags, Mode::empty())?,
            name: name.to_owned(),
        })
    }

    /// Makes the file, with these bytes, in place of what is there. It appears under its name only
    /// when it is complete; until then, its name ends with `unfinished`.
    pub fn replace(&self, unfinished: &str, bytes: &[u8]) -> io::Result<()> {
        let name = self.unfinished(unfinished);
        let readable = Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP | Mode::S_IROTH;
        let mut file = self.make(&name, readable)?;
        let written = file.write_all(bytes).and_then(|()| {
            let renamed = renameat(&self.folder, &*name, &self.folder, &*self.name);
            Ok(renamed?)
        });
        if written.is_err() {
            let _ = self.unlink(&name);
        }
        written
    }

    /// Begins to make a file that nobody else may read. It takes the place of what is there when it
    /// is [finished](Unfinished::finish); until then, its name ends with `unfinished`, and it is
    /// locked. Returns none if another process makes it.
    pub fn begin(self, unfinished: &str) -> io::Result<Option<Unfinished>> {
        let name = self.unfinished(unfinished);
        for _ in 0..TRIES_MAX {
            if !self.remove_left(&name)? {
                return Ok(None);
            }
            let file = match self.create(&name, Mode::S_IRUSR | Mode::S_IWUSR) {
                Err(Errno::EEXIST) => continue,
                created => created?,
            };
            lock(&file);
            // Before that, another process may have taken it for one that was left.
            if self.has(&name, &file)? {
                return Ok(Some(Unfinished {
                    place: self,
                    name,
                    file,
                }));
            }
        }
        Err(Errno::EEXIST.into())
    }

    /// Removes what was left of a file that was begun. Says false if a process still makes it; then
    /// it stays.
    pub fn remove_unfinished(&self, unfinished: &str) -> io::Result<bool> {
        self.remove_left(&self.unfinished(unfinished))
    }

    /// Whether a file can be begun: a folder of its name would be in the way.
    pub fn check_unfinished(&self, unfinished: &str) -> io::Result<()> {
        match self.look_at(&self.unfinished(unfinished))? {
            Some(found) if kind_of(&found) == SFlag::S_IFDIR => Err(Errno::EISDIR.into()),
            _ => Ok(()),
        }
    }

    /// Whether files can be made in the folder.
    pub fn check_writable(&self) -> io::Result<()> {
        let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        let flags = rustix::fs::AtFlags::EACCESS;
        Ok(rustix::fs::accessat(&self.folder, ".", may, flags)?)
    }

    /// Opens the file to read it. A link is not followed, and a pipe is not waited for.
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        Ok(openat(&self.folder, &*self.name, flags, Mode::empty())?.into())
    }

    /// The first bytes of the file. A link is not followed, and a pipe is not waited for.
    pub fn read_start(&self, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Removes the file. If a link has taken its name, the link is removed.
    pub fn remove(&self) -> io::Result<()> {
        Ok(self.unlink(&self.name)?)
    }

    /// Gives the Unix socket of this name another owner.
    ///
    /// # Errors
    ///
    /// Also if the name is now that of a link or of another file, or if it is one of several names:
    /// then the owner of somebody else's file would change.
    pub fn own_socket(&self, user: Uid, group: Gid) -> io::Result<()> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let socket = openat(&self.folder, &*self.name, flags, Mode::empty())?;
        let status = fstat(&socket)?;
        if kind_of(&status) != SFlag::S_IFSOCK || status.st_nlink != 1 {
            let path = PathBuf::from(&self.name);
            let text = format!("{} is not the server's socket any more", path.display());
            return Err(io::Error::other(text));
        }
        let flags = AtFlags::AT_EMPTY_PATH | AtFlags::AT_SYMLINK_NOFOLLOW;
        Ok(fchownat(&socket, "", Some(user), Some(group), flags)?)
    }

    /// Makes a file that nobody else has made or opened.
    fn make(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        for _ in 0..TRIES_MAX {
            match self.create(name, mode) {
                Ok(file) => return Ok(file),
                // An earlier server has left it, or another user.
                Err(Errno::EEXIST) => self.unlink(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EEXIST.into())
    }

    fn create(&self, name: &OsStr, mode: Mode) -> nix::Result<File> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.folder, name, flags, mode)?.into())
    }

    /// Removes what a process that has ended has left under a name, or another user. Says false if
    /// a process has locked it; then it stays.
    fn remove_left(&self, name: &OsStr) -> io::Result<bool> {
        let Some(found) = self.look_at(name)? else {
            return Ok(true);
        };
        let is_trusted = [0, geteuid().as_raw()].contains(&found.st_uid) && found.st_nlink == 1;
        if !is_trusted || kind_of(&found) != SFlag::S_IFREG {
            self.unlink(name)?;
            return Ok(true);
        }
        // Some network file systems lock only files that are open for writing.
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Err(Errno::ENOENT) => return Ok(true),
            // It is root's, and this server gave up root's rights.
            Err(Errno::EACCES) => {
                self.unlink(name)?;
                return Ok(true);
            }
            opened => File::from(opened?),
        };
        // On a file system without locks, nothing is locked.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Ok(false);
        }
        // Before it was locked here, it may have been finished. Nobody else removes it from now on.
        if self.has(name, &file)? {
            self.unlink(name)?;
        }
        Ok(true)
    }

    /// Whether a name is that of an open file.
    fn has(&self, name: &OsStr, file: &File) -> io::Result<bool> {
        let mine = fstat(file)?;
        let there = self.look_at(name)?;
        Ok(there.is_some_and(|there| (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)))
    }

    /// What has a name, if anything has.
    fn look_at(&self, name: &OsStr) -> io::Result<Option<FileStat>> {
        match fstatat(&self.folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// The name of a file that is not finished.
    fn unfinished(&self, ending: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(ending);
        name
    }

    fn unlink(&self, name: &OsStr) -> nix::Result<()> {
        match unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            done => done,
        }
    }
}

fn kind_of(file: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(file.st_mode) & SFlag::S_IFMT
}

/// Locks a file that this process has just created. Another one may hold it for a moment, to
/// remove it. On a file system without locks, it stays unlocked.
fn lock(file: &File) {
    while let Err(error) = file.lock()
        && error.kind() == io::ErrorKind::Interrupted
    {}
}

/// A file that is being made. It is removed when this is dropped, unless it was finished.
pub(crate) struct Unfinished {
    place: Place,
    /// Its name until it is finished.
    name: OsString,
    file: File,
}

impl Unfinished {
    /// What it is written to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Has all of it written to the disk, and gives it its name.
    pub fn finish(self) -> io::Result<()> {
        self.file.sync_all()?;
        if !self.place.has(&self.name, &self.file)? {
            let text = "another process has removed or replaced it meanwhile";
            return Err(io::Error::other(text));
        }
        let Place { folder, name } = &self.place;
        renameat(folder, &*self.name, folder, &**name)?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = openat(folder, ".", flags, Mode::empty())?;
        File::from(folder).sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.place.has(&self.name, &self.file).unwrap_or(false) {
            let _ = self.place.unlink(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{getgid, getuid, mkfifo};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    /// A folder with a file of root's.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        (folder, precious)
    }

    /// What another user may leave under a name.
    fn plant(kind: &str, at: &Path, precious: &Path) {
        match kind {
            "link" => symlink(precious, at).unwrap(),
            "dangling" => symlink(precious.with_extension("new"), at).unwrap(),
            "hard link" => fs::hard_link(precious, at).unwrap(),
            "pipe" => mkfifo(at, Mode::S_IRWXU).unwrap(),
            "file" => fs::write(at, "a long text of another user").unwrap(),
            other => unreachable!("{other}"),
        }
    }

    #[test]
    fn nothing_that_was_planted_is_written_to() {
        for kind in ["link", "dangling", "hard link", "pipe", "file"] {
            for at in ["made", "made.tmp"] {
                let (folder, precious) = folder();
                plant(kind, &folder.path().join(at), &precious);
                let path = folder.path().join("made");
                let place = Place::of(&path).unwrap();
                place.replace(".tmp", b"17\n").unwrap();
                assert_eq!(fs::read(&precious).unwrap(), b"precious", "{kind} at {at}");
                assert_eq!(fs::read(&path).unwrap(), b"17\n", "{kind} at {at}");
                let made = path.symlink_metadata().unwrap();
                assert!(made.is_file() && made.nlink() == 1, "{kind} at {at}");
                assert_eq!(
                    made.permissions().mode() & 0o022,
                    0,
                    "only the server writes it"
                );
                assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{kind} at {at}");
            }
        }
    }

    #[test]
    fn a_file_that_a_process_makes_is_left_alone() {
        for kind in ["link", "dangling", "hard link", "pipe", "file"] {
            let (folder, precious) = folder();
            let (path, unfinished) = (folder.path().join("made"), folder.path().join("made.tmp"));
            plant(kind, &unfinished, &precious);
            let place = || Place::of(&path).unwrap();
            let begin = || place().begin(".tmp").unwrap();
            let first = begin().expect("nobody has locked what was left");
            first.file().write_all(b"first").unwrap();
            assert!(begin().is_none() && !place().remove_unfinished(".tmp").unwrap());
            assert_eq!(fs::read(&unfinished).unwrap(), b"first");
            first.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"first");
            drop(begin().expect("the first one is finished"));
            assert!(!unfinished.exists() && place().remove_unfinished(".tmp").unwrap());
            // One that was removed by hand does not take another one with it.
            let gone = begin().unwrap();
            fs::remove_file(&unfinished).unwrap();
            let other = begin().unwrap();
            assert!(gone.finish().is_err() && unfinished.exists());
            drop(other);
            assert_eq!(fs::read(&precious).unwrap(), b"precious", "{kind}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{kind}");
        }
    }

    #[test]
    fn what_cannot_be_made_leaves_nothing_behind() {
        let (folder, _) = folder();
        let path = folder.path().join("made");
        fs::create_dir(&path).unwrap();
        let place = Place::of(&path).unwrap();
        place.replace(".tmp", b"17\n").unwrap_err();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::create_dir(folder.path().join("made.tmp")).unwrap();
        place.replace(".tmp", b"17\n").unwrap_err();
        assert!(Place::of(&folder.path().join("none/made")).is_err());
        assert!(Place::of(Path::new("/")).is_err());
    }

    #[test]
    fn reading_follows_no_link_and_waits_for_nothing() {
        let (folder, precious) = folder();
        let start = |name: &str| Place::of(&folder.path().join(name)).unwrap().read_start(4);
        assert_eq!(start("precious").unwrap(), b"prec");
        plant("link", &folder.path().join("link"), &precious);
        start("link").unwrap_err();
        plant("pipe", &folder.path().join("pipe"), &precious);
        assert_eq!(start("pipe").unwrap(), b"", "nobody writes to it");
        start("none").unwrap_err();
    }

    #[test]
    fn a_link_in_place_of_the_file_is_removed_in_its_stead() {
        let (folder, precious) = folder();
        let path = folder.path().join("made");
        let place = Place::of(&path).unwrap();
        place.replace(".tmp", b"17\n").unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&precious, &path).unwrap();
        place.remove().unwrap();
        assert!(path.symlink_metadata().is_err() && precious.exists());
    }

    #[test]
    fn only_the_servers_socket_changes_its_owner() {
        let (folder, precious) = folder();
        let own = |name: &str| {
            let place = Place::of(&folder.path().join(name)).unwrap();
            place.own_socket(getuid(), getgid())
        };
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        own("socket").unwrap();
        plant("link", &folder.path().join("link"), &precious);
        own("link").expect_err("a link is no socket");
        symlink(&socket, folder.path().join("to socket")).unwrap();
        own("to socket").expect_err("a link to a socket is not a socket");
        own("precious").expect_err("nor is a file");
        fs::hard_link(&socket, folder.path().join("again")).unwrap();
        own("again").expect_err("nor is a second name of another one");
        own("none").expect_err("nor is nothing");
    }
}
