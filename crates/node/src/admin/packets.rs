//! Lines of a `stats` command as packets of the binary protocol.

use glimmer_proto::binary::{Header, Status, emit};

/// Appends lines of a `stats` command as packets. Unless `more` lines follow, the empty packet
/// comes after them; an unknown subject is an error.
pub(crate) fn stat_packets(out: &mut Vec<u8>, header: Header, lines: &[u8], more: bool) {
    let mut is_known = false;
    for line in lines.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(figure) = line.strip_prefix(b"STAT ") else {
            is_known |= [&b"END"[..], b"RESET", b"OK"].contains(&line);
            continue;
        };
        let mut parts = figure.splitn(2, |&byte| byte == b' ');
        let mut part = || parts.next().unwrap_or_default();
        emit::stat(out, header, part(), part());
    }
    if more {
        return;
    }
    if is_known {
        emit::stat(out, header, b"", b"");
    } else {
        emit::error(out, header, Status::KeyNotFound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_proto::binary::opcode;

    const STAT: Header = Header {
        opcode: opcode::STAT,
        opaque: [1, 2, 3, 4],
    };

    #[test]
    fn figures_become_packets() {
        let mut out = Vec::new();
        stat_packets(&mut out, STAT, b"STAT pid 17\r\n", true);
        stat_packets(&mut out, STAT, b"STAT version a b\r\nEND\r\n", false);
        let mut expected = Vec::new();
        emit::stat(&mut expected, STAT, b"pid", b"17");
        emit::stat(&mut expected, STAT, b"version", b"a b");
        emit::stat(&mut expected, STAT, b"", b"");
        assert_eq!(out, expected);
    }

    #[test]
    fn an_unknown_subject_is_not_found() {
        let mut out = Vec::new();
        stat_packets(&mut out, STAT, b"ERROR\r\n", false);
        let mut expected = Vec::new();
        emit::error(&mut expected, STAT, Status::KeyNotFound);
        assert_eq!(out, expected);
        out.clear();
        stat_packets(&mut out, STAT, b"RESET\r\n", false);
        assert_eq!(out.len(), 24, "done, and nothing to tell");
    }
}
