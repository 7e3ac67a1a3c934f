//! A packet program at an interface. Everything that is needed for it is tested before anything is
//! attached.

use super::lookout::Lookout;
use super::setting::{Accelerate, Hook, Sources, masked};
use crate::config::Config;
use glimmer_base::sync::Arc;
use glimmer_hotset::{Memory, Pause};
use glimmer_transport::Interface;
use glimmer_transport::xdp::{Hook as Place, Xdp};
use glimmer_xdp as xdp;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Why a server with a packet program did not start. One line that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", setting.flag())]
pub struct AccelerateError {
    setting: Accelerate,
    /// What was missing.
    pub reason: Refusal,
}

/// What is missing for a packet program.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no interface with this name.
    #[error("there is no such interface; `ip link` lists those of this machine")]
    NoInterface,
    /// The system does not tell about the interface.
    #[error("cannot look at the interface: {0}")]
    Interface(io::Error),
    /// The server has none of the interface's addresses.
    #[error(
        "the server listens for UDP on {listens}, and the interface has {has}: give one of the \
         interface's addresses with -l"
    )]
    NoAddress {
        /// Where the server listens.
        listens: String,
        /// The interface's addresses.
        has: String,
    },
    /// Somebody else has the UDP port at an address that is to be answered for.
    #[error("the UDP port is in use on {0}, so not all requests for it are this server's")]
    InUse(String),
    /// The driver hides to which virtual network a frame belongs.
    #[error(
        "the interface removes VLAN tags, so requests of other networks would be answered: run \
         `{command}`, or use tcx:{name}"
    )]
    VlanTags {
        /// The interface.
        name: String,
        /// What has it keep them.
        command: String,
    },
    /// The process may not attach programs.
    #[error(
        "this needs the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: start as root, and \
         give another user with -u; --accelerate model needs none"
    )]
    NoRights,
    /// The kernel lacks something.
    #[error(
        "the kernel is too old ({0}): xdp: needs Linux 5.18, and tcx: needs Linux 6.6; \
         --accelerate model needs neither"
    )]
    KernelTooOld(&'static str),
    /// There is another XDP program.
    #[error("the interface has another XDP program: detach that, or use tcx:{0} beside it")]
    OtherProgram(String),
    /// The driver has no XDP.
    #[error("the driver has no XDP: xdp:{0} takes the kernel's generic mode instead")]
    NoDriverSupport(String),
    /// The other end of a virtual pair would drop the replies.
    #[error(
        "the other end of this virtual interface drops what a program in the driver sends: attach \
         an XDP program there that passes everything, or use xdp:{0} or tcx:{0}"
    )]
    SendsToNobody(String),
    /// The program makes no body.
    #[error("{0}")]
    Made(String),
    /// Everything else, in one line.
    #[error("{0}; --accelerate model needs no program")]
    Program(String),
}

/// A packet program that is attached. Dropping it detaches the program.
pub(crate) struct Attachment {
    /// It has the program, too, so it goes first.
    lookout: Lookout,
    attached: Arc<xdp::Attached>,
    /// Why the program is not in the driver, if that was wanted.
    not_in_driver: Option<NotInDriver>,
    /// What the operator wanted, for the log.
    setting: Accelerate,
    is_loopback: bool,
    /// What is to be known of the tags of virtual networks.
    of_tags: Option<String>,
    /// Sources for which the program had no place, of those that are not to be answered.
    left_out: usize,
}

impl Attachment {
    /// The slots from which the program answers.
    pub fn memory(&self) -> Arc<Memory> {
        self.attached.memory()
    }

    /// How the program is attached.
    pub fn mode(&self) -> Mode {
        Mode(self.attached.mode())
    }

    /// Why the kernel runs the program after the driver, which is slower.
    pub fn not_in_driver(&self) -> Option<NotInDriver> {
        self.not_in_driver
    }

