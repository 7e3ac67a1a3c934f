//! An open loop over UDP against a server that drops every second request.

use std::{
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use glimmer_loadgen::{
    driver::{Address, Dialect, Target},
    load::{self, Arrivals, Idle, Pace, Plan, Requests, WarmUp, sweep},
    workload::{Mix, Workload},
};

/// Bytes of the frame before a request and a reply.
const FRAME_BYTES: usize = 8;

#[test]
fn a_server_that_loses_requests_does_not_keep_up() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Duration::from_millis(20);
    server.set_read_timeout(Some(patience)).unwrap();
    let target = Target::new(Address::Udp(server.local_addr().unwrap()), Dialect::Text);
    let has_ended = AtomicBool::new(false);
    let serve = || {
        let mut received = 0;
        while !has_ended.load(Ordering::Relaxed) {
            let mut datagram = [0; 1500];
            let Ok((_, client)) = server.recv_from(&mut datagram) else {
                continue;
            };
            received += 1;
            if received % 2 == 0 {
                let miss = [&datagram[..FRAME_BYTES], b"END\r\n"].concat();
                server.send_to(&miss, client).unwrap();
            }
        }
    };
    let workload = Workload {
        keys: 100,
        mix: Mix::reads(1.0),
        ..Workload::default()
    };
    let pace = Pace::Open {
        arrivals: Arrivals::Fixed(1000.0),
        burst: 1,
        idle: Idle::Sleep,
    };
    let plan = Plan {
        connections: 4,
        warm_up: WarmUp::Fixed(Duration::from_millis(50)),
        measured: Some(Duration::from_millis(200)),
        ..Plan::new(Requests::Drawn(workload), pace)
    };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(serve);
        let outcome = load::run(&target, &plan, None, &mut |_| {});
        has_ended.store(true, Ordering::Relaxed);
        outcome.unwrap()
    });
    // Of each two requests that the server receives in a row one is lost.
    let (answered, lost) = (outcome.reads.len(), outcome.lost);
    assert!(lost * 3 > answered, "{answered} answered, {lost} lost");
    assert_eq!(outcome.tally.lost, lost);
    assert!(!sweep::kept_up(&outcome));
    assert_eq!(outcome.latency_us(0.99), f64::INFINITY);
}
