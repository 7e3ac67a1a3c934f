//! Findings about made-up machines.

use super::finding::{Finding, Verdict, table};
use super::findings;
use super::system::System;
use std::ffi::OsString;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{chown, symlink};

/// A machine with these files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn with(files: &[(&str, &str)]) -> Machine {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Machine(folder)
    }

    /// What is found about a command line on it.
    fn meets(&self, line: &str) -> Vec<Finding> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        findings(&words, &[], &System::below(self.0.path()))
    }
}

/// The findings about one thing, as the table shows them.
fn about(findings: &[Finding], about: &str) -> String {
    let its = findings.iter().filter(|it| it.about == about).cloned();
    table(&its.collect::<Vec<_>>())
}

const NO_PORT: &str = "-p 0 -m 64 -t 1";

#[test]
fn the_kernel_is_held_against_what_the_server_asks_for() {
    const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
    let machine = Machine::with(&[
        ("proc/sys/net/core/somaxconn", "128\n"),
        ("proc/sys/net/core/rmem_max", "212992\n"),
        ("proc/sys/net/core/wmem_max", "8000000\n"),
        ("proc/sys/vm/overcommit_memory", "2\n"),
        ("proc/stat", "cpu  50 0 30 10 0 0 0 10 0 0\ncpu0 1 1\n"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always madvise [never]\n",
        ),
        (&format!("{CLOCK}/current_clocksource"), "hpet\n"),
        (&format!("{CLOCK}/available_clocksource"), "hpet tsc\n"),
        (
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "powersave\n",
        ),
        ("sys/devices/system/node/node0/x", ""),
        ("sys/devices/system/node/node1/x", ""),
        ("etc/memcached.conf", "-m 64\n"),
    ]);
    let found = machine.meets("-l 127.0.0.1 -p 0 -U -1 -m 64 -t 1 -b 1000");
    for (thing, advice) in [
        ("backlog", "sysctl net.core.somaxconn=1000"),
        ("UDP buffers", "212992 bytes, and not 4194304"),
        ("overcommit", "sysctl vm.overcommit_memory=0"),
        ("stolen time", "10% of the time"),
        ("huge pages", "echo madvise"),
        ("clock", "echo tsc > "),
        ("frequency", "performance"),
        ("NUMA", "2 nodes"),
        ("memcached", "glimmer config from-memcached"),
    ] {
        let shown = about(&found, thing);
        assert!(
            shown.starts_with("hint ") && shown.contains(advice),
            "{shown}"
        );
    }
    let pinned = machine.meets("-p 0 --pin --hugepages off -b 100");
    for thing in ["NUMA", "huge pages", "backlog"] {
        assert!(about(&pinned, thing).starts_with("ok "), "{thing}");
    }
    // What the kernel does not tell is not guessed.
    let silent = Machine::with(&[]).meets(NO_PORT);
    for thing in ["backlog", "clock", "huge pages", "NUMA", "open files"] {
        assert_eq!(about(&silent, thing), "");
    }
}

#[test]
fn reserved_huge_pages_have_to_be_free() {
    let meminfo = "HugePages_Free:       20\nHugepagesize:       2048 kB\n";
    let machine = Machine::with(&[("proc/meminfo", meminfo)]);
    let of = |line: &str| about(&machine.meets(line), "huge pages");
    let lacks = of("-p 0 -m 64 --hugepages hugetlb");
    assert!(
        lacks.starts_with("FAULT") && lacks.contains("sysctl vm.nr_hugepages=32"),
        "{lacks}"
    );
    assert!(of("-p 0 -m 40 --hugepages hugetlb").starts_with("ok "));
}

#[test]
fn limits_of_the_process_are_held_against_connections_and_locks() {
    let limits = |files: &str, lock: &str| {
        let limits = format!(
            "Limit          Soft Limit  Hard Limit  Units\n\
             Max open files 256         {files}     files\n\
             Max locked memory {lock} {lock} bytes\n\
             Max address space unlimited unlimited bytes\n"
        );
        let status = "Name: x\nUid:\t1000\t1000\t1000\t1000\n";
        Machine::with(&[("proc/self/limits", &limits), ("proc/self/status", status)])
    };
    let files = |limit: &str| about(&limits(limit, "1").meets("-p 0 -t 1 -c 1000"), "open files");
    assert!(files("1072").starts_with("ok "), "{}", files("1072"));
    assert!(files("1071").starts_with("hint ") && files("1071").contains("-c becomes 999"));
    assert!(files("999").starts_with("FAULT") && files("999").contains("raise it to 1072"));
    assert!(files("unlimited").starts_with("ok "));
    // Root of a container may not raise the limit, unless it has the capability.
    for (set, verdict) in [("00000000a80425fb", "FAULT"), ("000001ffffffffff", "ok ")] {
        let status = format!("Uid:\t0\t0\t0\t0\nCapEff:\t{set}\n");
        let limits = "Max open files 256 256 files\nMax address space 9999999 9999999 bytes\n";
        let files = [("proc/self/limits", limits), ("proc/self/status", &*status)];
        let found = Machine::with(&files).meets("-p 0 -t 1 -c 1000 -m 64");
        let files = about(&found, "open files");
        assert!(files.starts_with(verdict), "{files}");
        let addresses = about(&found, "address space");
        assert!(addresses.starts_with("FAULT") && addresses.contains("-m is 64 MiB"));
    }
    let most = limits("5000", "1").meets(&format!("-p 0 -t 1 -c {}", u64::MAX));
    assert!(about(&most, "open files").starts_with("FAULT"), "{most:?}");
    let locked = |limit| about(&limits("5000", limit).meets("-p 0 -k"), "locked memory");
    assert!(locked("8388608").contains("8 MiB only") && locked("unlimited").starts_with("ok "));
}