    /// What the operator should know of an interface at which nobody is answered, that has more
    /// addresses than the program is told, or at which tags may be missing.
    pub fn warnings(&self) -> Vec<String> {
        let nobody = self.is_loopback.then(|| {
            "nothing is answered at this interface, because all requests there come from this \
             machine; --accelerate model answers them"
                .to_owned()
        });
        let left_out = (self.left_out > 0 && !self.is_loopback).then(|| {
            format!(
                "the program cannot be told {} of the interface's addresses, counting those of all \
                 hosts on a link; requests with these as their source are answered like those of \
                 other hosts",
                self.left_out
            )
        });
        let all = nobody
            .into_iter()
            .chain(left_out)
            .chain(self.of_tags.clone());
        all.map(|line| format!("--accelerate {}: {line}", self.setting))
            .collect()
    }

    /// Has the interface looked at soon. Never waits.
    pub fn look_at_interface(&self, now_ms: u64) {
        self.lookout.ask(now_ms);
    }
}

/// Why a program is in the kernel's generic mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotInDriver {
    /// The driver has no XDP.
    NoSupport,
    /// The other end of a virtual pair would drop the replies.
    SendsToNobody,
}

impl fmt::Display for NotInDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotInDriver::NoSupport => "the driver has no XDP",
            NotInDriver::SendsToNobody => {
                "the other end of this virtual interface has no XDP program and would drop the \
                 replies"
            }
        })
    }
}

/// How a packet program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(xdp::Mode);

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            xdp::Mode::Driver => "driver",
            xdp::Mode::Generic => "generic",
            xdp::Mode::Tcx => "tcx",
        })
    }
}

/// Attaches the packet program of this configuration, if it has one. It answers nothing until it is
/// given keys. Nothing is attached if this fails.
pub(crate) fn attach(config: &Config, seed: u64) -> Result<Option<Attachment>, AccelerateError> {
    let Accelerate::At { hook, interface } = &config.accelerate else {
        return Ok(None);
    };
    let attached = find(interface)
        .and_then(|found| attach_at(config, *hook, &found, seed))
        .map_err(|reason| refused(config, reason))?;
    Ok(Some(attached))
}

/// The error of a configuration.
pub(crate) fn refused(config: &Config, reason: Refusal) -> AccelerateError {
    AccelerateError {
        setting: config.accelerate.clone(),
        reason,
    }
}

fn find(name: &str) -> Result<Interface, Refusal> {
    let interface = Interface::named(name).map_err(Refusal::Interface)?;
    interface.ok_or(Refusal::NoInterface)
}

