//! The files that the flags name: whether a server could start with them.

use super::finding::{Finding, Verdict};
use glimmer_server::{Config, ServeError, preflight};

pub fn all(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut look = |about, name: String, found: Result<(), ServeError>| {
        findings.push(match found {
            Ok(()) => Finding::ok(about, name),
            Err(error) => fault(about, &error),
        });
    };
    if let Some(path) = &config.auth_file {
        let name = format!("-Y {}: has users", path.display());
        look("passwords", name, preflight::passwords(path));
    }
    if let Some(path) = &config.users {
        let name = format!("--users {}: has users", path.display());
        look("users", name, preflight::users(path));
    }
    if config.tls.is_enabled {
        let chain = config.tls.chain.as_deref().unwrap_or("".as_ref());
        let name = format!("{}: can be used with its key", chain.display());
        look("certificates", name, preflight::certificates(config));
    }
    if let Some(path) = &config.snapshot {
        let name = format!("--snapshot {}: can be made or loaded", path.display());
        let found = preflight::snapshot(path, config.user.as_deref());
        look("snapshot", name, found);
    }
    if let Some(path) = &config.memory_file {
        let name = format!("-e {}: can be made or opened", path.display());
        let bytes = config.memory_bytes as u64;
        look("memory file", name, preflight::memory_file(path, bytes));
    }
    findings
}

/// What the server would say. Its last part is advice, if a semicolon parts it from the rest.
pub fn fault(about: &'static str, error: &ServeError) -> Finding {
    let text = error.to_string();
    match text.rsplit_once("; ") {
        Some((found, advice)) => Finding::fault(about, found, advice),
        None => Finding {
            verdict: Verdict::Fault,
            ..Finding::ok(about, text)
        },
    }
}
