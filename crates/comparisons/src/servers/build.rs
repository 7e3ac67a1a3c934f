//! What the tables say about a server: its version, and how it was built.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::{Path, PathBuf},
};

use memchr::memmem;
use serde::Serialize;

/// A server of a comparison, for the reader of its tables.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// Its name in tables.
    pub server: String,
    /// The first line of its version command.
    pub version: String,
    /// Its executable.
    pub program: PathBuf,
    /// How it was built.
    pub build: Build,
    /// What it answers to `stats settings`, if it was asked and has an answer.
    pub settings: BTreeMap<String, String>,
    /// The version and the cipher, if it was driven over TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
}

impl fmt::Display for Described {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}, {}", self.server, self.version, self.build)?;
        let requests = self.settings.get("reqs_per_event");
        if let Some(requests) = requests.filter(|_| self.version.starts_with("memcached ")) {
            write!(out, ", -R {requests}")?;
        }
        // memcached tells settings of TLS only if it was built with it.
        let has_tls = self.settings.contains_key("ssl_enabled");
        match &self.tls {
            Some(tls) => write!(out, ", driven over {tls}"),
            None if has_tls => out.write_str(", with TLS, driven without"),
            None => Ok(()),
        }
    }
}

/// Lists servers, one to a line.
pub fn list(servers: &[Described], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(out, "Servers:\n")?;
    servers
        .iter()
        .try_for_each(|server| writeln!(out, "- {server}"))?;
    writeln!(out)
}

/// What an executable says about how it was built. A stripped one says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Build {
    /// The compiler, from the section `.comment`.
    pub compiler: Option<String>,
    /// The compiler's flags, from the debug information. Parts that were compiled with different
    /// flags, such as libraries, have an entry each.
    pub flags: Vec<String>,
}

impl Build {
    /// That of an executable. One that cannot be read says nothing.
    pub fn of(program: &Path) -> Build {
        Build::said_in(&fs::read(program).unwrap_or_default())
    }

    /// Whether an executable calls OpenSSL.
    pub fn has_openssl(program: &Path) -> bool {
        let bytes = fs::read(program).unwrap_or_default();
        memmem::find(&bytes, b"SSL_CTX_new").is_some()
    }

    fn said_in(bytes: &[u8]) -> Build {
        let compilers = ["rustc version ", "clang version ", "GCC: ("];
        let compiler = compilers.iter().flat_map(|start| texts(bytes, start));
        // GCC names itself with its version at the end, the others with theirs after the name.
        let has_version = |text: &String| text.contains(|letter: char| letter.is_ascii_digit());
        // `DW_AT_producer` of GCC: the language, the version and the flags. With optimization at
        // link time, the language is GIMPLE.
        let producers = ["GNU C", "GNU GIMPLE "];
        let flags = producers.iter().flat_map(|start| texts(bytes, start));
        let flags = flags.filter_map(|producer| {
            let at = producer.find(" -")?;
            Some(producer[at + 1..].to_owned())
        });
        Build {
            compiler: compiler.into_iter().find(has_version),
            flags: flags.collect::<BTreeSet<_>>().into_iter().collect(),
        }
    }

    /// The flags that decide about speed, each combination once.
    fn optimization(&self) -> Vec<String> {
        let decides = |word: &&str| {
            ["-O", "-flto", "-march="]
                .iter()
                .any(|at| word.starts_with(at))
        };
        let of = |flags: &String| {
            let words: BTreeSet<&str> = flags.split(' ').filter(decides).collect();
            words.into_iter().collect::<Vec<_>>().join(" ")
        };
        let each: BTreeSet<String> = self.flags.iter().map(of).collect();
        each.into_iter().filter(|flags| !flags.is_empty()).collect()
    }
}

/// The texts in an executable that begin in this way.
fn texts(bytes: &[u8], start: &str) -> Vec<String> {
    let texts = memmem::find_iter(bytes, start).filter_map(|at| {
        let end = memchr::memchr(0, &bytes[at..])?;
        String::from_utf8(bytes[at..at + end].to_vec()).ok()
    });
    texts.collect()
}

impl fmt::Display for Build {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = self.optimization().join("; ");
        match &self.compiler {
            None if flags.is_empty() => out.write_str("which does not say how it was built"),
            Some(compiler) if flags.is_empty() => write!(out, "built by {compiler}"),
            None => write!(out, "built with {flags}"),
            Some(compiler) => write!(out, "built by {compiler} with {flags}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_and_its_flags_are_found() {
        let said = |bytes: &[u8]| Build::said_in(bytes).to_string();
        assert_eq!(
            said(b"\x7fELFGCC: (Debian 12.2.0) 12.2.0\0GNU C17 12.2.0 -march=x86-64 -g -O2\0"),
            "built by GCC: (Debian 12.2.0) 12.2.0 with -O2 -march=x86-64"
        );
        assert_eq!(
            said(b"\0GNU GIMPLE 12.2.0 -g -O3 -flto=auto\0GNU C11 12.2.0 -g -Os\0GNU C++\0"),
            "built with -O3 -flto=auto; -Os"
        );
        assert_eq!(
            said(b"\0rustc version 1.93.0 (abc 2026-01-01)\0"),
            "built by rustc version 1.93.0 (abc 2026-01-01)"
        );
        let nothing = "which does not say how it was built";
        assert_eq!(said(b"GCC: (unknown)\0"), nothing);
        assert_eq!(Build::of(Path::new("/no/such/file")).to_string(), nothing);
    }

    #[test]
    fn tls_is_told_where_it_is_used_and_where_memcached_tells_its_settings() {
        let mut memcached = Described {
            server: "newest".to_owned(),
            version: "memcached 1.6.45".to_owned(),
            program: PathBuf::new(),
            build: Build::default(),
            settings: BTreeMap::new(),
            tls: None,
        };
        assert!(!memcached.to_string().contains("TLS"), "{memcached}");
        let setting = ("ssl_enabled".to_owned(), "no".to_owned());
        memcached.settings.extend([setting]);
        let text = memcached.to_string();
        assert!(text.ends_with("with TLS, driven without"), "{text}");
        memcached.tls = Some("TLS 1.3".to_owned());
        let text = memcached.to_string();
        assert!(text.ends_with("driven over TLS 1.3"), "{text}");
    }
}
