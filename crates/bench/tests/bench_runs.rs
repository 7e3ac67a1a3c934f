//! The benchmarks run as their help says, at a small scale.

mod program;

use program::{bench, command, has_two_cores, read_json, refused, server, told};

#[test]
fn peers_are_looked_for_before_anything_is_measured() {
    for (line, hint) in [
        ("memory --items 1000", "apt-get install memcached"),
        ("native --redis --keys 1k", "apt-get install redis-server"),
        ("versus --keys 1k", "apt-get install memcached"),
        ("versus --peers valkey", "apt-get install valkey-server"),
        (
            "versus --peers none --peer newest=/bin/true",
            "no server that can be compared",
        ),
    ] {
        let mut without_peers = command(line);
        without_peers.env("PATH", "/nowhere");
        let complaint = refused(without_peers);
        assert!(complaint.contains(hint), "{line}: {complaint}");
        assert!(!complaint.contains("storing"), "{line}: {complaint}");
    }
}

/// Where the kernel groups processes by session, and the test may change their priorities.
#[test]
fn a_benchmark_leaves_its_session_the_priority_that_it_had() {
    // The first ends as soon as it has looked for the peer, the second by a signal in its midst.
    // The kernel takes one change in a tenth of a second from users without all rights.
    for run in [
        "\"$0\" versus --peers none --peer newest=/bin/true",
        "\"$0\" store --items 1000 --cores 1 --seconds 60 --access erew & \
         until grep -q 'nice -20' /proc/self/autogroup; do kill -0 $! || exit 1; sleep 0.01; done; \
         sleep 0.2; kill -TERM $!; wait $!",
    ] {
        let script = format!(
            "echo -1 >/proc/self/autogroup || exit 77; sleep 0.2; {{ {run}; }} >&2; \
             cat /proc/self/autogroup"
        );
        // A session of its own: the other tests run beside it.
        let mut session = std::process::Command::new("setsid");
        session.args(["--wait", "sh", "-c", &script]);
        let output = session.arg(env!("CARGO_BIN_EXE_glimmer-bench")).output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) {
            println!("SKIPPED: the priority of a session cannot be changed here: {errors}");
            return;
        }
        let after = String::from_utf8(output.stdout).unwrap();
        assert!(after.ends_with("nice -1\n"), "{run}: {after} {errors}");
    }
}

/// The output of `bench load` for these keys and a server with this much memory.
fn load_of(keys: &str, memory_mib: &str) -> String {
    let serving = Serving::start(&["-m", memory_mib, "-t", "1"]);
    let address = serving.address();
    bench(&format!(
        "load {address} --keys {keys} --seconds 0.3 --warm-up 0"
    ))
}

#[test]
fn keys_that_do_not_fit_are_told_and_the_advice_helps() {
    let printed = load_of("1k", "8");
    assert!(!printed.contains("DO NOT FIT"), "{printed}");
    // Of the second, values have 460 bytes on average and up to 100,000.
    for keys in ["200k", "40k --workload etc:0.0075:100000"] {
        let printed = load_of(keys, "8");
        let told = "THE KEYS DO NOT FIT: all ";
        assert!(printed.contains(told), "{printed}");
        let (_, advice) = printed.split_once("about -m ").unwrap();
        let (memory_mib, _) = advice.split_once(';').unwrap();
        assert!(memory_mib.parse::<u32>().unwrap() < 50, "{printed}");
        let printed = load_of(keys, memory_mib);
        assert!(
            !printed.contains("DO NOT FIT"),
            "-m {memory_mib}: {printed}"
        );
    }
}

/// In store mode, a full server refuses what is stored.
#[test]
fn keys_that_were_refused_are_not_said_to_be_stored() {
    let serving = Serving::start(&["-m", "8", "-M", "-t", "1"]);
    let address = serving.address();
    let load = format!("load {address} --keys 200k --gets 1 --seconds 0.3 --warm-up 0");
    let (printed, errors) = told(&load);
    assert!(errors.contains("had no room for "), "{errors}");
    assert!(printed.contains(" of 200000 keys were stored"), "{printed}");
    assert!(!printed.contains("all 200000"), "{printed}");
}