/// A server would refuse each of these files, and doctor says the same.
#[test]
fn a_snapshot_that_serve_would_refuse_is_a_fault() {
    let machine = Machine::with(&[("proc/self/status", "Uid:\t0\t0\t0\t0\n")]);
    let folder = machine.0.path().join("snapshots");
    let (file, unfinished) = (folder.join("items"), folder.join("items.unfinished"));
    let found = || {
        let flags = format!("{NO_PORT} --snapshot {}", file.display());
        about(&machine.meets(&flags), "snapshot")
    };
    let remade = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 4] = [
        ("not a regular file", &|| fs::create_dir(&file).unwrap()),
        ("is a symbolic link", &|| {
            symlink("/nowhere", &file).unwrap()
        }),
        ("not a snapshot", &|| fs::write(&file, "").unwrap()),
        ("items.unfinished", &|| fs::create_dir(&unfinished).unwrap()),
    ];
    for (what, prepare) in cases {
        remade();
        prepare();
        let found = found();
        assert!(
            found.starts_with("FAULT") && found.contains(what),
            "{what}: {found}"
        );
    }
    remade();
    fs::write(&file, "").unwrap();
    // Only root may give a file away.
    if chown(&file, Some(12345), None).is_ok() {
        let found = found();
        let is_told = found.contains("belongs to user 12345");
        assert!(found.starts_with("FAULT") && is_told, "{found}");
    }
    // What a killed server has left is removed by the next one, and not by doctor.
    remade();
    fs::write(&unfinished, "").unwrap();
    assert!(found().starts_with("ok "), "{}", found());
    assert!(unfinished.exists() && !file.exists());
}

/// Each of these ends a server that starts.
#[test]
fn what_the_flags_name_has_to_be_there() {
    let root = "Uid:\t0\t0\t0\t0\n";
    let no_cores = "Max core file size 0 0 bytes\n";
    let user = "Uid:\t1000\t1000\t1000\t1000\n";
    let of_root = Machine::with(&[("proc/self/status", root)]);
    let of_user = Machine::with(&[("proc/self/status", user), ("proc/self/limits", no_cores)]);
    let folder = of_root.0.path();
    let empty = folder.join("empty");
    fs::write(&empty, "\n").unwrap();
    let empty = empty.display();
    for (machine, flags, thing, what) in [
        (
            &of_root,
            "-u nosuchuser".to_owned(),
            "user",
            "no such user; create it",
        ),
        (
            &of_root,
            "-Y /nowhere/x".to_owned(),
            "passwords",
            "cannot read the file",
        ),
        (
            &of_root,
            format!("-Y {empty}"),
            "passwords",
            "there are 0 users",
        ),
        (
            &of_root,
            "--snapshot /nowhere/x".to_owned(),
            "snapshot",
            "its folder cannot be used",
        ),
        (
            &of_root,
            "-e /nowhere/x".to_owned(),
            "memory file",
            "see that its folder exists",
        ),
        (
            &of_root,
            format!("-e {}", folder.display()),
            "memory file",
            "it is no regular file",
        ),
        (
            &of_user,
            "-r".to_owned(),
            "core files",
            "not allowed to write core files",
        ),
        (
            &of_root,
            "-U 1 --packet-transport xdp:eth9".to_owned(),
            "packet transport",
            "eth9: there is no such interface",
        ),
    ] {
        let found = about(&machine.meets(&format!("{NO_PORT} {flags}")), thing);
        let is_fault = found.starts_with("FAULT") && found.contains(what);
        assert!(is_fault, "{flags}: {found}");
    }
    if cfg!(feature = "tls") {
        let found = of_root.meets("-m 64 -t 1 -Z -o ssl_chain_cert=/nowhere/x");
        let found = about(&found, "certificates");
        assert!(
            found.starts_with("FAULT") && found.contains("/nowhere/x"),
            "{found}"
        );
    }
    let users = folder.join("users");
    fs::write(&users, "ann:secret\n").unwrap();
    let (users, new) = (users.display(), folder.join("new"));
    let new = new.display();
    let found = of_root.meets(&format!(
        "{NO_PORT} -u root -Y {users} --snapshot {new} -e {new}.memory"
    ));
    for thing in ["user", "passwords", "snapshot", "memory file"] {
        assert!(
            about(&found, thing).starts_with("ok "),
            "{thing}: {found:?}"
        );
    }
    for name in ["new", "new.memory"] {
        assert!(!folder.join(name).exists(), "nothing is made");
    }
}

