//! `glimmer bench` and similar commands run the neighbouring program. A link to the shell stands in
//! for that program: it prints its arguments and does what they say.

use std::{
    fs,
    io::Write,
    os::unix::{fs::symlink, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A folder with the server and these programs.
struct Installed {
    folder: TempDir,
}

impl Installed {
    fn with(programs: &[&str]) -> Installed {
        // On the file system of the executable, because hard links cannot cross file systems.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::hard_link(env!("CARGO_BIN_EXE_glimmer"), folder.path().join("glimmer")).unwrap();
        for program in programs {
            symlink("/bin/sh", folder.path().join(program)).unwrap();
        }
        Installed { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn server(&self) -> PathBuf {
        self.path().join("glimmer")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(self.server())
            .args(arguments)
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn arguments_input_and_exit_code_are_passed_on() {
    let installed = Installed::with(&["glimmer-bench", "glimmer-top"]);
    for command in ["bench", "top"] {
        let script = r#"printf '%s|' "$0" "$@"; cat; echo complaint >&2; exit 7"#;
        let mut child = Command::new(installed.server())
            .args([
                command, "-c", script, "first", "--help", "-x", "--", "last one",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"input").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(text(&output.stdout), "first|--help|-x|--|last one|input");
        assert_eq!(text(&output.stderr), "complaint\n");
    }
}

#[test]
fn the_program_takes_the_servers_place_so_that_signals_reach_it() {
    let installed = Installed::with(&["glimmer-bench"]);
    let child = Command::new(installed.server())
        .args(["bench", "-c", "echo $$; kill -TERM $$"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), format!("{pid}\n"));
    assert_eq!(output.status.signal(), Some(15));
}

#[test]
fn the_program_is_looked_for_beside_the_file_that_a_link_leads_to() {
    let (installed, elsewhere) = (Installed::with(&["glimmer-top"]), TempDir::new().unwrap());
    let link = elsewhere.path().join("cache");
    symlink(installed.server(), &link).unwrap();
    let output = Command::new(&link)
        .args(["top", "-c", "echo here"])
        .output();
    assert_eq!(text(&output.unwrap().stdout), "here\n");
}

#[test]
fn a_program_that_is_missing_is_told_with_the_command_that_builds_it() {
    let installed = Installed::with(&[]);
    for (arguments, program) in [
        (&["bench", "load"][..], "glimmer-bench"),
        (&["figure", "list"], "glimmer-bench"),
        (&["help", "bench"], "glimmer-bench"),
        (&["top"], "glimmer-top"),
    ] {
        let output = installed.run(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{complaint}");
        let start = format!("glimmer: the program {program} is not in ");
        let command = format!("build it: cargo build --release -p {program}");
        assert!(complaint.starts_with(&start), "{complaint}");
        assert!(complaint.contains(&command), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
fn under_memcacheds_name_there_are_no_such_commands() {
    let installed = Installed::with(&["glimmer-bench"]);
    let memcached = installed.path().join("memcached");
    symlink(installed.server(), &memcached).unwrap();
    let output = Command::new(&memcached)
        .args(["bench", "-c", "true"])
        .output();
    assert_eq!(output.unwrap().status.code(), Some(1));
}
