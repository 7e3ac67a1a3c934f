//! A client for tasks that outlives its runtime, like one in a static that several tests use. The
//! clock advances by itself whenever all tasks wait.
#![cfg(feature = "tokio")]

#[path = "support/server.rs"]
mod server;

use std::io::ErrorKind;

use glimmer_client::GetError;
use glimmer_client::nonblocking::Client;
use server::{SETTINGS, Server, ask};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, yield_now};
use tokio::time::{Duration, timeout};

fn runtime() -> Runtime {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap()
}

fn is_told_of_the_end(answer: Result<u16, GetError>) -> bool {
    matches!(answer, Err(GetError::Socket(error)) if error.kind() == ErrorKind::NotConnected)
}

#[test]
fn who_asks_is_told_when_the_clients_runtime_has_ended() {
    let own = runtime();
    let client = LocalSet::new().block_on(&own, async {
        let server = Server::start().await;
        let address = ("127.0.0.1", server.port);
        let client = Client::connect_with(address, SETTINGS).await.unwrap();
        assert_eq!(ask(&client, b"key").await.unwrap(), server.port);
        client
    });
    let other = runtime();
    let asking = client.clone();
    let waiting = other.spawn(async move { ask(&asking, b"key").await });
    other.block_on(yield_now());
    assert!(!waiting.is_finished(), "no server answers");
    drop(own);
    other.block_on(async {
        let patience = Duration::from_secs(3600);
        let answer = timeout(patience, waiting).await.expect("it is told");
        assert!(is_told_of_the_end(answer.unwrap()));
        let answer = timeout(patience, ask(&client, b"key")).await;
        assert!(is_told_of_the_end(answer.expect("it is told")));
    });
}
