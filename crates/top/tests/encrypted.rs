//! `glimmer top` and a server with TLS, or with users.

#[path = "../../../tests/support/certificates.rs"]
mod certificates;
#[path = "../../../tests/support/running.rs"]
mod running;
#[path = "../../../tests/support/server_program.rs"]
mod server_program;

use std::process::Command;

use certificates::{Authority, EXPIRED, VALID};
use running::Running;

const PROGRAM: &str = env!("CARGO_BIN_EXE_glimmer-top");

/// A server with these arguments.
fn start(arguments: &[String]) -> Running {
    Running::start(
        Command::new(server_program::server_beside(PROGRAM)),
        arguments,
    )
}

/// What the program says about a server, and whether it succeeds.
fn top(server: &Running, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(PROGRAM)
        .args([&server.address, "--once", "--interval", "0.3"])
        .args(arguments)
        .env_remove("GLIMMER_PASSWORD")
        .env_remove("SSL_CERT_FILE")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// Its report.
fn report(server: &Running, arguments: &[&str]) -> String {
    let (succeeds, text) = top(server, arguments);
    assert!(succeeds, "{arguments:?}: {text}");
    text
}

/// Its one line of complaint.
fn complaint(server: &Running, arguments: &[&str]) -> String {
    let (succeeds, text) = top(server, arguments);
    assert!(!succeeds, "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    text
}

#[test]
fn a_server_with_tls_is_watched_by_whoever_trusts_it() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&["127.0.0.1", "localhost"], VALID);
    let server = start(&authority.server(&identity));
    let ca = authority.named();
    let shown = report(&server, &["--tls", "--tls-ca", &ca]);
    assert!(
        shown.contains("worker 0") && shown.contains("round trip"),
        "{shown}"
    );
    let shown = report(&server, &["--tls", "--tls-insecure"]);
    assert!(shown.contains("warning: --tls-insecure"), "{shown}");

    let other = Authority::new("another authority");
    let error = complaint(&server, &["--tls", "--tls-ca", &other.named()]);
    assert!(error.contains("not signed by an authority in"), "{error}");
    let error = complaint(&server, &[]);
    assert!(error.contains("give --tls"), "{error}");
    let error = complaint(&server, &["--tls", "--tls-ca", "/no/such/file"]);
    assert!(error.contains("--tls-ca /no/such/file"), "{error}");
    let [certificate, _] = authority.files("one", &authority.sign(&["one"], VALID));
    let [_, key] = authority.files("two", &authority.sign(&["two"], VALID));
    let both = [
        "--tls",
        "--tls-ca",
        &ca,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let error = complaint(&server, &both);
    assert!(error.contains("does not belong to"), "{error}");
}

#[test]
fn a_certificate_for_another_name_is_named_so() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&["elsewhere.example"], VALID);
    let server = start(&authority.server(&identity));
    let error = complaint(&server, &["--tls", "--tls-ca", &authority.named()]);
    assert!(error.contains("it is for elsewhere.example"), "{error}");
}

#[test]
fn a_server_wants_a_certificate_and_gets_it() {
    let authority = Authority::new("an authority");
    let mut arguments = authority.server(&authority.sign(&["127.0.0.1"], VALID));
    let ca = authority.named();
    arguments.extend([
        "-o".to_owned(),
        format!("ssl_verify_mode=2,ssl_ca_cert={ca}"),
    ]);
    let server = start(&arguments);
    let [certificate, key] = authority.files("client", &authority.sign(&["client"], VALID));
    let trusting = ["--tls", "--tls-ca", &ca];
    let own = ["--tls-cert", &certificate, "--tls-key", &key];
    report(&server, &[&trusting[..], &own].concat());
    let error = complaint(&server, &trusting);
    assert!(error.contains("--tls-cert"), "{error}");
    let [certificate, key] = authority.files("late", &authority.sign(&["client"], EXPIRED));
    let own = ["--tls-cert", &certificate, "--tls-key", &key];
    let error = complaint(&server, &[&trusting[..], &own].concat());
    assert!(error.contains("--tls-cert"), "{error}");
}

#[test]
fn a_server_without_tls_is_named_so() {
    let server = start(&[]);
    let authority = Authority::new("an authority");
    let error = complaint(&server, &["--tls", "--tls-ca", &authority.named()]);
    assert!(error.contains("leave --tls out"), "{error}");
}

#[test]
fn a_server_with_users_is_watched_with_a_password() {
    let authority = Authority::new("a folder");
    let users = authority
        .file("users", "ann:secret\n")
        .display()
        .to_string();
    let server = start(&["-Y".to_owned(), users]);
    let right = authority.file("right", "secret\n").display().to_string();
    let wrong = authority.file("wrong", "public\n").display().to_string();
    let shown = report(&server, &["--auth-user", "ann", "--password-file", &right]);
    assert!(shown.contains("worker 0"), "{shown}");
    let error = complaint(&server, &["--auth-user", "ann", "--password-file", &wrong]);
    assert!(error.contains("refuses user ann"), "{error}");
    let error = complaint(&server, &[]);
    assert!(error.contains("give --auth-user"), "{error}");
    let error = complaint(&server, &["--auth-user", "ann"]);
    assert!(error.contains("--password-file"), "{error}");
    // A server without users is not told the password.
    let open = start(&[]);
    report(&open, &["--auth-user", "ann", "--password-file", &right]);
}
