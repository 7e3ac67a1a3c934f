//! A server whose packet program cannot be attached does not start. It says why in one line, and
//! leaves nothing attached.

use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use crate::link::{Driver, Link, has};
use crate::reader::make_hot;
use crate::server::{PORT, Server, command};

/// Requires that a server ends, with one line that has these parts.
#[track_caller]
fn expect_refusal(link: &Link, server: Result<Server, String>, lines: &[&str]) {
    let line = server.err().expect("it does not start");
    for part in lines {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    assert_eq!(link.programs(), [0; 0], "after {line}");
}

/// Starts a server that ends with an error.
fn start(link: &Link, body: &str, arguments: &[&str]) -> Result<Server, String> {
    start_at(link, body, PORT, arguments)
}

fn start_at(link: &Link, body: &str, port: u16, arguments: &[&str]) -> Result<Server, String> {
    let mut server = Server::begin_at_port(link, body, port, arguments);
    let waited = server.wait();
    let errors = server.lines();
    let errors = errors.iter().filter(|line| !line.contains("WARN"));
    let errors: Vec<_> = errors.collect();
    assert!(waited.is_ok() || errors.len() == 1, "{errors:?}");
    waited.map(|()| server)
}

#[test]
fn what_the_settings_lack_is_said() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    for (arguments, part) in [
        (&["-U", "0"][..], "give its port with -U"),
        (&["-U", "-1"], "give its number with -U"),
        (&["-B", "ascii"], "leave -B out"),
        (
            &["--accelerate", "xdp:other"],
            "there is no such interface; `ip link`",
        ),
        (&["--accelerate-slots", "255"], "256 to 65536"),
    ] {
        expect_refusal(&link, start(&link, "xdp", arguments), &[part]);
    }
}

#[test]
fn what_the_interface_lacks_is_said() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let other = ["-l", Link::OTHER_ADDRESS];
    let parts = [
        "listens for UDP on 10.78.0.1, and the interface has 10.77.0.1",
        "with -l",
    ];
    expect_refusal(&link, start(&link, "tcx", &other), &parts);
    link.set_vlan_stripping(true);
    for body in ["xdp", "xdp-native"] {
        let parts = [
            "removes VLAN tags",
            "`ethtool -K server rxvlan off`",
            "tcx:server",
        ];
        expect_refusal(&link, start(&link, body, &[]), &parts);
    }
    // The tcx hook is told of tags.
    if let Some(mut server) = has(Server::at(&link, "tcx", &[])) {
        server.stop();
    }
}

/// Every source is an address of the machine itself.
#[test]
fn nobody_is_answered_at_the_loopback_interface() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let arguments = ["--accelerate", "tcx:lo", "-l", "127.0.0.1"];
    let Some(mut server) = has(Server::at(&link, "tcx", &arguments)) else {
        return;
    };
    assert!(server.stop().success());
    let lines = server.lines();
    let says_so = |line: &String| line.contains("--accelerate tcx:lo: nothing is answered at this");
    assert!(lines.iter().any(says_so), "{lines:?}");
}

#[test]
fn a_driver_without_xdp_is_not_native() {
    let Some(link) = Link::make(Driver::Plain) else {
        return;
    };
    let Some(mut server) = has(Server::at(&link, "xdp", &[])) else {
        return;
    };
    assert!(server.stop().success());
    let lines = server.lines();
    let says_so = |line: &String| line.contains("the driver has no XDP, so the kernel's generic");
    assert!(lines.iter().any(says_so), "{lines:?}");
    let parts = [
        "the driver has no XDP",
        "xdp:server takes the kernel's generic mode",
    ];
    expect_refusal(&link, start(&link, "xdp-native", &[]), &parts);
}

