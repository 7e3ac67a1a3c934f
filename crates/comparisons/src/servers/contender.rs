//! A server that takes part in a comparison.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use super::{Build, Described, Encryption, Kind};

/// Requests of a connection that memcached executes before it turns to others, unless it is told
/// otherwise (`-R`).
const MEMCACHED_REQUESTS_PER_TURN: u32 = 20;

/// A server that takes part in a comparison: which one it is, its name in tables, and its program.
/// One server may take part several times, as different builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    kind: Kind,
    name: String,
    /// `None` is the installed one.
    program: Option<PathBuf>,
    /// The certificates with which it is started and driven over TLS.
    encryption: Option<Encryption>,
}

impl From<Kind> for Contender {
    /// The installed program.
    fn from(kind: Kind) -> Contender {
        Contender {
            kind,
            name: kind.name().to_owned(),
            program: None,
            encryption: None,
        }
    }
}

impl Contender {
    /// A program of this name. Its version says which server it is.
    ///
    /// # Errors
    ///
    /// If it does not run, or if it is a server that cannot be measured.
    pub fn named(name: &str, program: &Path) -> Result<Contender> {
        let version =
            version_of(program).with_context(|| format!("{} cannot be run", program.display()))?;
        let kind = Kind::introduced_by(&version).with_context(|| {
            let program = program.display();
            format!("{program} is no server that can be compared: its version is {version:?}")
        })?;
        Ok(Contender {
            kind,
            name: name.to_owned(),
            program: Some(program.to_owned()),
            encryption: None,
        })
    }

    /// The same under another name.
    pub fn renamed(self, name: &str) -> Contender {
        let name = name.to_owned();
        Contender { name, ..self }
    }

    /// The same over TLS, with these certificates. `Err` says in a line why that cannot be.
    pub fn over_tls(self, encryption: &Encryption) -> Result<Contender, String> {
        let name = &self.name;
        if let Kind::Pogocache | Kind::Masstree = self.kind {
            return Err(format!("{name} is left out: it is driven without TLS only"));
        }
        // What is not installed is complained about later.
        let program = self.program().unwrap_or_default();
        let program = on_search_path(&program).unwrap_or(program);
        if self.kind.needs_openssl() && program.is_file() && !Build::has_openssl(&program) {
            return Err(format!("{name} is left out: it was built without TLS"));
        }
        Ok(Contender {
            encryption: Some(encryption.clone()),
            ..self
        })
    }

    /// The certificates, if it is driven over TLS.
    pub fn encryption(&self) -> Option<&Encryption> {
        self.encryption.as_ref()
    }

    /// Which server it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name in tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its further arguments: these, if it is ours. Another build of ours takes the same.
    pub fn arguments(&self, ours: &[String]) -> Vec<String> {
        match self.kind {
            Kind::Glimmer => ours.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Its further arguments where this many requests of a connection arrive together. By default
    /// memcached executes fewer in a turn, and pays for two turns and two replies.
    pub fn arguments_for(&self, requests_together: u32) -> Vec<String> {
        match self.kind {
            Kind::Memcached if requests_together > MEMCACHED_REQUESTS_PER_TURN => {
                vec!["-R".to_owned(), requests_together.to_string()]
            }
            _ => Vec::new(),
        }
    }

    /// Its executable.
    pub(super) fn program(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(|| self.kind.program(), Ok)
    }

    /// The first line of its version command, or how to install it.
    pub fn version(&self) -> Result<String> {
        let program = self.program()?;
        if self.kind == Kind::Masstree {
            // It knows no flag for its version, and starts whatever it is asked.
            on_search_path(&program).with_context(|| self.kind.missing())?;
            return Ok(format!("{}, of no stated version", self.kind.name()));
        }
        let version = version_of(&program).with_context(|| self.kind.missing())?;
        ensure!(
            self.program.is_some() || !is_ours_by_another_name(&version),
            "the {} on the search path is this server by another name: give the other one with \
             --peer NAME=PATH",
            self.kind.name()
        );
        Ok(version)
    }

    /// Its version, and what its program says about how it was built.
    pub fn described(&self) -> Result<Described> {
        let program = self.program()?;
        let program = on_search_path(&program).unwrap_or(program);
        Ok(Described {
            server: self.name.clone(),
            version: self.version()?,
            build: Build::of(&program),
            program,
            settings: Default::default(),
            tls: None,
        })
    }

    /// Fails if two of these have one name.
    pub fn ensure_distinct(contenders: &[Contender]) -> Result<()> {
        for (place, contender) in contenders.iter().enumerate() {
            let name = contender.name();
            let is_alone = contenders[..place].iter().all(|other| other.name != name);
            ensure!(is_alone, "two servers have the name {name}");
        }
        Ok(())
    }

    /// The descriptions of all of these. Called before anything is measured: it fails if one is
    /// missing, with the command that installs it, or if two have one name.
    pub fn all_described(contenders: &[Contender]) -> Result<Vec<Described>> {
        Contender::ensure_distinct(contenders)?;
        contenders.iter().map(Contender::described).collect()
    }
}

/// A program that has not told its version in this time will not do so.
const VERSION_MAX: Duration = Duration::from_secs(10);
/// What a program says after this many bytes is not read.
const OUTPUT_BYTES_MAX: u64 = 1 << 16;

/// The first line of a program's version. memcached before 1.5 has no flag for it, and its help
/// begins with it.
fn version_of(program: &Path) -> Result<String> {
    for flag in ["--version", "-h"] {
        let text = output_of(program, flag, VERSION_MAX)?;
        if let Some(line) = text.lines().next() {
            return Ok(line.to_owned());
        }
    }
    Ok(String::new())
}

/// What a program prints with this flag. One that does not end in time is ended.
fn output_of(program: &Path, flag: &str, patience: Duration) -> Result<String> {
    let mut command = Command::new(program);
    command.arg(flag).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().expect("it has a pipe");
    let (sender, receiver) = mpsc::channel();
    // The thread ends when the pipe is closed. Processes that the program has started may keep it
    // open.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = receiver.recv_timeout(patience);
    // It has said everything, or is too late.
    child.kill()?;
    child.wait()?;
    match read {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes?).into_owned()),
        Err(_) => bail!(
            "{} {flag} does not end: it was stopped after {} s",
            program.display(),
            patience.as_secs_f64()
        ),
    }
}