fn attach_at(
    config: &Config,
    hook: Hook,
    interface: &Interface,
    seed: u64,
) -> Result<Attachment, Refusal> {
    let served = served(&config.udp, interface)?;
    // The tcx hook is told of tags that were removed, and XDP is not.
    if let Some(command) = interface.tags_command()
        && hook != Hook::Tcx
    {
        let name = interface.name.clone();
        return Err(Refusal::VlanTags { name, command });
    }
    let redirects = redirects(config, interface);
    let redirection = |mode| redirects.map(|to| to.program_settings(place(mode), interface.mac));
    let (not_hosts, left_out) = that_fit(not_hosts(interface, &served));
    let settings = |mode| xdp::Settings {
        // The kernel has told the interface's figures before.
        redirection: redirection(mode).and_then(Result::ok),
        ifindex: interface.index,
        mode,
        slots: config.accelerate_slots,
        seed,
        // They all have the same one: `Config::check`.
        port: config.udp[0].port(),
        mac: interface.mac,
        addresses: served.clone(),
        sources: sources(&config.accelerate_from, interface),
        not_hosts: not_hosts.clone(),
        links: interface.addresses.clone(),
    };
    let attach = |mode| xdp::attach(&settings(mode));
    let generic = |reason| attach(xdp::Mode::Generic).map(|attached| (attached, Some(reason)));
    let sends_to_nobody = || xdp::sends_to_nobody(interface.index);
    let attached = match hook {
        Hook::Xdp if redirects.is_some_and(Xdp::is_generic) => {
            attach(xdp::Mode::Generic).map(|attached| (attached, None))
        }
        Hook::Tcx => attach(xdp::Mode::Tcx).map(|attached| (attached, None)),
        Hook::XdpNative => match sends_to_nobody() {
            Ok(true) => return Err(Refusal::SendsToNobody(interface.name.clone())),
            Ok(false) => attach(xdp::Mode::Driver).map(|attached| (attached, None)),
            Err(error) => Err(error),
        },
        Hook::Xdp => match sends_to_nobody() {
            Ok(true) => generic(NotInDriver::SendsToNobody),
            Ok(false) => match attach(xdp::Mode::Driver) {
                Err(xdp::Error::NoDriverSupport) => generic(NotInDriver::NoSupport),
                attached => attached.map(|attached| (attached, None)),
            },
            Err(error) => Err(error),
        },
    };
    let name = interface.name.clone();
    let (mut attached, not_in_driver) = attached.map_err(|error| match error {
        xdp::Error::NoRights => Refusal::NoRights,
        xdp::Error::KernelTooOld(reason) => Refusal::KernelTooOld(reason),
        xdp::Error::OtherProgram => Refusal::OtherProgram(name),
        xdp::Error::NoDriverSupport => Refusal::NoDriverSupport(name),
        xdp::Error::NoInterface => Refusal::NoInterface,
        error => Refusal::Program(in_one_line(&error.to_string())),
    })?;
    if let Some((to, program)) = redirects.zip(attached.take_redirection()) {
        to.give_program(program, place(attached.mode()));
    }
    let attached = Arc::new(attached);
    let setting = config.accelerate.clone();
    Ok(Attachment {
        lookout: look_out(attached.clone(), setting.clone())
            .map_err(|error| Refusal::Program(format!("cannot start a thread: {error}")))?,
        attached,
        not_in_driver,
        setting,
        is_loopback: is_loopback(interface),
        // The tcx hook is told of tags. What shares the interface says the same.
        of_tags: interface
            .tags_warning()
            .filter(|_| hook != Hook::Tcx && redirects.is_none()),
        left_out,
    })
}

/// Once the interface has gone, the log says so, and so does the memory.
fn look_out(attached: Arc<xdp::Attached>, setting: Accelerate) -> io::Result<Lookout> {
    let memory = attached.memory();
    let gone = move || {
        memory.control().pause(Pause::DeviceLost.bit());
        tracing::warn!(
            "--accelerate {setting}: the interface has gone, and all reads go to the server; \
             restart it when the interface is back"
        );
    };
    Lookout::start(move || attached.has_interface(), gone)
}

/// What takes datagrams past the kernel's stack at the same interface. The interface has one
/// program, so the redirection is a part of the accelerator's then.
fn redirects<'a>(config: &'a Config, interface: &Interface) -> Option<&'a Xdp> {
    let is_here = config.packets.interface() == Some(&interface.name);
    Xdp::of(&*config.packets).filter(|_| is_here)
}

/// Where the redirection is in a packet's way.
fn place(mode: xdp::Mode) -> Place {
    match mode {
        xdp::Mode::Driver => Place::Driver,
        xdp::Mode::Generic | xdp::Mode::Tcx => Place::Generic,
    }
}

/// The first and the last line of an error that has several.
fn in_one_line(error: &str) -> String {
    let mut lines = error.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first} ... {last}"),
        None => first.to_owned(),
    }
}

/// The interface's addresses at which the server listens.
fn served(udp: &[SocketAddr], interface: &Interface) -> Result<Vec<IpAddr>, Refusal> {
    let listens_on = |ip: IpAddr| {
        udp.iter().any(|at| match at.ip() {
            at if at.is_unspecified() => at.is_ipv4() == ip.is_ipv4(),
            at => at == ip,
        })
    };
    let addresses = interface.addresses.iter().map(|&(ip, _)| ip);
    let served: Vec<IpAddr> = addresses.clone().filter(|ip| listens_on(*ip)).collect();
    match served.is_empty() {
        true => Err(Refusal::NoAddress {
            listens: list(udp.iter().map(SocketAddr::ip)),
            has: list(addresses),
        }),
        false => Ok(served),
    }
}

