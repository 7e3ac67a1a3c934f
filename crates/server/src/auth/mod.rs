//! The users who may use the server, and their passwords: the file of `-Y`, or that of `--users`,
//! which names rights and limits as well.

mod users;

use glimmer_base::limits::USERS_MAX;
use glimmer_node::{Login, Tenants, UserRules};
use glimmer_proto::credentials;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fs, io};

/// What to do about a file that cannot be read.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::InvalidData => "it must be text in UTF-8",
        io::ErrorKind::IsADirectory => "name a file in it",
        _ => "name one that the server's user may read",
    }
}

/// Why a user file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// It cannot be read.
    #[error("{flag} {path}: cannot read the file: {source}; {}", advice(source))]
    Unreadable {
        /// The flag that names it.
        flag: &'static str,
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
    /// The file of `--users` has a mistake.
    #[error("--users {path}: line {line}: {reason}")]
    Mistake {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file has no users, or too many.
    #[error("{flag} {path}: there are {users} users; 1 to {USERS_MAX} are allowed")]
    Users {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The number of users in the file.
        users: usize,
    },
    /// Users who are in the file no longer have too many connections.
    #[error("--users {path}: too many users of earlier files are connected; restart the server")]
    Slots {
        /// The file.
        path: PathBuf,
    },
}

/// The format of a user file, by the flag that names the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `-Y`: lines of `user:password`. All users may do everything.
    Passwords,
    /// `--users`: a table for each user.
    Rights,
}

impl Format {
    fn flag(self) -> &'static str {
        match self {
            Format::Passwords => "-Y",
            Format::Rights => "--users",
        }
    }
}

/// A user file, with the contents that were last read successfully.
pub struct AuthFile {
    path: PathBuf,
    format: Format,
    users: RwLock<Vec<User>>,
    tenants: Arc<Tenants>,
}

struct User {
    name: Vec<u8>,
    password: Vec<u8>,
    /// Its number among those whose rights are named; 0: it may do everything.
    number: u16,
}

/// A file as it was read.
struct Contents {
    users: Vec<User>,
    /// What is named of each of them, if that is.
    rules: Vec<UserRules>,
}

impl AuthFile {
    /// Reads the file, and makes known to the workers what it names.
    pub fn load(path: &Path, format: Format) -> Result<AuthFile, AuthError> {
        // Absolute, so that the file is found later even if the process changes its folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let file = AuthFile {
            path,
            format,
            users: RwLock::default(),
            tenants: Arc::default(),
        };
        file.reload()?;
        Ok(file)
    }

    /// What workers know of the users.
    pub fn tenants(&self) -> &Arc<Tenants> {
        &self.tenants
    }

    /// Reads the file again. If that fails, the previous contents stay in use.
    pub fn reload(&self) -> Result<(), AuthError> {
        let Contents { mut users, rules } = self.read()?;
        // Nobody logs in while numbers change.
        let mut held = self.users.write().unwrap_or_else(PoisonError::into_inner);
        if self.format == Format::Rights {
            let numbers = self.tenants.set_users(&rules);
            let numbers = numbers.map_err(|_| AuthError::Slots {
                path: self.path.clone(),
            })?;
            for (user, number) in users.iter_mut().zip(numbers) {
                user.number = number;
            }
        }
        *held = users;
        Ok(())
    }

    /// Whether there is a user of this name with this password.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        number_of(&users, name, password).is_some()
    }

    /// A client logs in with this name and password.
    pub fn log_in(&self, name: &[u8], password: &[u8]) -> Login {
        // Numbers do not change before the client is counted.
        let users = self.users.read().unwrap_or_else(PoisonError::into_inner);
        match number_of(&users, name, password) {
            None => Login::Wrong,
            Some(0) => Login::Admitted(0),
            Some(number) if self.tenants.enter(number) => Login::Admitted(number),
            Some(_) => Login::Full,
        }
    }

    fn read(&self) -> Result<Contents, AuthError> {
        let (path, format) = (&self.path, self.format);
        let unreadable = |source| AuthError::Unreadable {
            flag: format.flag(),
            path: path.clone(),
            source,
        };
        let text = fs::read(path).map_err(unreadable)?;
        let contents = match format {
            Format::Passwords => self.passwords(&text)?,
            Format::Rights => {
                let text = str::from_utf8(&text).map_err(|error| {
                    unreadable(io::Error::new(io::ErrorKind::InvalidData, error))
                })?;
                self.rights(text)?
            }
        };
        match contents.users.len() {
            1..=USERS_MAX => Ok(contents),
            users => Err(AuthError::Users {
                flag: format.flag(),
                path: path.clone(),
                users,
            }),
        }
    }

    fn passwords(&self, text: &[u8]) -> Result<Contents, AuthError> {
        let mut users = Vec::new();
        for user in credentials::users(text) {
            let (name, password) = user.map_err(|malformed| AuthError::Malformed {
                path: self.path.clone(),
                line: malformed.line,
            })?;
            users.push(User {
                name: name.to_vec(),
                password: password.to_vec(),
                number: 0,
            });
        }
        let rules = Vec::new();
        Ok(Contents { users, rules })
    }

    fn rights(&self, text: &str) -> Result<Contents, AuthError> {
        let named = users::read(text).map_err(|mistake| AuthError::Mistake {
            path: self.path.clone(),
            line: mistake.line,
            reason: mistake.reason,
        })?;
        let user = |it: users::NamedUser| {
            let user = User {
                name: it.rules.name.to_vec(),
                password: it.password,
                number: 0,
            };
            (user, it.rules)
        };
        let (users, rules) = named.into_iter().map(user).unzip();
        Ok(Contents { users, rules })
    }
}

