//! With a server that stalls for 100 ms once a second, the open loop reports the latencies that
//! arithmetic predicts, and the closed loop does not.

use glimmer_loadgen::{
    load::Arrivals,
    stalling::{CONNECTIONS, Loop, Observed, SECOND_NS, STALL_NS, observe, predicted_ns},
};

#[test]
fn the_open_loop_reports_what_arithmetic_predicts() {
    const SECONDS: u64 = 10;
    for rate in [2_000.0, 10_000.0, 50_000.0] {
        for arrivals in [Arrivals::Fixed(rate), Arrivals::Poisson(rate)] {
            let observed = observe(Loop::Open(arrivals), SECONDS, 11).unwrap();
            let (latency, stall_ns) = (&observed.latency, observed.stall_ns(SECONDS));
            let requests = latency.len() as f64;
            assert!(
                (requests / (rate * SECONDS as f64) - 1.0).abs() < 0.02,
                "{arrivals:?}: {requests} requests"
            );
            for quantile in [0.99, 0.999] {
                let (reported, predicted) = (
                    latency.value_at_quantile(quantile) as f64,
                    predicted_ns(rate, quantile, stall_ns),
                );
                println!(
                    "{arrivals:?}: p{} is {:.1} ms, predicted {:.1} ms",
                    quantile * 100.0,
                    reported / 1e6,
                    predicted / 1e6
                );
                assert!(
                    (reported / predicted - 1.0).abs() < 0.05,
                    "{arrivals:?}: p{} is {reported}, predicted {predicted}",
                    quantile * 100.0
                );
            }
        }
    }
}

#[test]
fn the_closed_loop_hides_the_stall() {
    let Observed {
        latency, stalls, ..
    } = observe(Loop::Closed, 5, 11).unwrap();
    let measured = SECOND_NS..6 * SECOND_NS;
    let seen = stalls.iter().filter(|(begin, _)| measured.contains(begin));
    assert_eq!(seen.count(), 5);
    // Eight connections notice each stall once: 8 of about 90,000 requests per second.
    let late = latency.len() - latency.count_between(0, STALL_NS / 2);
    assert_eq!(late, 5 * CONNECTIONS as u64);
    let p99 = latency.value_at_quantile(0.99);
    println!(
        "closed: p99 is {:.3} ms of {} requests",
        p99 as f64 / 1e6,
        latency.len()
    );
    assert!(p99 < STALL_NS / 100, "{p99}");
}

#[test]
fn a_rate_beyond_the_server_is_noticed() {
    // Nine tenths of every second remain for requests of 10 us: 90,000 per second.
    for (rate, share) in [(50_000.0, 1.0), (120_000.0, 0.75), (180_000.0, 0.5)] {
        let Observed { latency, span, .. } =
            observe(Loop::Open(Arrivals::Poisson(rate)), 1, 11).unwrap();
        assert!(
            (latency.len() as f64 / rate - 1.0).abs() < 0.02,
            "every request is waited for"
        );
        let answered = span.in_time as f64 / latency.len() as f64;
        // The surplus of the warm-up is answered first: at most one second's worth.
        println!("{rate}/s: {answered:.3} answered in time");
        assert!(
            answered < share + 0.02 && (share < 1.0 || answered > 0.98),
            "{rate}/s: {answered}"
        );
    }
}
