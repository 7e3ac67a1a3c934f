//! Whether the addresses are free, and who has them.

use super::finding::Finding;
use super::system::System;
use glimmer_server::Config;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

pub fn all(config: &Config, on: &System) -> Vec<Finding> {
    if let Some(unix) = &config.unix {
        return vec![socket(&unix.path)];
    }
    if let Err(error) = config.check_ports() {
        let advice = "give one of them another port";
        return vec![Finding::fault("addresses", error.to_string(), advice)];
    }
    let tcp = |address: &SocketAddr| TcpListener::bind(address).map(drop);
    let udp = |address: &SocketAddr| UdpSocket::bind(address).map(drop);
    let findings = [
        of("TCP", "-p or -l", &config.tcp, &config.tcp_names, tcp, on),
        of("UDP", "-U or -l", &config.udp, &config.udp_names, udp, on),
        of("native UDP", "--native-port", &native(config), &[], udp, on),
        of("HTTP", "--http", &config.http, &[], tcp, on),
    ];
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    if findings.is_empty() {
        findings.push(Finding::hint(
            "addresses",
            "the server would listen on no port",
            "give -p, -U, -s or --native-port",
        ));
    }
    findings
}

/// The addresses of native clients: a port for each worker, unless one is for all.
fn native(config: &Config) -> Vec<SocketAddr> {
    let ports = match config.native_single_port {
        true => 1,
        false => config.workers as u16,
    };
    let of = |first: &SocketAddr| {
        let (ip, port) = (first.ip(), first.port());
        (0..ports).map(move |nth| SocketAddr::new(ip, port.saturating_add(nth)))
    };
    match config.native.iter().any(|address| address.port() == 0) {
        true => config.native.clone(),
        false => config.native.iter().flat_map(of).collect(),
    }
}

/// The addresses of one kind. Of those of one name, one has to be free.
fn of(
    about: &'static str,
    flags: &str,
    addresses: &[SocketAddr],
    names: &[usize],
    bind: impl Fn(&SocketAddr) -> io::Result<()>,
    on: &System,
) -> Option<Finding> {
    let tried: Vec<(usize, &SocketAddr, io::Result<()>)> = addresses
        .iter()
        .enumerate()
        .map(|(at, address)| (names.get(at).copied().unwrap_or(at), address, bind(address)))
        .collect();
    let list = |is_wanted: &dyn Fn(&io::Result<()>) -> bool| {
        let wanted = tried.iter().filter(|(_, _, tried)| is_wanted(tried));
        let texts = wanted.map(|(_, address, _)| address.to_string());
        texts.collect::<Vec<_>>().join(" and ")
    };
    let fails = |(name, _, result): &&(usize, _, io::Result<()>)| {
        let has_name = |it: &&(usize, &SocketAddr, io::Result<()>)| it.0 == *name;
        let is_skipped = || tried.iter().filter(has_name).any(|it| it.2.is_ok());
        let error = result.as_ref().err();
        error.is_some_and(|it| it.kind() != ErrorKind::AddrInUse || !is_skipped())
    };
    let Some((_, address, Err(error))) = tried.iter().find(fails) else {
        let free = list(&Result::is_ok);
        let taken = list(&Result::is_err);
        return match (free.is_empty(), taken.is_empty()) {
            (true, _) => None,
            (false, true) => Some(Finding::ok(about, format!("{free}: free"))),
            (false, false) => Some(Finding::hint(
                about,
                format!("{free}: free; {taken}: another process has it"),
                "the server would use what is free",
            )),
        };
    };
    let (found, advice) = match error.kind() {
        ErrorKind::AddrInUse => {
            let owner = owner(address.port(), about.ends_with("UDP"), on);
            let owner = owner.unwrap_or_else(|| "another process".to_owned());
            (
                format!("{address}: {owner} has it"),
                format!("end that one, or choose another ({flags})"),
            )
        }
        ErrorKind::PermissionDenied => (
            format!("{address}: ports below 1024 are root's"),
            format!("choose another port ({flags}), or start as root with -u USER"),
        ),
        ErrorKind::AddrNotAvailable => (
            format!("{address}: not an address of this machine"),
            format!("`ip address` lists them; choose one ({flags})"),
        ),
        _ => (
            format!("{address}: {error}"),
            format!("choose another ({flags})"),
        ),
    };
    Some(Finding::fault(about, found, advice))
}

/// The process with a socket at a port, as far as this one may see that: its name and number.
fn owner(port: u16, is_udp: bool, on: &System) -> Option<String> {
    let protocol = if is_udp { "udp" } else { "tcp" };
    let tables = ["", "6"].map(|family| on.text(&format!("proc/net/{protocol}{family}")));
    let tables = tables.into_iter().flatten().collect::<Vec<_>>().join("\n");
    let inodes: Vec<String> = tables
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (_, local) = words.get(1)?.rsplit_once(':')?;
            let is_port = u16::from_str_radix(local, 16) == Ok(port);
            // A TCP socket that listens, or a UDP socket without a peer.
            let is_open = matches!(*words.get(3)?, "0A" | "07");
            (is_port && is_open).then(|| format!("socket:[{}]", words[9]))
        })
        .collect();
    let processes = on.names(Path::new("proc"));
    let processes = processes.iter().filter(|name| name.parse::<u32>().is_ok());
    for process in processes {
        let folder = Path::new("proc").join(process).join("fd");
        for file in on.names(&folder) {
            let target = std::fs::read_link(on.path("").join(&folder).join(file));
            let is_it = |target: &Path| inodes.iter().any(|inode| Path::new(inode) == target);
            if target.is_ok_and(|target| is_it(&target)) {
                let name = on.text(&format!("proc/{process}/comm")).unwrap_or_default();
                return Some(format!("{name} (process {process})"));
            }
        }
    }
    None
}

/// The Unix socket of `-s`.
fn socket(path: &Path) -> Finding {
    const ABOUT: &str = "Unix socket";
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let is_socket = |it: Metadata| it.file_type().is_socket();
    match path.symlink_metadata().map(is_socket) {
        Ok(true) if UnixStream::connect(path).is_ok() => Finding::hint(
            ABOUT,
            format!("{}: another process listens there", path.display()),
            "end that one, which clients would not reach any more, or choose another path (-s)",
        ),
        Ok(false) => Finding::fault(
            ABOUT,
            format!("{}: what lies there is no socket", path.display()),
            "remove it, or choose another path (-s)",
        ),
        _ if folder.is_dir() => Finding::ok(ABOUT, path.display().to_string()),
        _ => Finding::fault(
            ABOUT,
            format!(
                "{}: there is no folder {}",
                path.display(),
                folder.display()
            ),
            "make it, or choose another path (-s)",
        ),
    }
}