/// The number of the user of this name with this password, if there is one. The time that this
/// takes does not reveal which of the two is wrong.
fn number_of(users: &[User], name: &[u8], password: &[u8]) -> Option<u16> {
    users.iter().fold(None, |found, user| {
        let is_it = is_same(&user.name, name) & is_same(&user.password, password);
        if is_it { Some(user.number) } else { found }
    })
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

    /// Whether a file has a user with this password, who may do everything.
    fn admits(file: &AuthFile, name: &[u8], password: &[u8]) -> bool {
        file.log_in(name, password) == Login::Admitted(0)
    }

    #[test]
    fn users_and_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        // The last line has no line end, and one password contains a colon.
        fs::write(&path, "foo:bar\r\n\nbaaaz:qu:ux").unwrap();
        let file = AuthFile::load(&path, Format::Passwords).unwrap();
        assert!(admits(&file, b"foo", b"bar") && admits(&file, b"baaaz", b"qu:ux"));
        assert!(!admits(&file, b"foo", b"baz") && !admits(&file, b"foo", b"ba"));
        assert!(!admits(&file, b"baaaz", b"bar") && !admits(&file, b"", b""));

        fs::write(&path, "nonsense\n").unwrap();
        let error = file.reload().unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
        assert!(admits(&file, b"foo", b"bar"), "what was read before stays");
        fs::write(&path, "new:one").unwrap();
        file.reload().unwrap();
        assert!(admits(&file, b"new", b"one") && !admits(&file, b"foo", b"bar"));
        fs::write(&path, "").unwrap();
        assert!(matches!(
            AuthFile::load(&path, Format::Passwords),
            Err(AuthError::Users { users: 0, .. })
        ));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            AuthFile::load(&path, Format::Passwords),
            Err(AuthError::Unreadable { .. })
        ));
    }

    #[test]
    fn users_with_rights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users.toml");
        fs::write(
            &path,
            "[a]\npassword = 'x'\nconnections = 1\n[b]\npassword = 'y'\n",
        )
        .unwrap();
        let file = AuthFile::load(&path, Format::Rights).unwrap();
        assert_eq!(file.log_in(b"a", b"y"), Login::Wrong);
        assert_eq!(file.log_in(b"a", b"x"), Login::Admitted(1));
        assert_eq!(file.log_in(b"a", b"x"), Login::Full);
        assert_eq!(file.log_in(b"b", b"y"), Login::Admitted(2));

        fs::write(&path, "[a]\npassword = 'x'\n[b]\nrights = []\n").unwrap();
        let error = file.reload().unwrap_err().to_string();
        assert!(error.ends_with("line 3: [b] has no password"), "{error}");
        assert_eq!(
            file.log_in(b"a", b"x"),
            Login::Full,
            "what was read before stays"
        );
        fs::write(&path, "[b]\npassword = 'z'\n[a]\npassword = 'x'\n").unwrap();
        file.reload().unwrap();
        assert_eq!(file.log_in(b"a", b"x"), Login::Admitted(1));
        assert_eq!(file.log_in(b"b", b"z"), Login::Admitted(2));
    }
}