/// Whether a server that calls itself another one, as ours does under memcached's name, is ours.
fn is_ours_by_another_name(version: &str) -> bool {
    version.contains("-glimmer.")
}

/// Where a program without a folder lies.
fn on_search_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return None;
    }
    let folders = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn our_server_under_memcacheds_name_is_recognised() {
        assert!(is_ours_by_another_name("memcached 1.6.45-glimmer.0.1.0"));
        assert!(!is_ours_by_another_name("memcached 1.6.45"));
    }

    #[test]
    fn a_program_is_the_server_that_its_version_names() {
        for (version, kind) in [
            ("memcached 1.6.45", Some(Kind::Memcached)),
            ("Redis server v=7.0.15 sha=00000000:0", Some(Kind::Redis)),
            ("Valkey server v=8.0.1 sha=00000000:0", Some(Kind::Valkey)),
            ("pogocache 1.3.1", Some(Kind::Pogocache)),
            ("glimmer 0.1.0", Some(Kind::Glimmer)),
            ("nginx version: nginx/1.22.1", None),
            ("", None),
        ] {
            assert_eq!(Kind::introduced_by(version), kind, "{version}");
        }
        // One runs and is no server, the other does not run.
        for (program, hint) in [("/bin/sh", "no server"), ("/no/such/file", "cannot be run")] {
            let error = Contender::named("newest", Path::new(program)).unwrap_err();
            assert!(error.to_string().contains(hint), "{error}");
        }
    }

    #[test]
    fn the_help_of_an_old_memcached_says_its_version() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("old");
        let script = "#!/bin/sh\n[ \"$1\" = -h ] && echo memcached 1.4.13 && echo usage\nexit 1\n";
        std::fs::write(&old, script).unwrap();
        std::fs::set_permissions(&old, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(version_of(&old).unwrap(), "memcached 1.4.13");
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let endless = directory.path().join("endless");
        std::fs::write(
            &endless,
            "#!/bin/sh\necho memcached 1.6.45\nexec sleep 600\n",
        )
        .unwrap();
        std::fs::set_permissions(&endless, PermissionsExt::from_mode(0o755)).unwrap();
        let error = output_of(&endless, "--version", Duration::from_millis(50)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("--version does not end"), "{error}");
        let read = output_of(Path::new("/bin/echo"), "memcached 1.6.45", VERSION_MAX);
        assert_eq!(read.unwrap(), "memcached 1.6.45\n");
    }

    #[test]
    fn a_program_that_says_more_and_more_is_stopped() {
        let said = output_of(Path::new("/usr/bin/yes"), "--", VERSION_MAX).unwrap();
        assert_eq!(said.len() as u64, OUTPUT_BYTES_MAX);
    }

    #[test]
    fn memcached_is_told_of_more_requests_than_its_turn_has() {
        let arguments = |kind: Kind, requests| Contender::from(kind).arguments_for(requests);
        assert_eq!(arguments(Kind::Memcached, 32), ["-R", "32"]);
        assert!(arguments(Kind::Memcached, 20).is_empty());
        assert!(arguments(Kind::Glimmer, 32).is_empty());
    }

    #[test]
    fn a_name_without_a_folder_is_looked_up() {
        let found = on_search_path(Path::new("sh")).unwrap();
        assert!(found.is_absolute() && found.ends_with("sh"), "{found:?}");
        assert_eq!(on_search_path(Path::new("/bin/sh")), None);
    }

    #[test]
    fn two_of_one_name_are_refused() {
        let twice = [Kind::Glimmer, Kind::Glimmer].map(Contender::from);
        let error = Contender::all_described(&twice).unwrap_err().to_string();
        assert!(error.contains("glimmer"), "{error}");
    }
}
