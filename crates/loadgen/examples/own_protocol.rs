//! Measures a server whose protocol the load generator does not know.
//!
//! The protocol is one implementation of [`Protocol`]: it writes requests and recognises replies.
//! The server in this example is a toy in the same process, so nothing needs to be installed:
//!
//! ```console
//! $ cargo run --release -p glimmer-loadgen --example own_protocol
//! ```

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, BufWriter, Read, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use anyhow::Result;
use glimmer_loadgen::{
    driver::{Address, Endpoint, Kind, Meaning, Protocol, Step, Taken, Write},
    load::{self, Arrivals, Idle, Pace, Pass, Plan, Requests},
    workload::{Key, Mix, Workload, value},
};

/// The toy's protocol. `r KEY` reads, `w KEY LENGTH` followed by the value writes, `d KEY` deletes.
/// The reply is `+LENGTH` and the value, `-` for an absent key, or `!` for a change. Each line ends
/// with `\n`.
#[derive(Clone, Copy, Debug, Default)]
struct Toy;

fn line(verb: u8, key: Key, out: &mut Vec<u8>) {
    out.extend([verb, b' ']);
    key.write(out);
    out.push(b'\n');
}

impl Protocol for Toy {
    fn get(&self, key: Key, out: &mut Vec<u8>) {
        line(b'r', key, out);
    }

    /// The toy reads one key at a time. A read of several keys is several requests, followed by an
    /// unknown command, whose reply `?` marks the end.
    fn get_many(&self, keys: &[Key], out: &mut Vec<u8>) {
        for &key in keys {
            self.get(key, out);
        }
        out.extend_from_slice(b"?\n");
    }

    fn set(&self, write: Write, out: &mut Vec<u8>) {
        out.extend_from_slice(b"w ");
        write.key.write(out);
        out.extend_from_slice(format!(" {}\n", write.value_bytes).as_bytes());
        let (bytes, number) = (write.value_bytes as usize, write.key.number());
        value::append(out, bytes, number, write.version);
    }

    fn delete(&self, key: Key, out: &mut Vec<u8>) {
        line(b'd', key, out);
    }

    fn take(&self, step: Step, input: &[u8]) -> Taken {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Taken::Incomplete { bytes: 0 };
        };
        let whole = |meaning, bytes| Taken::Whole { meaning, bytes };
        match (step.kind, input[0]) {
            (Kind::Get | Kind::Key, b'+') => {
                let length = std::str::from_utf8(&input[1..end]).ok();
                let Some(length) = length.and_then(|digits| digits.parse::<usize>().ok()) else {
                    return Taken::Wrong;
                };
                let bytes = end + 1 + length;
                match input.get(end + 1..bytes) {
                    None => Taken::Incomplete { bytes },
                    // Every byte of a value is determined by its key, so that a wrong byte is
                    // noticed.
                    Some(found) => match value::verify(found, step.key.number()) {
                        Some(_version) => whole(Meaning::Hit, bytes),
                        None => Taken::Wrong,
                    },
                }
            }
            (Kind::Get | Kind::Key | Kind::Delete, b'-') => whole(Meaning::Miss, end + 1),
            (Kind::Delete, b'!') => whole(Meaning::Hit, end + 1),
            (Kind::Set, b'!') | (Kind::End, b'?') => whole(Meaning::Done, end + 1),
            _ => Taken::Wrong,
        }
    }
}

type Items = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// Serves one connection until the client closes it.
fn serve(stream: TcpStream, items: &Items) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut out = BufWriter::new(stream.try_clone()?);
    let mut input = BufReader::new(stream);
    let mut request = Vec::new();
    loop {
        request.clear();
        if input.read_until(b'\n', &mut request)? == 0 {
            return Ok(());
        }
        let words: Vec<&[u8]> = request
            .trim_ascii_end()
            .split(|&byte| byte == b' ')
            .collect();
        match words[..] {
            [b"r", key] => match items.lock().expect("no thread panics").get(key) {
                Some(value) => {
                    writeln!(out, "+{}", value.len())?;
                    out.write_all(value)?;
                }
                None => out.write_all(b"-\n")?,
            },
            [b"w", key, length] => {
                let length = std::str::from_utf8(length)?.parse()?;
                let mut value = vec![0; length];
                input.read_exact(&mut value)?;
                let mut items = items.lock().expect("no thread panics");
                items.insert(key.to_vec(), value);
                out.write_all(b"!\n")?;
            }
            [b"d", key] => {
                let gone = items.lock().expect("no thread panics").remove(key);
                out.write_all(if gone.is_some() { b"!\n" } else { b"-\n" })?;
            }
            _ => out.write_all(b"?\n")?,
        }
        // Replies to requests that arrived together are sent together.
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
}

fn main() -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let server = Endpoint::<Toy>::new(Address::Tcp(listener.local_addr()?));
    thread::spawn(move || {
        let items = Items::default();
        for stream in listener.incoming().map_while(Result::ok) {
            let items = items.clone();
            thread::spawn(move || serve(stream, &items));
        }
    });

    // Ten thousand keys with Zipf popularity; nine requests out of ten are reads.
    let workload = Workload {
        mix: Mix::reads(0.9),
        ..Workload::preset("small", Some(10_000)).map_err(anyhow::Error::msg)?
    };
    let stored = load::pass(
        &server,
        &workload,
        Pass::Write,
        0..workload.keys,
        &mut |_| {},
    )?;
    println!("{} keys stored\n", stored.writes);

    let plan = |pace| Plan {
        connections: 8,
        measured: Some(Duration::from_secs(1)),
        ..Plan::new(Requests::Drawn(workload.clone()), pace)
    };
    // A closed loop finds the highest throughput. Its latencies do not show the delay that stalls
    // cause.
    let closed = load::run(
        &server,
        &plan(Pace::Closed { in_flight: 4 }),
        None,
        &mut |_| {},
    )?;
    println!("closed loop\n{}", closed.summary());

    // An open loop at half of that throughput finds the latencies.
    let pace = Pace::Open {
        arrivals: Arrivals::Poisson(closed.operations_per_s() / 2.0),
        burst: 1,
        idle: Idle::Sleep,
    };
    let open = load::run(&server, &plan(pace), None, &mut |_| {})?;
    println!("open loop\n{}", open.summary());
    let p99_us = open.latency_ns().value_at_quantile(0.99) / 1000;
    println!("99% of the requests took at most {p99_us} µs");
    Ok(())
}
