//! Files that a server makes, perhaps as root, in a folder to which other users may write, such as
//! `/tmp`.
//!
//! Such a user can leave a link under the name of a file that the server is about to make. So the
//! server opens the folder once and names files in its descriptor. It makes each file itself
//! (`O_EXCL`, `O_NOFOLLOW`), removes whatever another user has left under the name, and changes the
//! owner of a file through a descriptor that has been looked at. A link in the path of the folder
//! is the operator's own, and is followed.

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
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
        let mut name = self.name.clone();
        name.push(unfinished);
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
    /// is [finished](Unfinished::finish); until then, its name ends with `unfinished`.
    pub fn begin(&self, unfinished: &str) -> io::Result<Unfinished<'_>> {
        let mut name = self.name.clone();
        name.push(unfinished);
        let file = self.make(&name, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok(Unfinished {
            place: self,
            name: Some(name),
            file,
        })
    }

    /// Removes what was left of a file that was begun.
    pub fn remove_unfinished(&self, unfinished: &str) -> io::Result<()> {
        let mut name = self.name.clone();
        name.push(unfinished);
        Ok(self.unlink(&name)?)
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
        let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
        if kind != SFlag::S_IFSOCK || status.st_nlink != 1 {
            let path = PathBuf::from(&self.name);
            let text = format!("{} is not the server's socket any more", path.display());
            return Err(io::Error::other(text));
        }
        let flags = AtFlags::AT_EMPTY_PATH | AtFlags::AT_SYMLINK_NOFOLLOW;
        Ok(fchownat(&socket, "", Some(user), Some(group), flags)?)
    }

    /// Makes a file that nobody else has made or opened.
    fn make(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        for _ in 0..TRIES_MAX {
            match openat(&self.folder, name, flags, mode) {
                Ok(file) => return Ok(file.into()),
                // An earlier server has left it, or another user.
                Err(Errno::EEXIST) => self.unlink(name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EEXIST.into())
    }

    fn unlink(&self, name: &OsStr) -> nix::Result<()> {
        match unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            done => done,
        }
    }
}

/// A file that is being made. It is removed when this is dropped, unless it was finished.
pub(crate) struct Unfinished<'p> {
    place: &'p Place,
    /// Its name, until it is finished.
    name: Option<OsString>,
    file: File,
}

impl Unfinished<'_> {
    /// What it is written to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Has all of it written to the disk, and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let Place { folder, name } = self.place;
        let Some(unfinished) = &self.name else {
            return Ok(());
        };
        let (mine, there) = (
            fstat(&self.file)?,
            fstatat(folder, &**unfinished, AtFlags::AT_SYMLINK_NOFOLLOW)?,
        );
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino) {
            self.name = None;
            return Err(io::Error::other("another process writes it as well"));
        }
        renameat(folder, &**unfinished, folder, &**name)?;
        self.name = None;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = openat(folder, ".", flags, Mode::empty())?;
        File::from(folder).sync_all()
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = self.place.unlink(&name);
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
