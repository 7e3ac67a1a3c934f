//! Servers that fall silent, with a client for tasks. The runtime's clock advances by itself
//! whenever all tasks wait.
#![cfg(feature = "tokio")]

#[path = "support/server.rs"]
mod server;

use glimmer_client::nonblocking::Client;
use glimmer_client::{GetError, Placement, Settings};
use server::{SETTINGS, Server, ask};
use tokio::task::LocalSet;
use tokio::time::{Duration, Instant, sleep};

/// Waits for as many deadlines as it takes for a server to be away.
async fn wait_in_vain(client: &Client, key: &[u8]) {
    // A datagram that arrives at the very moment of the request counts as heard after it.
    sleep(Duration::from_millis(1)).await;
    for _ in 0..SETTINGS.away_after {
        let asked = Instant::now();
        assert!(matches!(ask(client, key).await, Err(GetError::Silent(_))));
        assert!(asked.elapsed() >= Duration::from_micros(SETTINGS.deadline_us));
    }
}

#[tokio::test(start_paused = true)]
async fn after_three_deadlines_requests_fail_at_once_until_the_server_is_heard() {
    let test = async {
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, SETTINGS).await.unwrap();
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
        server.be_silent(true);
        wait_in_vain(&client, b"key").await;
        let before = (Instant::now(), server.heard.get());
        for _ in 0..100 {
            assert!(matches!(ask(&client, b"key").await, Err(GetError::Away(_))));
        }
        assert_eq!((Instant::now(), server.heard.get()), before);
        server.be_silent(false);
        sleep(Duration::from_micros(SETTINGS.retry_us)).await;
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_server_that_is_away_move_and_come_back() {
    let test = async {
        let servers = [Server::start().await, Server::start().await];
        let members = servers.each_ref().map(Server::member);
        let settings = Settings {
            eject: true,
            ..SETTINGS
        };
        let client = Client::connect_to_all(&members, Placement::Rendezvous, settings).await;
        let client = client.unwrap();
        let mut keys = [None, None];
        for number in 0..64u8 {
            let port = ask(&client, &[number]).await.unwrap();
            let owner = usize::from(port == servers[1].port);
            keys[owner] = Some([number]);
        }
        let [Some(moves), Some(stays)] = keys else {
            panic!("all keys are one server's: {keys:?}");
        };
        servers[0].be_silent(true);
        wait_in_vain(&client, &moves).await;
        for key in [moves, stays] {
            assert_eq!(ask(&client, &key).await.unwrap(), servers[1].port);
        }
        servers[0].be_silent(false);
        sleep(Duration::from_micros(SETTINGS.retry_us)).await;
        for (key, server) in [(moves, &servers[0]), (stays, &servers[1])] {
            assert_eq!(ask(&client, &key).await.unwrap(), server.port);
        }
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_for_very_many_keys_has_one_deadline() {
    let test = async {
        let deadline = Duration::from_millis(200);
        let settings = Settings {
            deadline_us: deadline.as_micros() as u64,
            away_after: 0,
            ..SETTINGS
        };
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, settings).await.unwrap();
        server.be_silent(true);
        let keys: Vec<_> = (0..140_000u32).map(u32::to_le_bytes).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
        let asked = Instant::now();
        let found = client.get_many(&keys).await;
        assert!(asked.elapsed() < 2 * deadline, "{:?}", asked.elapsed());
        assert_eq!(found.len(), keys.len());
        let is_silent = |found: &Result<_, _>| matches!(found, Err(GetError::Silent(_)));
        assert!(found.iter().all(is_silent));
    };
    LocalSet::new().run_until(test).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_from_no_port_of_the_servers_is_no_answer() {
    let test = async {
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, SETTINGS).await.unwrap();
        server.is_replaced.set(true);
        assert!(matches!(
            ask(&client, b"key").await,
            Err(GetError::Silent(_))
        ));
        server.is_replaced.set(false);
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
    };
    LocalSet::new().run_until(test).await;
}
