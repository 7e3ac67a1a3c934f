//! Logs failures that are not reported to any client.

use glimmer_node::{Alarm, Failure};
use std::io;

/// Logs one line. The node limits the rate for each kind of failure.
pub fn log(alarm: Alarm) {
    tracing::warn!("{}", line(alarm));
}

fn line(alarm: Alarm) -> String {
    let Alarm {
        failure,
        count,
        errno,
    } = alarm;
    let number = |thing: &str| match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    };
    match failure {
        Failure::Accept => {
            let reason = io::Error::from_raw_os_error(errno as i32);
            format!(
                "{} to accept a connection failed: {reason}; raise the limit of descriptors \
                 (ulimit -n) or lower -c",
                number("attempt")
            )
        }
        Failure::Send => format!(
            "{} with replies could not be sent, because the socket was full or the client cannot \
             be reached",
            number("datagram")
        ),
        Failure::Overflow => format!(
            "the kernel or the NIC dropped {} before the server received them; over sockets, a \
             larger net.core.rmem_max holds longer bursts, and what is sent to all hosts of a \
             network is dropped",
            number("datagram")
        ),
        Failure::Login => format!("{} refused: wrong user or password", number("login")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_happened_and_how_often() {
        let line = |failure, count, errno| {
            line(Alarm {
                failure,
                count,
                errno,
            })
        };
        let accept = line(Failure::Accept, 3, 24);
        assert!(
            accept.starts_with("3 attempts to accept a connection failed: Too many open files")
        );
        assert_eq!(
            line(Failure::Login, 1, 0),
            "1 login refused: wrong user or password"
        );
        assert!(line(Failure::Send, 2, 0).starts_with("2 datagrams with replies"));
        assert!(
            line(Failure::Overflow, 9, 0).starts_with("the kernel or the NIC dropped 9 datagrams")
        );
    }
}
