//! The client library's other faces: several servers, tasks on tokio, and C.

use std::{env, path::Path, process::Command};

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
    // Without one of them, the others' keys are where they were.
    let mut client = Client::connect_to_all(&members, Placement::Ketama, settings).unwrap();
    for key in &names {
        client.put(key, key, 0, 0).unwrap();
    }
    let lost: usize = figure(&servers[1], "stats", "curr_items").parse().unwrap();
    servers.remove(1);
    let found = client.get_many(&names).unwrap();
    let is_silent = |found: &Result<_, _>| matches!(found, Err(GetError::Silent));
    assert_eq!(found.iter().filter(|found| is_silent(found)).count(), lost);
    let is_found = |found: &Result<Option<_>, _>| matches!(found, Ok(Some(_)));
    assert_eq!(
        found.iter().filter(|found| is_found(found)).count(),
        KEYS - lost
    );
    // Once it is away nobody waits for it, and its keys may be placed elsewhere.
    for eject in [false, true] {
        let settings = Settings {
            away_after: 1,
            retry_us: u64::MAX,
            eject,
            ..settings
        };
        let mut client = Client::connect_to_all(&members, Placement::Ketama, settings).unwrap();
        let found = client.get_many(&names).unwrap();
        assert_eq!(found.iter().filter(|found| is_silent(found)).count(), lost);
        let again = client.get_many(&names).unwrap();
        let is_away = |found: &&Result<_, _>| matches!(found, Err(GetError::Away));
        let expected = if eject { 0 } else { lost };
        assert_eq!(again.iter().filter(is_away).count(), expected, "{eject}");
        assert!(!again.iter().any(is_silent));
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

/// The libraries lie beside this test, which depends on them.
#[test]
fn the_example_in_c_is_built_and_runs() {
    let server = start(&["-m", "64", "-t", "1"]);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../client-c");
    let this = env::current_exe().unwrap();
    let prefix = tempfile::tempdir().unwrap();
    let prefix = prefix.path();
    let installed = Command::new(source.join("install.sh"))
        .args([prefix, this.parent().unwrap()])
        .status();
    assert!(installed.unwrap().success());
    let library = prefix.join("lib");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "glimmerclient"])
        .env("PKG_CONFIG_PATH", library.join("pkgconfig"))
        .output();
    let shared: Vec<String> = match flags {
        Ok(flags) => String::from_utf8(flags.stdout)
            .unwrap()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        Err(_) => vec![
            format!("-I{}", prefix.join("include").display()),
            format!("-L{}", library.display()),
            "-lglimmerclient".to_owned(),
        ],
    };
    let archive = library.join("libglimmerclient.a").display().to_string();
    let include = format!("-I{}", prefix.join("include").display());
    let whole = [&include, &archive, "-lpthread", "-lm", "-ldl"].map(str::to_owned);
    for flags in [&shared[..], &whole] {
        let program = prefix.join("greeting");
        let built = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(source.join("examples/greeting.c"))
            .args(flags)
            .status();
        assert!(built.unwrap().success(), "{flags:?}");
        let run = Command::new(&program)
            .args(["127.0.0.1", &port(&server.native).to_string()])
            .env("LD_LIBRARY_PATH", &library)
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
