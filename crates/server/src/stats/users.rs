//! `stats users`: what the users of `--users` may do, and what they have asked for.

use glimmer_base::limits::REPORT_BYTES_HIGH;
use glimmer_node::{Part, UserView};

use super::ServerAdmin;
use super::lines::Lines;

/// Writes one part of the reply, starting with the user of this place in the list.
pub(super) fn write(admin: &ServerAdmin, from: u64, lines: &mut Lines<'_>) -> Part {
    let begin = lines.0.len();
    let users = admin.tenants().views();
    for (place, user) in users.iter().enumerate().skip(from as usize) {
        if lines.0.len() - begin >= REPORT_BYTES_HIGH {
            return Part::More(place as u64);
        }
        write_user(user, lines);
    }
    Part::Last
}

fn write_user(UserView { user, usage }: &UserView, lines: &mut Lines<'_>) {
    let name = shown(&user.name);
    let mut put = |figure: &str, value: String| lines.put(&format!("{name}:{figure}"), value);
    put("rights", user.rules.rights.to_string());
    if !user.rules.prefix.is_empty() {
        put("prefix", shown(&user.rules.prefix));
    }
    let quotas = &user.quotas;
    for (figure, limit) in [
        ("connections_limit", quotas.connections),
        ("requests_limit", quotas.requests),
        ("bytes_limit", quotas.bytes),
    ] {
        if limit > 0 {
            put(figure, limit.to_string());
        }
    }
    for (figure, value) in [
        ("connections", usage.connections),
        ("connections_refused", usage.connections_refused),
        ("requests", usage.requests),
        ("bytes", usage.bytes),
        ("throttled", usage.waits),
        ("over_limit", usage.refused),
        ("denied", usage.denied),
    ] {
        put(figure, value.to_string());
    }
}

/// A name as one word that ends no line.
fn shown(name: &[u8]) -> String {
    let show = |&byte: &u8| match byte {
        b'%' | b':' => format!("%{byte:02X}"),
        byte if byte.is_ascii_graphic() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words() {
        assert_eq!(shown(b"a user:\r\n%"), "a%20user%3A%0D%0A%25");
        assert_eq!(shown("ü/".as_bytes()), "%C3%BC/");
    }
}