/// The other end of a virtual pair drops what a program in the driver sends, unless it has a
/// program itself.
#[test]
fn replies_that_would_be_dropped_are_not_sent_from_the_driver() {
    let Some(link) = Link::make(Driver::SendsToNobody) else {
        return;
    };
    let Some(mut server) = has(Server::at(&link, "xdp", &[])) else {
        return;
    };
    let mode = server.text_figure("stats accelerator", "mode");
    assert_eq!(mode, "generic");
    make_hot(&server, "a", "1");
    assert!(server.stop().success());
    let lines = server.lines();
    let says_so = |line: &String| line.contains("would drop the replies, so the kernel's generic");
    assert!(lines.iter().any(says_so), "{lines:?}");
    let parts = [
        "drops what a program in the driver sends",
        "use xdp:server or tcx:server",
    ];
    expect_refusal(&link, start(&link, "xdp-native", &[]), &parts);
}

#[test]
fn another_program_keeps_its_place() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let Some(mut first) = has(Server::at(&link, "xdp", &[])) else {
        return;
    };
    let programs = link.programs();
    for body in ["xdp", "xdp-native"] {
        let second = start_at(&link, body, PORT + 1, &[]);
        let error = second.err().expect("it does not start");
        assert!(error.contains("another XDP program"), "{error}");
        assert!(error.contains("use tcx:server beside it"), "{error}");
        assert_eq!(link.programs(), programs);
    }
    let mut second = Server::begin_at_port(&link, "tcx", PORT + 1, &[]);
    if has(second.wait()).is_some() {
        assert_eq!(link.programs().len(), programs.len() + 1);
        assert!(second.stop().success());
    }
    assert!(first.stop().success());
    assert_eq!(link.programs(), [0; 0]);
}

/// Addresses are bound after the program was attached.
#[test]
fn a_port_in_use_leaves_nothing_attached() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    if has(Server::at(&link, "xdp", &[])).is_none() {
        return;
    }
    let udp = link.beyond(|| UdpSocket::bind(("0.0.0.0", PORT)).unwrap());
    let parts = ["--accelerate xdp:server: the UDP port is in use on 0.0.0.0:11211"];
    expect_refusal(&link, start(&link, "xdp", &[]), &parts);
    drop(udp);
    let tcp = link.beyond(|| TcpListener::bind(("10.77.0.1", PORT)).unwrap());
    let own = ["-l", "10.77.0.1"];
    let started = link.beyond(|| {
        let mut server = Server::spawn(at_interface(&own), vec!["10.77.0.1:1".parse().unwrap()]);
        server.wait().map(|()| server)
    });
    expect_refusal(&link, started, &["cannot listen on 10.77.0.1:11211"]);
    drop(tcp);
}

#[test]
fn without_rights_only_the_model_runs() {
    let Some(link) = Link::make(Driver::Xdp) else {
        return;
    };
    let with_rights = |rights: &str, arguments: &[&str]| {
        let inner = at_interface(arguments);
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", rights]);
        command.arg(inner.get_program()).args(inner.get_args());
        let address = Link::SERVER_ADDRESSES.map(|ip| (ip, PORT).into());
        let mut server = link.beyond(|| Server::spawn(command, address.to_vec()));
        server.wait().map(|()| server)
    };
    let parts = [
        "CAP_BPF",
        "CAP_PERFMON",
        "CAP_NET_ADMIN",
        "start as root",
        "model needs none",
    ];
    let insufficient = [
        "-all",
        "-all,+bpf,+perfmon",
        "-all,+net_admin",
        "-all,+bpf,+net_admin",
    ];
    for rights in insufficient {
        expect_refusal(&link, with_rights(rights, &[]), &parts);
        let tcx = with_rights(rights, &["--accelerate", "tcx:server"]);
        expect_refusal(&link, tcx, &parts);
    }
    let model = with_rights("-all", &["--accelerate", "model"]);
    assert!(model.expect("it starts").stop().success());
    if let Some(mut server) = has(with_rights("-all,+bpf,+net_admin,+perfmon", &[])) {
        assert!(server.stop().success());
    }
}

/// The command of a server with a packet program.
fn at_interface(arguments: &[&str]) -> Command {
    let own = ["-p", "11211", "-U", "11211", "--accelerate", "xdp:server"];
    command(&[&own[..], arguments].concat())
}