#[test]
fn a_value_that_is_too_large_for_the_server_ends_the_run() {
    let native = glimmer_measure::ports::free_ports(1).unwrap().to_string();
    let (_memcached, address) = serving_tcp(&["-m", "64", "--native-port", &native, "-t", "1"]);
    let (_redis, resp_address) = serving_tcp(&["-m", "64", "-B", "resp"]);
    let native_address = format!("127.0.0.1:{native}");
    for (protocol, address) in [
        ("text", &address),
        ("meta", &address),
        ("binary", &address),
        ("resp", &resp_address),
        ("native", &native_address),
    ] {
        let load = format!("load {address} -B {protocol} --keys 5 --seconds 0.1 --value-bytes 2m");
        let error = refused(command(&load));
        let hint = "no value of 2097152 bytes: start it with a larger -I";
        assert!(error.contains(hint), "{protocol}: {error}");
    }
    // A trace has values of any length.
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    std::fs::write(&trace, "0,1,2000000\n1,1,2000000\n2,2,100\n").unwrap();
    let trace = trace.display();
    let printed = bench(&format!(
        "load {address} --trace {trace} --trace-format csv"
    ));
    assert!(printed.contains("misses 3 "), "{printed}");
    assert!(
        printed.contains("writes 1, deletes 0, refused 2"),
        "{printed}"
    );
}

/// By default, over many connections, and in an open loop.
#[test]
fn a_replayed_trace_reads_what_it_wrote_before() {
    let (_serving, address) = serving_tcp(&["-m", "64", "-t", "2"]);
    let directory = tempfile::tempdir().unwrap();
    for (number, pace) in ["", "--pipeline 32 -t 2", "--rate 20k --sleep"]
        .iter()
        .enumerate()
    {
        let trace = directory.path().join(format!("trace{number}"));
        let pair = |key| format!("0,{number}k{key},8,9,1,set,0\n0,{number}k{key},8,9,1,get,0\n");
        std::fs::write(&trace, (0..2000).map(pair).collect::<String>()).unwrap();
        let trace = trace.display();
        let how = format!("--trace {trace} --trace-format twitter {pace}");
        let printed = bench(&format!("load {address} {how}"));
        assert!(
            printed.contains("hits 2000, misses 0 "),
            "{pace}: {printed}"
        );
    }
}

/// Nothing listens at the address.
#[test]
fn what_cannot_be_measured_is_refused_before_the_keys_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    std::fs::write(&keys, "1\n2\n").unwrap();
    let trace = format!("--trace {} --speed 1", keys.display());
    for (line, hint) in [
        (&*trace, "has keys and no times: give --rate"),
        (
            "--keys 18446744073709551615 --no-fill",
            "at most 9007199254740992 keys",
        ),
        ("--cores 0,1000", "--cores 1000: "),
        ("--cores 99999", "--cores 99999: "),
        ("--json run --hdr-log run", "name one file"),
        ("--seconds 1e11", "at most a year"),
        ("--json /proc/run.json", "writing /proc/run.json: "),
        ("--hdr-log /proc/run.hlog", "writing /proc/run.hlog: "),
    ] {
        let error = refused(command(&format!("load 127.0.0.1:1 {line}")));
        assert!(error.contains(hint), "{line}: {error}");
        assert!(!error.contains("storing"), "{line}: {error}");
    }
}

