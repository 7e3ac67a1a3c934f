//! Logs for auditors what clients do that changes the server, or that shows many keys, and who logs
//! in. `stats` is no such thing: monitoring asks for it all the time.

use crate::encryption::TlsError;
use glimmer_base::limits::LOG_NAME_BYTES_MAX;
use glimmer_base::shown;
use glimmer_node::Audited;
use glimmer_proto::AdminCommand;

/// Whether such lines are logged at all.
pub(super) fn is_on() -> bool {
    tracing::enabled!(target: "audit", tracing::Level::INFO)
}

/// Logs one line.
pub(super) fn log(client: &str, what: Audited<'_>) {
    match what {
        Audited::Login {
            user,
            is_admitted: true,
        } => {
            let user = name(user);
            tracing::info!(target: "audit::login", client, %user, "audit: logged in");
        }
        Audited::Login { user, .. } => {
            let user = name(user);
            tracing::info!(target: "audit::refusal", client, %user, "audit: login refused");
        }
        Audited::Command {
            command: AdminCommand::Stats,
            ..
        } => {}
        Audited::Command {
            command,
            words,
            is_permitted,
        } => {
            let words = words.map(name);
            let words = words.join(" ");
            let (command, words) = (command.name(), words.trim_end());
            let message = match is_permitted {
                true => "audit: command",
                false => "audit: command not permitted",
            };
            match words {
                "" => tracing::info!(target: "audit::command", client, command, "{message}"),
                _ => {
                    tracing::info!(target: "audit::command", client, command, words, "{message}");
                }
            }
        }
    }
}

/// Logs that certificates were read again, or why they were not. Returns that.
pub(super) fn log_renewal(by: &str, outcome: Result<(), TlsError>) -> Result<(), TlsError> {
    match &outcome {
        Ok(()) => tracing::info!(target: "audit::renewal", by, "audit: certificates renewed"),
        Err(error) => tracing::warn!(
            target: "audit::renewal", by, "{error}; the old certificate remains in use"
        ),
    }
    outcome
}

/// What a client wrote, as text without control characters, and shortened.
fn name(bytes: &[u8]) -> String {
    shown::visible(&bytes[..bytes.len().min(LOG_NAME_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_stay_on_their_line() {
        assert_eq!(name(b"bob"), "bob");
        assert_eq!(name(b"b\nINFO x"), "b%0AINFO%20x");
        assert_eq!(name(&[b'u'; 1000]).len(), LOG_NAME_BYTES_MAX);
    }
}
