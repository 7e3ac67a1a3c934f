//! Other uses of the client library: several servers, tasks on tokio, and C.

use std::{
    env,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use glimmer_client::{Client, GetError, Member, Placement, Settings, nonblocking};

use crate::{Server, figure, start};

fn port(address: &str) -> u16 {
    let (_, port) = address.rsplit_once(':').unwrap();
    port.parse().unwrap()
}

fn member(server: &Server) -> Member {
    Member {
        host: "127.0.0.1".to_owned(),
        port: port(&server.text),
        native_port: port(&server.native),
        weight: 1,
    }
}

#[test]
fn several_servers_share_the_keys() {
    const KEYS: usize = 300;
    let mut servers: Vec<Server> = (0..3).map(|_| start(&["-m", "64", "-t", "1"])).collect();
    let members: Vec<Member> = servers.iter().map(member).collect();
    let settings = Settings {
        deadline_us: 400_000,
        ..Settings::default()
    };
    let keys: Vec<String> = (0..KEYS).map(|n| format!("key {n}")).collect();
    let names: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    for placement in [
        Placement::Ketama,
        Placement::KetamaWeighted,
        Placement::Rendezvous,
    ] {
        let mut client = Client::connect_to_all(&members, placement, settings).unwrap();
        for key in &names {
            client.put(key, key, 0, 0).unwrap();
        }
        let held: Vec<usize> = servers
            .iter()
            .map(|server| figure(server, "stats", "curr_items").parse().unwrap())
            .collect();
        assert_eq!(held.iter().sum::<usize>(), KEYS, "{placement:?} {held:?}");
        assert!(held.iter().all(|&items| items > KEYS / 10), "{held:?}");
        for (key, found) in names.iter().zip(client.get_many(&names).unwrap()) {
            assert_eq!(found.unwrap().unwrap().value, *key);
        }
        for key in &names {
            assert!(client.delete(key).unwrap());
        }
    }
    // Without one of the servers, the keys of the others stay in place.
    let mut client = Client::connect_to_all(&members, Placement::Ketama, settings).unwrap();
    for key in &names {
        client.put(key, key, 0, 0).unwrap();
    }
    let lost: usize = figure(&servers[1], "stats", "curr_items").parse().unwrap();
    servers.remove(1);
    let found = client.get_many(&names).unwrap();
    // Its port is closed, and its host refuses datagrams.
    let is_refused = |found: &Result<_, _>| matches!(found, Err(GetError::Refused(_)));
    assert_eq!(found.iter().filter(|found| is_refused(found)).count(), lost);
    let is_found = |found: &Result<Option<_>, _>| matches!(found, Ok(Some(_)));
    assert_eq!(
        found.iter().filter(|found| is_found(found)).count(),
        KEYS - lost
    );
    // With `eject`, its keys are placed elsewhere once it counts as away.
    for eject in [false, true] {
        let settings = Settings {
            away_after: 1,
            retry_us: u64::MAX,
            eject,
            ..settings
        };
        let mut client = Client::connect_to_all(&members, Placement::Ketama, settings).unwrap();
        let found = client.get_many(&names).unwrap();
        assert_eq!(found.iter().filter(|found| is_refused(found)).count(), lost);
        let again = client.get_many(&names).unwrap();
        let expected = if eject { 0 } else { lost };
        let refused = again.iter().filter(|found| is_refused(found)).count();
        assert_eq!(refused, expected, "{eject}");
        assert!(
            !again
                .iter()
                .any(|found| matches!(found, Err(GetError::Away(_))))
        );
    }
}

#[test]
fn tasks_share_a_client() {
    let server = start(&["-m", "64", "-t", "2", "--access", "erew"]);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = nonblocking::Client::connect(&server.native).await.unwrap();
        assert!(client.add(b"count", b"0", 0, 0).await.unwrap());
        let tasks: Vec<_> = (0..20)
            .map(|task| {
                let client = client.clone();
                tokio::spawn(async move {
                    for turn in 0..20 {
                        let key = format!("key {task} {turn}");
                        client.put(key.as_bytes(), &[task; 50], 1, 0).await.unwrap();
                        client.increment(b"count", 1).await.unwrap().unwrap();
                        let item = client.get(key.as_bytes()).await.unwrap().unwrap();
                        assert_eq!((item.value, item.flags), (vec![task; 50], 1));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let item = client.get_for_swap(b"count").await.unwrap().unwrap();
        assert_eq!(item.value, b"400");
        let swapped = client.compare_and_swap(b"count", item.cas, b"1", 0, 0);
        assert!(swapped.await.unwrap());
        assert!(
            !client
                .compare_and_swap(b"count", item.cas, b"2", 0, 0)
                .await
                .unwrap()
        );
        assert_eq!(client.decrement(b"count", 1).await.unwrap(), Some(0));
        assert!(client.replace(b"count", b"5", 0, 0).await.unwrap());
        assert!(client.touch(b"count", 100).await.unwrap());
        assert!(client.delete(b"count").await.unwrap());
        let found = client.get_many(&[b"key 3 4", b"count", &[b'k'; 251]]).await;
        assert_eq!(found[0].as_ref().unwrap().as_ref().unwrap().value, [3; 50]);
        assert!(matches!(found[1], Ok(None)) && matches!(found[2], Err(GetError::Key)));
    });
    runtime.block_on(async {
        let members = [member(&server)];
        let placement = Placement::Rendezvous;
        let client =
            nonblocking::Client::connect_to_all(&members, placement, Settings::default()).await;
        let item = client.unwrap().get(b"key 1 1").await.unwrap().unwrap();
        assert_eq!(item.value, [1; 50]);
    });
}

/// The installed library for C. It is built with this test, which depends on it.
struct Installed {
    source: PathBuf,
    prefix: TempDir,
}

impl Installed {
    fn new() -> Installed {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client-c");
        let this = env::current_exe().unwrap();
        let prefix = tempfile::tempdir().unwrap();
        let installed = Command::new(source.join("install.sh"))
            .args([prefix.path(), this.parent().unwrap()])
            .status();
        assert!(installed.unwrap().success());
        Installed { source, prefix }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.prefix.path().join(below)
    }

    /// The compiler flags in the documentation.
    fn flags(&self) -> Vec<String> {
        let flags = Command::new("pkg-config")
            .args(["--cflags", "--libs", "glimmerclient"])
            .env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"))
            .output()
            .expect("pkg-config is installed");
        let flags = String::from_utf8(flags.stdout).unwrap();
        flags.split_whitespace().map(str::to_owned).collect()
    }

    fn compile(&self, source: &Path, flags: &[String]) -> PathBuf {
        let program = self.path("program");
        let built = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(source)
            .args(flags)
            .status();
        assert!(built.unwrap().success(), "{flags:?}");
        program
    }
}

#[test]
fn the_example_in_c_is_built_and_runs_as_documented() {
    let server = start(&["-m", "64", "-t", "1"]);
    let installed = Installed::new();
    let archive = installed.path("lib/libglimmerclient.a");
    let include = format!("-I{}", installed.path("include").display());
    let archive = archive.display().to_string();
    let whole = [&include, &archive, "-lpthread", "-lm", "-ldl"].map(str::to_owned);
    let example = installed.source.join("../../examples/native/greeting.c");
    for flags in [&installed.flags()[..], &whole] {
        let program = installed.compile(&example, flags);
        // Neither ldconfig nor LD_LIBRARY_PATH is needed.
        let run = Command::new(&program)
            .args(["127.0.0.1", &port(&server.native).to_string()])
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&run.stdout),
            "hello, flags 7\n42 visits\ngreeting: hi\nnone: no item\nvisits: 42\n",
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        assert!(run.status.success());
    }
}

/// A program keeps working with the library version that it was built with.
#[test]
fn the_shared_library_has_a_soname() {
    let installed = Installed::new();
    let named = installed.path("lib/libglimmerclient.so.0");
    assert!(named.exists());
    let dynamic = Command::new("readelf").arg("-d").arg(&named).output();
    let dynamic = String::from_utf8(dynamic.expect("readelf is installed").stdout).unwrap();
    let soname = dynamic.lines().find(|line| line.contains("SONAME"));
    assert!(soname.is_some_and(|line| line.contains("[libglimmerclient.so.0]")));
    // The library exports only the functions in the header, and no symbols of the build.
    let symbols = Command::new("nm").arg("-D").arg(&named).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let exported = symbols.lines().filter(|line| line.contains(" T "));
    let is_ours = |line: &str| line.contains(" glimmer_") || line.contains("rust_eh_personality");
    let foreign: Vec<&str> = exported.filter(|line| !is_ours(line)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

/// Null pointers, reused items and a panic are reported as outcomes. valgrind, if it is installed,
/// finds neither uninitialised nor leaked memory.
#[test]
fn a_c_program_survives_its_mistakes_and_ours() {
    let server = start(&["-m", "64", "-t", "1"]);
    let installed = Installed::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native_runs/boundaries.c");
    let program = installed.compile(&source, &installed.flags());
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed_port = closed.local_addr().unwrap().port().to_string();
    drop(closed);
    let native_port = port(&server.native).to_string();
    let valgrind = ["--quiet", "--leak-check=full", "--error-exitcode=9"];
    let mut run = match Command::new("valgrind").arg("--version").output() {
        Ok(_) => {
            let mut run = Command::new("valgrind");
            run.args(valgrind).arg(&program);
            run
        }
        Err(_) => {
            println!("SKIPPED: valgrind is not installed; the program runs without it");
            Command::new(&program)
        }
    };
    let run = run
        .args(["127.0.0.1", &native_port, &closed_port])
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}: {complaints}", run.status);
    assert_eq!(String::from_utf8_lossy(&run.stdout), "nothing happened\n");
}
