//! The users who may use the server and their passwords: the file of `-Y`.

use glimmer_base::limits::USERS_MAX;
use glimmer_proto::credentials;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::{fs, io};

/// Why a user file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// It cannot be read.
    #[error("-Y {path}: cannot read the file: {source}; name one that the server's user may read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is not `user:password`.
    #[error("-Y {path}: line {line} is malformed; it should be user:password")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
    },
    /// The file has no users, or too many.
    #[error("-Y {path}: there are {users} users; 1 to {USERS_MAX} are allowed")]
    Users {
        /// The file.
        path: PathBuf,
        /// The number of users in the file.
        users: usize,
    },
}

/// A user file, with the contents that were last read successfully.
pub struct AuthFile {
    path: PathBuf,
    users: RwLock<Vec<User>>,
}

struct User {
    name: Vec<u8>,
    password: Vec<u8>,
}

impl AuthFile {
    /// Reads the file.
    pub fn load(path: &Path) -> Result<AuthFile, AuthError> {
        // Absolute, so that the file is found later even if the process changes its folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let users = RwLock::new(read(&path)?);
        Ok(AuthFile { path, users })
    }

    /// Reads the file again. If that fails, the previous contents stay in use.
    pub fn reload(&self) -> Result<(), AuthError> {
        let users = read(&self.path)?;
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users;
        Ok(())
    }

    /// Whether there is a user with this name and password. The time that this takes does not
    /// reveal which of the two is wrong.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        users.iter().fold(false, |found, user| {
            found | (is_same(&user.name, name) & is_same(&user.password, password))
        })
    }
}

fn read(path: &Path) -> Result<Vec<User>, AuthError> {
    let text = fs::read(path).map_err(|source| AuthError::Unreadable {
        path: path.into(),
        source,
    })?;
    let mut users = Vec::new();
    for user in credentials::users(&text) {
        let (name, password) = user.map_err(|malformed| AuthError::Malformed {
            path: path.into(),
            line: malformed.line,
        })?;
        users.push(User {
            name: name.to_vec(),
            password: password.to_vec(),
        });
    }
    match users.len() {
        1..=USERS_MAX => Ok(users),
        users => Err(AuthError::Users {
            path: path.into(),
            users,
        }),
    }
}

/// Compares in a time that depends only on the lengths.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one
        .iter()
        .zip(other)
        .fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        // The last line has no line end, and one password contains a colon.
        fs::write(&path, "foo:bar\r\n\nbaaaz:qu:ux").unwrap();
        let file = AuthFile::load(&path).unwrap();
        assert!(file.admits(b"foo", b"bar") && file.admits(b"baaaz", b"qu:ux"));
        assert!(!file.admits(b"foo", b"baz") && !file.admits(b"foo", b"ba"));
        assert!(!file.admits(b"baaaz", b"bar") && !file.admits(b"", b""));

        fs::write(&path, "nonsense\n").unwrap();
        let error = file.reload().unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        assert!(file.admits(b"foo", b"bar"), "what was read before stays");
        fs::write(&path, "new:one").unwrap();
        file.reload().unwrap();
        assert!(file.admits(b"new", b"one") && !file.admits(b"foo", b"bar"));
        fs::write(&path, "").unwrap();
        assert!(matches!(
            AuthFile::load(&path),
            Err(AuthError::Users { users: 0, .. })
        ));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            AuthFile::load(&path),
            Err(AuthError::Unreadable { .. })
        ));
    }
}