/// Of the interface's addresses and its links, what a request cannot come from, whether the server
/// listens there or not. Over IPv4, the kernel drops such a request, too. Addresses that are served
/// come first.
fn not_hosts(interface: &Interface, served: &[IpAddr]) -> Vec<IpAddr> {
    let all_hosts = |ip: Ipv4Addr, bits: u8| {
        // All bits after the prefix are one. A link of two hosts has no such address.
        let rest = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
        (bits < 31).then(|| Ipv4Addr::from(ip.to_bits() | rest).into())
    };
    let addresses = interface.addresses.iter();
    let not_hosts = addresses.flat_map(|&(ip, bits)| match ip {
        IpAddr::V4(v4) => [Some(ip), all_hosts(v4, bits)],
        IpAddr::V6(_) => [Some(ip), None],
    });
    let mut not_hosts: Vec<IpAddr> = not_hosts.flatten().collect();
    not_hosts.sort_unstable_by_key(|ip| (!served.contains(ip), *ip));
    not_hosts.dedup();
    not_hosts
}

/// The first ones of each family, for which the program has places, and the number of the others.
fn that_fit(not_hosts: Vec<IpAddr>) -> (Vec<IpAddr>, usize) {
    let (mut v4, mut v6): (Vec<_>, Vec<_>) = not_hosts.iter().partition(|ip| ip.is_ipv4());
    v4.truncate(xdp::NOT_HOSTS_MAX);
    v6.truncate(xdp::NOT_HOSTS_MAX);
    let left_out = not_hosts.len() - v4.len() - v6.len();
    (v4.into_iter().chain(v6).collect(), left_out)
}

fn list(addresses: impl Iterator<Item = IpAddr>) -> String {
    let addresses: Vec<_> = addresses.map(|ip| ip.to_string()).collect();
    match addresses.is_empty() {
        true => "no address".to_owned(),
        false => addresses.join(" and "),
    }
}

/// Whether an interface is that of the machine to itself, where each source is its own address.
fn is_loopback(interface: &Interface) -> bool {
    let mut addresses = interface.addresses.iter();
    addresses.any(|(ip, _)| ip.is_loopback())
}

