//! The server, for tests of the programs that need one. Cargo builds the programs of a test's own
//! package before the test, and nothing of other packages, so that the test builds the server
//! itself unless a fresh one is there.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A variable that says that the server has just been built. `cargo test --workspace` builds it,
/// but does not write the list of its sources.
const BUILT: &str = "GLIMMER_SERVER_BUILT";

/// The server's executable. It lies beside `program`, the one under test.
pub fn server_beside(program: &str) -> &'static str {
    static SERVER: OnceLock<String> = OnceLock::new();
    SERVER.get_or_init(|| {
        let folder = Path::new(program).parent().expect("an absolute path");
        let server = folder.join("glimmer");
        if env::var_os(BUILT).is_none() && !is_fresh(&server) {
            build(folder);
        }
        server
            .into_os_string()
            .into_string()
            .expect("a path in UTF-8")
    })
}

/// Whether the executable is newer than each of its sources, which cargo lists in a file beside it.
fn is_fresh(executable: &Path) -> bool {
    let modified = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).ok();
    let Some(built) = modified(executable) else {
        return false;
    };
    let Ok(list) = fs::read_to_string(executable.with_extension("d")) else {
        return false;
    };
    let sources = list.split_once(": ").map_or("", |(_, sources)| sources);
    // As in a makefile, a space inside a name follows a backslash.
    let sources = sources.trim_end().replace("\\ ", "\0");
    let mut sources = sources
        .split(' ')
        .map(|name| PathBuf::from(name.replace('\0', " ")));
    sources.all(|source| modified(&source).is_some_and(|changed| changed <= built))
}

/// Builds the server into this folder, which is named after cargo's profile.
fn build(folder: &Path) {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let target = folder.parent().expect("a folder of the target directory");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Set for tests; build scripts would take them for settings that have changed, and run again.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        cargo.env_remove(name);
    }
    let status = cargo
        .args(["build", "--package", "glimmer", "--bin", "glimmer"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(
        status.expect("cargo runs").success(),
        "the server does not build"
    );
}
