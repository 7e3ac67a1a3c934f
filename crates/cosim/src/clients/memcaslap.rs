//! libmemcached's load generator (`memaslap`, in Debian `memcaslap`), which compares the values
//! that it reads with those that it has stored.
//!
//! It speaks the text protocol here. libmemcached itself refuses to read over UDP
//! (`MEMCACHED_NOT_SUPPORTED`), and this program's binary requests over UDP never leave: it gives
//! the kernel no address for their frame (`EFAULT`). So the circuit passes all of them on.

use crate::bed::{ADDRESS, PORT};
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// The names of the program: upstream's, and Debian's.
const NAMES: [&str; 2] = ["memcaslap", "memaslap"];

/// Makes at least this many requests over UDP, and returns how many. `None`: it is not installed.
///
/// # Errors
///
/// If an answer is wrong or lost.
pub fn memcaslap(requests: u64) -> Result<Option<u64>> {
    for name in NAMES {
        let mut command = Command::new(name);
        command
            .args(["--servers", &format!("{ADDRESS}:{PORT}"), "--udp"])
            .args(["--threads", "1", "--concurrency", "4"])
            .args(["--verify", "1.0", "--fixed_size", "64"])
            .args(["--execute_number", &requests.to_string()]);
        let Ok(output) = command.output() else {
            continue;
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        ensure!(output.status.success(), "{name}: {said}");
        return judge(&said)
            .with_context(|| format!("{name}: {said}"))
            .map(Some);
    }
    Ok(None)
}

/// The number of requests, if nothing was wrong or lost.
fn judge(said: &str) -> Result<u64> {
    let figure = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.strip_prefix(": ")?.trim().parse::<u64>().ok());
        number.with_context(|| format!("no {name}"))
    };
    for name in [
        "get_misses",
        "verify_misses",
        "verify_failed",
        "packet_drop",
        "udp_timeout",
    ] {
        ensure!(figure(name)? == 0, "{name}");
    }
    Ok(figure("cmd_get")? + figure("cmd_set")?)
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_wrong_value_is_noticed() {
        let said = "cmd_get: 90\ncmd_set: 10\nget_misses: 0\nverify_misses: 0\nverify_failed: 0\n\
                    packet_drop: 0\nudp_timeout: 0\n";
        assert_eq!(judge(said).unwrap(), 100);
        for name in ["get_misses", "verify_failed", "packet_drop", "udp_timeout"] {
            let wrong = said.replace(&format!("{name}: 0"), &format!("{name}: 1"));
            assert!(judge(&wrong).is_err(), "{name}");
        }
        assert!(judge("").is_err());
    }
}
