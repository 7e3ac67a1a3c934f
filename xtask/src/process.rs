//! Starts other programs and reports their failures.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the repository")
        .to_owned()
}

/// cargo's target folder.
pub fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// A command that runs the same cargo that runs this program.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    // Set by `cargo run`; a nested cargo would take them for the user's settings.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command
}

/// A command for any other program.
pub fn program(name: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

/// Builds the server and the benchmarks as released.
pub fn released() -> anyhow::Result<()> {
    let wanted = ["-p", "glimmer", "-p", "glimmer-bench", "--bins"];
    run(cargo(&["build", "--release"]).args(wanted))
}

/// Prints where and with what this program was run, as benchmarks do below
/// their tables.
pub fn say_where_measured() -> anyhow::Result<()> {
    let bench = target_dir().join("release/glimmer-bench");
    run(program(bench, &["machine", "cargo", "xtask"]).args(std::env::args_os().skip(1)))
}

/// Runs a command to its end with its output on the terminal. Fails unless the command succeeds.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// Runs `cargo test` to its end with its output on the terminal. The error names the tests that
/// failed.
pub fn run_tests(command: &mut Command) -> anyhow::Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().expect("the output is piped");
    let mut failed = Vec::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if line.starts_with("test ") && line.ends_with("FAILED") {
            failed.push(line.into_owned());
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{command:?}: {status}\n{}", failed.join("\n"));
    }
    Ok(())
}

/// Runs a program until it ends, or until the limit, when it is killed. Returns its status, or
/// `None` at the limit.
pub fn run_until(command: &mut Command, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let start = Instant::now();
    // Short programs are looked at often, and long ones cost nothing.
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(50));
    }
}

/// The CPU time of all programs that were started here and have ended, with what they started.
pub fn cpu_time() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts it");
    let [user, system] = [usage.user_time(), usage.system_time()]
        .map(|time| Duration::new(time.tv_sec() as u64, 1000 * time.tv_usec() as u32));
    user + system
}

/// Whether the search path has the program.
pub fn exists(name: &str) -> bool {
    find(name).is_some()
}

/// The path of a program on the search path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}

/// Installs Debian packages. Fails where that is not possible. Stages that run at the same time
/// take turns.
pub fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    if !exists("apt-get") || !is_root()? {
        bail!("that takes root and apt-get");
    }
    std::fs::create_dir_all(target_dir())?;
    let turn = std::fs::File::create(target_dir().join("apt-get.lock"))?;
    turn.lock()?;
    run(&mut program("apt-get", &["update", "-q"]))?;
    run(program(
        "apt-get",
        &["install", "-q", "-y", "--no-install-recommends"],
    )
    .args(packages)
    .env("DEBIAN_FRONTEND", "noninteractive"))
}

pub fn is_root() -> anyhow::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata("/proc/self")?.uid() == 0)
}

/// The folder of the compiler and the programs that belong to it.
pub fn sysroot() -> anyhow::Result<PathBuf> {
    let output = program("rustc", &["--print", "sysroot"])
        .output()
        .context("cannot start rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// The default target of cargo, such as `x86_64-unknown-linux-gnu`.
pub fn host() -> anyhow::Result<String> {
    let output = program("rustc", &["-vV"])
        .output()
        .context("cannot start rustc")?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .context("rustc does not name its host")
}
