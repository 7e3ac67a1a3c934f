//! Follows documents in a clean root of Debian, as a reader does who pastes what they show: with a
//! clone, real builds, and nothing shortened.

use super::script::{self, Pace};
use super::{blocks, faults};
use crate::package::roots;
use crate::process::{self, program, run};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is followed unless documents are named: the way from nothing to a server in operation.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "docs/benchmarking.md",
    "docs/replacing-memcached.md",
    "docs/operating.md",
];

/// What these documents ask for beside Rust. The root has no network, so it has them beforehand.
const PACKAGES: &[&str] = &[
    "gcc",
    "libc6-dev",
    "ca-certificates",
    "curl",
    "iproute2",
    "memcached",
    "netcat-openbsd",
    "openssl",
    "procps",
    "ssl-cert",
];

/// Two builds of the server and its tools fit, on two cores that others use as well.
const HANGS: Duration = Duration::from_secs(3 * 3600);

/// A document is followed by a shell in the root, with the clone as its folder.
const FOLLOW: &str = r#"set -eu
ip link set lo up
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir -p "$root/opt/rust" "$root/root/.cargo/registry"
mount --bind "$toolchain" "$root/opt/rust"
mount --bind "$registry" "$root/root/.cargo/registry"
exec chroot "$root" /usr/bin/env -i $profile HOME=/root LC_ALL=C.UTF-8 \
    CARGO_NET_OFFLINE=true "out=$out" \
    PATH=/opt/stand-ins:/usr/local/bin:/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c 'cd /root/glimmer && exec bash "$out/script.sh"'
"#;

/// Variables for builds that are soon done.
const UNOPTIMISED: &str = "CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256";

/// Follows these documents one after the other, prints the transcript, and fails if a command does.
pub fn follow(documents: &[PathBuf], is_unoptimised: bool) -> anyhow::Result<()> {
    let profile = if is_unoptimised { UNOPTIMISED } else { "" };
    let chosen = DOCUMENTS.iter().map(PathBuf::from).collect::<Vec<_>>();
    let documents = if documents.is_empty() {
        &chosen
    } else {
        documents
    };
    let folder = process::target_dir().join("documents");
    fs::create_dir_all(&folder)?;
    let root = roots::make(&folder, "clean-root", PACKAGES)?;
    clone_into(&root)?;
    let mut wrong = Vec::new();
    for document in documents {
        println!("==> {}", document.display());
        wrong.extend(follow_one(document, &root, profile)?);
    }
    if !wrong.is_empty() {
        bail!("{} commands fail:\n  {}", wrong.len(), wrong.join("\n  "));
    }
    println!(
        "{} documents were followed without a deviation",
        documents.len()
    );
    Ok(())
}

/// The last commit, as `git clone` would give it, and what stands in for an init.
fn clone_into(root: &Path) -> anyhow::Result<()> {
    let clone = root.join("root/glimmer");
    fs::create_dir_all(&clone)?;
    let archive = root.join("clone.tar");
    run(program("git", &["archive", "HEAD", "-o"]).arg(&archive))?;
    run(program("tar", &["-xf"]).arg(&archive).arg("-C").arg(&clone))?;
    fs::remove_file(&archive)?;
    // The server of another machine, in examples.
    fs::write(
        root.join("etc/hosts"),
        "127.0.0.1 localhost cache.example\n",
    )?;
    let stand_ins = root.join("opt/stand-ins");
    fs::create_dir_all(&stand_ins)?;
    let systemctl = Path::new(super::STAND_INS).join("systemctl");
    fs::copy(systemctl, stand_ins.join("systemctl"))?;
    Ok(())
}

fn follow_one(document: &Path, root: &Path, profile: &str) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(document)?;
    let blocks = blocks::read(&text).with_context(|| document.display().to_string())?;
    let plan = script::write(&blocks, Pace::Full, true);
    let name = document.display().to_string().replace(['/', '.'], "-");
    let out = root.join("out").join(&name);
    fs::create_dir_all(&out)?;
    fs::write(out.join("script.sh"), &plan.text)?;
    let mut command = super::unshare(FOLLOW.to_owned());
    command
        .env("root", root)
        .env("profile", profile)
        .env("out", Path::new("/out").join(&name))
        .env("toolchain", toolchain()?)
        .env("registry", registry()?)
        .stdin(std::process::Stdio::null());
    process::run_until(&mut command, HANGS)?;
    println!("{}", fs::read_to_string(out.join("transcript"))?);
    for skipped in &plan.skipped {
        let (line, reason) = (skipped.block.line, &skipped.reason);
        println!("{}:{line}: not done, {reason}", document.display());
    }
    Ok(faults(document, &plan, &out))
}

/// The folder of the compiler that is in use here.
fn toolchain() -> anyhow::Result<PathBuf> {
    let said = program("rustc", &["--print", "sysroot"]).output()?;
    let path = String::from_utf8(said.stdout).context("a path in UTF-8")?;
    Ok(PathBuf::from(path.trim()))
}

/// The crates that cargo has fetched here.
fn registry() -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    Ok(home.context("cargo has a home")?.join("registry"))
}