/// With port 0, the kernel chooses.
#[test]
fn the_echo_names_the_port_at_which_it_listens() {
    let mut echo = command("echo -p 0");
    let mut echo = echo.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = std::io::BufReader::new(echo.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap();
    let connected = std::net::TcpStream::connect(address);
    echo.kill().unwrap();
    echo.wait().unwrap();
    assert!(connected.is_ok() && !address.ends_with(":0"), "{line}");
}

/// The server is a program with a name, as builds of others are.
#[test]
fn memory_counts_what_our_server_keeps() {
    let built = format!("built={}", server().get_program().display());
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("memory.json");
    let servers = format!("--without-glimmer --peers none --peer {built}");
    let items = "-m 32 --items 700000 --first 100000 --json";
    let table = bench(&format!("memory {servers} {items} {}", json.display()));
    assert!(table.contains("| built "), "{table}");
    let version = format!("- built: glimmer {}", env!("CARGO_PKG_VERSION"));
    assert!(table.contains(&version), "{table}");

    let report = read_json(&json);
    assert_eq!(report["servers"][0]["server"], "built");
    let row = &report["rows"][0];
    let figure = |name: &str| row[name].as_u64().unwrap();
    // An item takes 48 bytes of key and value and at most 26 more. Buffers take their share of such
    // a small limit.
    assert!((250_000..700_000).contains(&figure("resident")), "{row}");
    assert!(figure("first_lost") <= 100, "{row}");
    assert!(figure("rss_peak_bytes") < (32 + 32) << 20, "{row}");
}

#[test]
fn store_prints_operations_per_random_read() {
    let table = bench(
        "store --items 200000 --cores 1 --seconds 0.1 --repeat 1 --access crew --dist uniform \
         --gets 0.95 --without item",
    );
    assert_eq!(table.matches("| crew").count(), 2, "{table}");
    assert!(table.contains("without items"), "{table}");
}

#[test]
fn store_puts_the_tables_of_others_beside_ours() {
    let table = bench(
        "store --items 50000 --cores 1 --seconds 0.1 --repeat 1 --access erew --dist uniform \
         --gets 0.95 --peers all",
    );
    let ours = ["erew adaptive", "erew store", "erew memc3"];
    let theirs = [
        "hashbrown",
        "hashbrown-unshared",
        "dashmap",
        "papaya",
        "scc",
        "scc-cache",
        "quick_cache",
        "moka",
    ];
    let bytes = theirs.map(|name| format!("{name}-bytes "));
    let theirs = theirs.map(|name| format!("{name} "));
    let others = ["segcache", "btreemap", "bounded-chain", "mica-paper"];
    let mirrors = ["chained-lru ", "chained-lru-striped"];
    let texts = [&ours[..], &others, &mirrors].concat();
    let names = [&theirs[..], &bytes].concat();
    for name in texts.into_iter().chain(names.iter().map(String::as_str)) {
        assert!(table.contains(&format!("\n| {name}")), "{name}: {table}");
    }
    assert!(table.contains("our fastest"), "{table}");
    assert!(table.contains("items of any length"), "{table}");
}

/// Our server on a Unix socket, until the value is dropped.
struct Serving {
    server: std::process::Child,
    directory: tempfile::TempDir,
}

impl Serving {
    fn start(arguments: &[&str]) -> Serving {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let at = ["-s", socket.to_str().unwrap()];
        let is_there = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
        let server = serve(&[&at, arguments].concat(), is_there);
        Serving { server, directory }
    }

    fn address(&self) -> String {
        format!("unix:{}", self.directory.path().join("socket").display())
    }
}

/// Starts the server, and waits until it is there.
fn serve(arguments: &[&str], is_there: impl Fn() -> bool) -> std::process::Child {
    let server = server()
        .arg("serve")
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn();
    let begin = std::time::Instant::now();
    while !is_there() {
        assert!(
            begin.elapsed().as_secs() < 20,
            "the server accepts no connections"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    server.unwrap()
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn large_values_have_connections_and_threads_of_their_own_if_asked_for() {
    let serving = Serving::start(&["-m", "64"]);
    let json = serving.directory.path().join("run.json");
    let address = serving.address();
    let what = "--keys 1000 --workload minos:10%:20k --rate 4000 --sleep --seconds 0.5 --warm-up 0";
    for (how, connections, threads) in [
        ("--large-connections 3 --threads 2", 3, 0),
        ("--large-connections 3 --large-threads 2", 3, 2),
    ] {
        let json_file = json.display();
        bench(&format!("load {address} {what} {how} --json {json_file}"));
        let report = read_json(&json);
        let large = &report["plan"]["large"];
        assert_eq!(large["connections"], connections);
        assert_eq!(large["threads"], threads);
        // No arrival is sent twice, by one kind of thread and the other, and neither kind leaves
        // its own out. A machine that stalls at the end of the half second sends fewer.
        let result = &report["result"];
        let requests = result["latency"]["count"].as_u64().unwrap();
        assert!((1000..2300).contains(&requests), "{how}: {requests}");
        assert_eq!(result["tally"]["misses"], 0, "{how}: {result}");
        let large = result["sizes"][2]["count"].as_u64().unwrap();
        assert!((70..260).contains(&large), "{how}: {large}");
    }
    for (how, hint) in [
        ("--large-connections 3", "--rate"),
        ("--rate 100 --large-connections 1 --threads 2", "divided"),
        ("--rate 100 --large-threads 1", "--large-connections"),
    ] {
        let error = refused(command(&format!("load {address} {how}")));
        assert!(error.contains(hint), "{how}: {error}");
        assert!(!error.contains("storing"), "{how}: {error}");
    }
}

#[test]
fn load_measures_a_server_by_its_address() {
    let serving = Serving::start(&["-m", "64"]);
    let (directory, address) = (&serving.directory, serving.address());
    let [json, log] = ["run.json", "run.hlog"].map(|name| directory.path().join(name));
    let files = format!("--json {} --hdr-log {}", json.display(), log.display());
    let table = bench(&format!(
        "load --server {address} --keys 1000 --workload etc:0.01:20k --rate 2000 --sleep \
         --seconds 2 --warm-up 0.1 --connections 4 --threads 2 {files}"
    ));
    let swept = bench(&format!(
        "load --server {address} --keys 1000 --no-fill --sweep --slo p50=10s --rate 3000000 \
         --seconds 0.1 --warm-up 0"
    ));

    assert!(
        table.contains("| reads") && table.contains("client late"),
        "{table}"
    );
    let report = read_json(&json);
    let result = &report["result"];
    assert_eq!(result["tally"]["misses"], 0, "{result}");
    let requests = result["latency"]["count"].as_u64().unwrap();
    assert!((3400..4600).contains(&requests), "{requests} requests");
    let log = std::fs::read_to_string(&log).unwrap();
    for tag in ["Tag=read,", "Tag=tiny,", "Tag=small,", "Tag=large,"] {
        assert!(log.contains(tag), "{tag}");
    }
    // Every request has one size, and one in a hundred is large.
    for row in [
        "| tiny, 1-13 B ",
        "| small, 14-1400 B ",
        "| large, 1401 B and more ",
    ] {
        assert!(table.contains(row), "{row}: {table}");
    }
    for sizes in ["sizes", "size_classes"] {
        let counts = result[sizes].as_array().unwrap().iter();
        let counts = counts.map(|size| size["count"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), requests, "{sizes}");
    }
    let large = &result["sizes"][2];
    assert_eq!(
        (&large["group"], &large["from_bytes"]),
        (&"large".into(), &1401.into())
    );
    assert!(
        (15..75).contains(&large["count"].as_u64().unwrap()),
        "{large}"
    );
    assert!(swept.contains("3.00 M/s"), "{swept}");
}

/// Its record serves a figure.
#[test]
fn calibrate_measures_every_cost_and_writes_the_record_that_figures_read() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("costs.json");
    let tables = bench(&format!(
        "calibrate --quick --link 10 --json {}",
        json.display()
    ));
    for row in [
        "| 500000 ",
        "one packet of a GET",
        "one packet of a PUT",
        "reading a batch",
        "receiving one request",
        "putting a request into a software queue",
        "taking it where any core may take",
        "counting its size",
        "10 Gb/s",
    ] {
        assert!(tables.contains(row), "{row}: {tables}");
    }
    let record = read_json(json);
    let machine = &record["machine"];
    assert!(machine["processor"].as_str().unwrap().len() > 2, "{record}");
}

#[test]
fn self_shows_what_the_load_generator_can_do() {
    let table = bench("self --seconds 0.1 --repeat 1 --connections 4");
    for row in ["zipf:0.99", "zipf:1.2", "pipeline 1 ", "pipeline 32"] {
        assert!(table.contains(row), "{table}");
    }
}

#[test]
fn versus_goes_through_every_scenario() {
    if !has_two_cores() {
        return;
    }
    let (table, progress) = told(
        "versus --seconds 0.1 --repeat 1 --keys 10000 --peers none --memory-limit 64 \
         --connections 4 --many-connections 1,60,200",
    );
    for line in progress.lines().filter(|line| line.contains("repetition")) {
        // Names as on the command line, and not as in the source.
        assert!(
            line.chars()
                .all(|letter| !letter.is_ascii_uppercase() || "M".contains(letter)),
            "{line}"
        );
    }
    assert!(
        progress.contains(": pipeline32, repetition 1 of 1: glimmer, "),
        "{progress}"
    );
    for row in [
        "| pipeline 32, 95% reads",
        "| pipeline 1, 95% reads",
        "| multi-get of 50 keys",
        "| glimmer binary",
        "| UDP, plain datagrams of one read",
        "| UDP, the same in segment batches",
        "| open loop",
        "| bare echo",
        "of the echo's rate",
        "| 1 connection, pipeline 1",
        "| 60 connections, pipeline 1",
        "| 200 connections, pipeline 1",
        "| GET of 10 KB ",
        "| 8 connections, 1 in flight, read(1024 KiB) ",
        "| GET of 1 MB ",
        "| SET of 100 KB ",
        "| SET of 1 MB ",
        "| glimmer --access erew",
        "| random 64-byte reads",
    ] {
        assert!(table.contains(row), "{row}: {table}");
    }
    assert!(!table.contains("NaN"), "{table}");
    // Every key is present in every protocol; datagrams may get lost.
    let complete = table.matches(" 0.000% |").count();
    assert!(complete >= 19, "{complete} without misses: {table}");
}

#[test]
fn native_is_measured_beside_the_echo() {
    let table = bench(
        "native --keys 2000 --seconds 0.2 --repeat 1 --pipeline 64 --memory-limit 64 --gets 0.95",
    );
    for row in [
        "UDP echo, batches of 32",
        "UDP echo, batches of 64",
        "UDP echo, plain",
        "native, 95% GET, uniform ",
        "native, 95% GET, zipf",
        "several requests per datagram",
        "without segment batches",
    ] {
        assert!(table.contains(row), "{row} in {table}");
    }
}

/// Whether there are network namespaces to be had.
fn has_namespaces() -> bool {
    let made = glimmer_measure::namespaces::Namespace::new();
    if made.is_err() {
        println!("SKIPPED: this test needs network namespaces");
        assert!(std::env::var_os("CI").is_none(), "network namespaces");
    }
    made.is_ok()
}

/// The client uses the same transport as the server. What this program cannot do is said.
#[test]
fn native_is_measured_past_the_kernels_stack() {
    if !has_namespaces() {
        return;
    }
    let line = "native --keys 2000 --seconds 0.1 --repeat 1 --pipeline 64 --memory-limit 64 \
                --gets 0.95 --packet-transport";
    let table = bench(&format!("{line} xdp"));
    for row in ["echo over xdp:veth0", "native, 95% GET, uniform ", "zipf"] {
        assert!(table.contains(row), "{row} in {table}");
    }
    assert!(!table.contains("without segment batches"), "{table}");
    let complaint = refused(command(&format!("{line} dpdk")));
    assert!(complaint.contains("without the feature"), "{complaint}");
}

/// What carries datagrams carries no streams, and is refused as at a server.
#[test]
fn load_refuses_a_transport_that_cannot_be_used() {
    for (line, hint) in [
        ("--packet-transport udp-plain", "give udp:HOST:PORT"),
        (
            "-B native --packet-transport pigeon",
            "one of udp, udp-plain, xdp",
        ),
        (
            "-B native --packet-transport xdp:none",
            "there is no such interface",
        ),
        ("-B native --packet-transport dpdk:x", "built without DPDK"),
    ] {
        let complaint = refused(command(&format!("load 127.0.0.1:1 --no-fill {line}")));
        assert!(complaint.contains(hint), "{line}: {complaint}");
    }
}

/// Each transport is measured, or it is said why not.
#[test]
fn transports_are_measured_beside_an_echo() {
    if !has_namespaces() {
        return;
    }
    for queues in ["", " --queues 2"] {
        let table = bench(&format!("transports --seconds 0.1 --repeat 1{queues}"));
        for row in ["| udp ", "| udp-plain ", "| xdp:veth0 ", "dpdk: left out"] {
            assert!(table.contains(row), "{row} in {table}");
        }
    }
}

/// Our server on a free port.
fn serving_tcp(arguments: &[&str]) -> (Serving, String) {
    let port = glimmer_measure::ports::free_ports(1).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = ["-l", "127.0.0.1", "-U", "0", "-p", &port.to_string()];
    let is_there = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let server = serve(&[&at, arguments].concat(), is_there);
    (Serving { server, directory }, format!("127.0.0.1:{port}"))
}

#[test]
fn latencies_end_at_the_kernels_timestamps_if_asked_for() {
    let (serving, address) = serving_tcp(&["-m", "64"]);
    let json = serving.directory.path().join("run.json");
    for pace in ["--rate 2000 --sleep", "--pipeline 4"] {
        let what = "--keys 1000 --workload minos:10%:200k --seconds 0.5 --warm-up 0.1 \
                    --connections 4 --kernel-timestamps";
        let json_file = json.display();
        let table = bench(&format!("load {address} {what} {pace} --json {json_file}"));
        assert!(table.contains("| client unread "), "{table}");
        let report = read_json(&json);
        let result = &report["result"];
        // Each reply has a timestamp, and it lies between the request and the read.
        assert_eq!(
            result["client_unread"]["count"], result["latency"]["count"],
            "{result}"
        );
        assert!(result["latency"]["p50_us"].as_f64() > Some(1.0), "{result}");
        assert!(
            result["client_unread"]["p50_us"].as_f64() < Some(1e6),
            "{result}"
        );
    }
    let serving = Serving::start(&["-m", "64"]);
    let address = serving.address();
    let error = refused(command(&format!(
        "load {address} --kernel-timestamps --keys 10"
    )));
    assert!(
        error.contains("no receive timestamps of Unix sockets"),
        "{error}"
    );
}