#[test]
fn settings_are_read_as_serve_reads_them() {
    let machine = Machine::with(&[]);
    let wrong = machine.meets("-m 64 --evict nonsense");
    assert!(about(&wrong, "settings").starts_with("FAULT"), "{wrong:?}");
    assert!(about(&wrong, "settings").contains("--evict"), "{wrong:?}");
    let much = machine.meets("-p 0 -m 100000000");
    let memory = about(&much, "memory");
    assert!(
        memory.starts_with("FAULT") && memory.contains("-m 75%"),
        "{memory}"
    );
    let notices = machine.meets("-p 0 -f 2 -m 1 -t 1");
    assert!(
        about(&notices, "settings").contains("-f has no effect"),
        "{notices:?}"
    );
    assert!(
        about(&notices, "largest item").contains("raise -m"),
        "{notices:?}"
    );
    assert!(about(&machine.meets("-p 0 -m 1024 -t 200"), "workers").contains("share"));
}

#[test]
fn an_address_that_another_process_has_is_a_fault_and_its_owner_is_named() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let of = |on: &System, line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        findings(&words, &[], on)
    };
    let this = System::this();
    let found = of(&this, &format!("-l 127.0.0.1 -p {port}"));
    let me = format!("(process {})", std::process::id());
    let tcp = about(&found, "TCP");
    assert!(tcp.starts_with("FAULT") && tcp.contains(&me), "{tcp}");
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = datagrams.local_addr().unwrap().port();
    let found = of(&this, &format!("-l 127.0.0.1 -p -1 -U {port}"));
    let udp = about(&found, "UDP");
    assert!(udp.starts_with("FAULT") && udp.contains(&me), "{udp}");
    assert!(about(&found, "TCP").starts_with("ok "), "{found:?}");
    // An address of nobody here, and a Unix socket in no folder.
    let found = of(&this, "-l 192.0.2.1 -p 11211");
    assert!(
        about(&found, "TCP").contains("not an address of this machine"),
        "{found:?}"
    );
    // The second worker's port of native clients, two uses of one port, and a file that is no
    // socket.
    let found = of(&this, &format!("-p 0 -t 2 --native-port {}", port - 1));
    assert!(
        about(&found, "native UDP").starts_with("FAULT"),
        "{found:?}"
    );
    let found = of(&this, "-p 11211 --http 11211");
    assert!(
        about(&found, "addresses").contains("--http and -p"),
        "{found:?}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let found = of(&this, &format!("-s {}", file.path().display()));
    assert!(
        about(&found, "Unix socket").contains("no socket"),
        "{found:?}"
    );
    let found = of(&this, "-s /nonexistent/socket");
    assert!(
        about(&found, "Unix socket").contains("there is no folder"),
        "{found:?}"
    );
    assert!(about(&of(&this, NO_PORT), "addresses").contains("listen on no port"));
}

#[test]
fn the_accelerator_wants_an_interface_and_rights() {
    let machine = |rights: &str| {
        let machine = Machine::with(&[
            ("sys/class/net/eth0/device/x", ""),
            ("sys/class/net/veth0/x", ""),
            ("proc/self/status", &format!("CapEff:\t{rights}\n")),
        ]);
        let driver = machine.0.path().join("sys/class/net/eth0/device/driver");
        std::os::unix::fs::symlink("../drivers/virtio_net", driver).unwrap();
        machine
    };
    let of = |rights: &str, at: &str| {
        let found = machine(rights).meets(&format!("-U 11211 -p 0 --accelerate {at}"));
        about(&found, "accelerator")
    };
    let all = "000001ffffffffff";
    assert!(
        of(all, "xdp:eth0").contains("virtio_net, which has XDP"),
        "{}",
        of(all, "xdp:eth0")
    );
    assert!(of(all, "xdp:veth0").contains("generic mode"));
    assert!(of(all, "xdp:eth9").starts_with("FAULT"));
    assert!(of("0000000000000000", "xdp:eth0").contains("CAP_BPF"));
}

#[test]
fn a_program_reads_the_same_as_a_person() {
    let findings = [
        Finding::ok("clock", "tsc"),
        Finding::fault("memory", "too little", "add some"),
    ];
    let json = serde_json::to_value(&findings).unwrap();
    let expected = serde_json::json!([
        {"about": "clock", "verdict": "ok", "found": "tsc"},
        {"about": "memory", "verdict": "fault", "found": "too little", "advice": "add some"},
    ]);
    assert_eq!(json, expected);
    assert_eq!(
        table(&findings),
        "ok     clock   tsc\nFAULT  memory  too little; add some\n"
    );
    assert_eq!(findings[1].verdict, Verdict::Fault);
}