fn sources(wanted: &Sources, interface: &Interface) -> xdp::Sources {
    match wanted {
        Sources::Any => xdp::Sources::Any,
        Sources::Networks(networks) => xdp::Sources::Networks(networks.clone()),
        Sources::OnLink => {
            let on_link = interface.addresses.iter();
            let mut networks: Vec<_> = on_link
                .map(|&(ip, bits)| (masked(ip, bits), bits))
                .collect();
            networks.sort_unstable();
            networks.dedup();
            xdp::Sources::Networks(networks)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr as _;

    fn interface() -> Interface {
        let address = |text: &str, bits| (text.parse().unwrap(), bits);
        Interface {
            name: "eth0".into(),
            index: 2,
            mac: [2, 0, 0, 0, 0, 1],
            addresses: vec![
                address("10.1.2.3", 24),
                address("10.1.2.4", 24),
                address("fd00::3", 64),
            ],
            of_host: Vec::new(),
            driver: String::new(),
            strips_tags: Vec::new(),
        }
    }

    fn served_at(udp: &[&str]) -> Result<Vec<String>, String> {
        let udp: Vec<_> = udp.iter().map(|at| at.parse().unwrap()).collect();
        let served = served(&udp, &interface()).map_err(|refusal| refusal.to_string())?;
        Ok(served.iter().map(IpAddr::to_string).collect())
    }

    #[test]
    fn only_addresses_that_both_have_are_answered_for() {
        let v4 = ["10.1.2.3", "10.1.2.4"].map(str::to_owned);
        assert_eq!(served_at(&["0.0.0.0:1"]), Ok(v4.to_vec()));
        assert_eq!(served_at(&["[::]:1"]), Ok(vec!["fd00::3".to_owned()]));
        assert_eq!(served_at(&["0.0.0.0:1", "[::]:1"]).unwrap().len(), 3);
        assert_eq!(
            served_at(&["10.1.2.4:1", "127.0.0.1:1"]),
            Ok(vec!["10.1.2.4".to_owned()])
        );
        let refusal = served_at(&["127.0.0.1:1"]).unwrap_err();
        assert!(
            refusal.starts_with(
                "the server listens for UDP on 127.0.0.1, and the interface has 10.1.2.3 and"
            ) && refusal.ends_with("with -l"),
            "{refusal}"
        );
    }

    #[test]
    fn the_loopback_interface_is_told_from_others() {
        assert!(!is_loopback(&interface()));
        let addresses = vec![("127.0.0.1".parse().unwrap(), 8)];
        assert!(is_loopback(&Interface {
            addresses,
            ..interface()
        }));
    }

    #[test]
    fn hosts_on_the_link_are_answered_unless_others_are_named() {
        let networks = [
            ("10.1.2.0".parse().unwrap(), 24),
            ("fd00::".parse().unwrap(), 64),
        ];
        assert_eq!(
            sources(&Sources::OnLink, &interface()),
            xdp::Sources::Networks(networks.into())
        );
        assert_eq!(sources(&Sources::Any, &interface()), xdp::Sources::Any);
    }

    #[test]
    fn a_request_comes_neither_from_us_nor_from_all_hosts() {
        let addresses = [
            ("10.1.2.3", 24),
            ("10.1.2.4", 24),
            ("10.9.9.9", 32),
            ("10.8.0.0", 31),
            ("fd00::1", 64),
            ("fe80::1", 64),
        ];
        let interface = Interface {
            addresses: addresses
                .map(|(ip, bits)| (ip.parse().unwrap(), bits))
                .into(),
            ..interface()
        };
        let not_hosts = not_hosts(&interface, &["10.1.2.4".parse().unwrap()]);
        let texts: Vec<String> = not_hosts.iter().map(IpAddr::to_string).collect();
        assert_eq!(
            texts,
            [
                "10.1.2.4",
                "10.1.2.3",
                "10.1.2.255",
                "10.8.0.0",
                "10.9.9.9",
                "fd00::1",
                "fe80::1"
            ]
        );
    }

    #[test]
    fn of_many_addresses_those_that_are_served_are_kept() {
        let v4 = (1..=80).map(|host| IpAddr::from([10, 1, 2, host]));
        let v6 = IpAddr::from_str("fd00::3").unwrap();
        let served: Vec<IpAddr> = v4.clone().skip(70).collect();
        let interface = Interface {
            addresses: v4.map(|ip| (ip, 24)).chain([(v6, 64)]).collect(),
            ..interface()
        };
        // The address of all hosts is one more.
        let (kept, left_out) = that_fit(not_hosts(&interface, &served));
        assert_eq!((kept.len(), left_out), (64 + 1, 80 + 1 - 64));
        assert!(kept.starts_with(&served) && kept.ends_with(&[v6]));
        assert_eq!(that_fit(kept.clone()), (kept, 0));
    }

    #[test]
    fn an_error_of_many_lines_becomes_one() {
        assert_eq!(in_one_line("refused"), "refused");
        assert_eq!(
            in_one_line("refused: 0:\n1: R1\ntoo long\n\n"),
            "refused: 0: ... too long"
        );
    }

    #[test]
    fn each_refusal_is_one_line_that_says_what_to_do() {
        let refusals = [
            (Refusal::NoInterface, "ip link"),
            (
                Refusal::VlanTags {
                    name: "eth0".into(),
                    command: "ethtool -K eth0 rxvlan off".into(),
                },
                "ethtool -K eth0 rxvlan off",
            ),
            (Refusal::NoRights, "start as root"),
            (Refusal::KernelTooOld("no links"), "(no links)"),
            (Refusal::OtherProgram("eth0".into()), "tcx:eth0"),
            (Refusal::NoDriverSupport("eth0".into()), "xdp:eth0"),
            (
                Refusal::SendsToNobody("eth0".into()),
                "use xdp:eth0 or tcx:eth0",
            ),
        ];
        for (reason, part) in refusals {
            let setting = "xdp-native:eth0".parse().unwrap();
            let line = AccelerateError { setting, reason }.to_string();
            assert!(line.starts_with("--accelerate xdp-native:eth0: "), "{line}");
            assert!(line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
