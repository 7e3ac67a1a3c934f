//! Datagrams full of commands with long replies. They need no connection, and their source address
//! can be forged.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, Result};

use super::{Case, Scenario, Subject, control_replies};

/// Hostile sockets.
const SOCKETS: usize = 8;
/// Request id, number of this datagram, number of datagrams, reserved: 16 bits each, big-endian.
const FRAME: [u8; 8] = [0, 1, 0, 0, 0, 1, 0, 0];
/// Commands per datagram.
const COMMANDS: usize = 500;
/// Pause between two datagrams of a socket.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct ControlDatagrams;

impl Scenario for ControlDatagrams {
    fn name(&self) -> &'static str {
        "control-datagrams"
    }

    fn about(&self) -> &'static str {
        "datagrams from 8 sockets ask 500 times for `stats cachedump` each"
    }

    fn cases(&self, _: bool) -> Vec<Case> {
        vec![Case {
            connections: SOCKETS,
            ..Case::default()
        }]
    }

    fn wants_udp(&self) -> bool {
        true
    }

    fn prepare(&self, subject: &Subject, _: &Case) -> Result<()> {
        control_replies::fill(subject)
    }

    fn attack(&self, subject: &Subject, case: &Case, stop: &AtomicBool) -> Result<String> {
        let open = |_| {
            let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
            socket.connect(subject.address())?;
            Ok(socket)
        };
        let sockets: Result<Vec<UdpSocket>, std::io::Error> =
            (0..case.connections).map(open).collect();
        let sockets = sockets.context("hostile UDP sockets")?;
        let mut datagram = FRAME.to_vec();
        datagram.extend_from_slice("stats cachedump 1 0\r\n".repeat(COMMANDS).as_bytes());
        let (mut sent, mut refused) = (0_u64, 0_u64);
        while !stop.load(Relaxed) {
            for socket in &sockets {
                match socket.send(&datagram) {
                    Ok(_) => sent += 1,
                    Err(_) => refused += 1,
                }
            }
            std::thread::sleep(PAUSE);
        }
        Ok(match refused {
            0 => format!("{sent} datagrams sent"),
            refused => format!("{sent} datagrams sent, {refused} refused"),
        })
    }
}
