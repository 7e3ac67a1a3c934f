//! `glimmer bench load` and a server with TLS, or with users.

#[path = "../../../tests/support/certificates.rs"]
mod certificates;
mod program;
#[path = "../../../tests/support/running.rs"]
mod running;

use certificates::{Authority, VALID};
use program::{bench, command, refused, server, told};
use running::Running;

/// A server with these arguments.
fn start(arguments: &[String]) -> Running {
    Running::start(server(), arguments)
}

const SHORT: &str = "--seconds 0.2 --warm-up 0 -c 4";

/// The last line on standard error of a load that fails.
fn complaint(server: &Running, arguments: &str) -> String {
    let address = &server.address;
    let mut load = command(&format!("load {address} --keys 100 {SHORT} {arguments}"));
    load.env_remove("GLIMMER_PASSWORD");
    let text = refused(load);
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_load_is_encrypted_in_every_protocol_and_every_length() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&["127.0.0.1"], VALID);
    let server = start(&authority.server(&identity));
    let ca = authority.named();
    let load = format!("load {} {SHORT} --tls", server.address);
    for protocol in ["text", "meta", "binary", "resp"] {
        for values in ["64", "100000"] {
            for pace in [
                "--pipeline 8",
                "--rate 2k --sleep",
                "--multi-get 20 --kernel-timestamps",
            ] {
                let what = format!("-B {protocol} --value-bytes {values} --keys 200 {pace}");
                let printed = bench(&format!("{load} --tls-ca {ca} {what}"));
                let how = format!("{what}: {printed}");
                assert!(printed.contains("\nencrypted: TLS 1.3, TLS_"), "{how}");
                assert!(printed.contains("hit ratio 100.00%"), "{how}");
            }
        }
    }
    let (_, errors) = told(&format!("{load} --tls-insecure"));
    assert!(errors.contains("warning: --tls-insecure"), "{errors}");
}

#[test]
fn what_fails_says_what_to_do() {
    let authority = Authority::new("an authority");
    let identity = authority.sign(&["127.0.0.1"], VALID);
    let server = start(&authority.server(&identity));
    let (ca, other) = (authority.named(), Authority::new("another authority"));
    for protocol in ["text", "binary", "resp"] {
        let error = complaint(&server, &format!("-B {protocol}"));
        assert!(error.contains("give --tls"), "{protocol}: {error}");
    }
    let error = complaint(&server, &format!("--tls --tls-ca {}", other.named()));
    assert!(error.contains("not signed by an authority in"), "{error}");
    for protocol in ["native", "native-plain"] {
        let error = complaint(&server, &format!("--tls --tls-ca {ca} -B {protocol}"));
        assert!(
            error.contains("native protocol has no encryption"),
            "{error}"
        );
    }
    let plain = start(&[]);
    let error = complaint(&plain, &format!("--tls --tls-ca {ca}"));
    assert!(error.contains("leave --tls out"), "{error}");
}

#[test]
fn a_load_logs_in() {
    let authority = Authority::new("a folder");
    let users = authority
        .file("users", "ann:secret\n")
        .display()
        .to_string();
    let right = authority.file("right", "secret\n").display().to_string();
    let wrong = authority.file("wrong", "public\n").display().to_string();
    for (flags, protocols) in [
        (&[][..], &["text", "meta"][..]),
        (&["-B", "resp"], &["resp"]),
        (&["-S"], &["binary"]),
    ] {
        let flags = [flags, &["-Y", &users]].concat();
        let flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
        let server = start(&flags);
        for protocol in protocols {
            let login = format!("-B {protocol} --auth-user ann --password-file");
            let load = format!("load {} --keys 100 {SHORT}", server.address);
            let printed = bench(&format!("{load} {login} {right}"));
            assert!(
                printed.contains("hit ratio 100.00%"),
                "{protocol}: {printed}"
            );
            let error = complaint(&server, &format!("-B {protocol}"));
            assert!(error.contains("wants a login"), "{protocol}: {error}");
            let error = complaint(&server, &format!("{login} {wrong}"));
            assert!(error.contains("refuses user ann"), "{protocol}: {error}");
        }
    }
}
