"""The process: how it starts, refuses to start, idles, and ends."""

import ctypes
import fcntl
import os
import platform
import pwd
import resource
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path

import pytest
from harness import PATIENCE_S, Server, Wire, command, free_port, is_memcached, server_binary
from test_limits import resident_mib
from clauses_text import END, STORED, store, value


def start_badly(*flags):
    """Starts a server that must not run; returns its exit code and its lines on stderr."""
    run = subprocess.run([server_binary(), "serve", *flags], capture_output=True, text=True, timeout=PATIENCE_S)
    return run.returncode, run.stderr.splitlines()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_stop_it_cleanly(ours, sig):
    server = Server("-t", 2)
    with server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
        assert server.stop(sig) == 0
        wire.expect_closed()


def test_what_has_arrived_is_answered_before_the_end(ours):
    server = Server("-t", 2)
    with server.wire() as wire:
        wire.exchange(store(bytes(1000), b"a"), STORED)
        wire.send(b"get a\r\n" * 3000)
        wire.expect(value(b"a", bytes(1000)))
        os.kill(server.pid, signal.SIGTERM)
        wire.expect((END + value(b"a", bytes(1000))) * 2999 + END)
        wire.expect_closed()
    assert server.ended() == 0


def await_arrival(wires):
    """Waits until the server's kernel has acknowledged what was sent."""
    deadline = time.monotonic() + PATIENCE_S
    for wire in wires:
        while struct.unpack("i", fcntl.ioctl(wire.socket, termios.TIOCOUTQ, bytes(4)))[0] > 0:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_connections_that_wait_are_served_before_the_end(ours):
    """Connections that are not yet accepted when the server is told to stop are served, not reset."""
    server = Server("-t", 2)
    with server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
    server.pause()
    waiting = [server.wire() for _ in range(300)]
    for wire in waiting:
        wire.send(b"get a\r\n")
    # On a busy machine the kernel is late, and what arrives after the end is not answered.
    await_arrival(waiting)
    os.kill(server.pid, signal.SIGTERM)
    server.go_on()
    for wire in waiting:
        wire.expect(value(b"a", b"1") + END)
        wire.expect_closed()
        wire.close()
    assert server.ended() == 0


def test_a_hang_up_does_no_harm(ours):
    with Server("-t", 1) as server:
        os.kill(server.pid, signal.SIGHUP)
        with server.wire() as wire:
            wire.exchange(store(b"1"), STORED)


def test_a_port_in_use(ours):
    with Server() as server:
        code, lines = start_badly("-l", "127.0.0.1", "-p", str(server.port))
        assert code == 71
        assert len([line for line in lines if "WARN" not in line]) == 1
        assert f"cannot listen on 127.0.0.1:{server.port}" in lines[-1]
        assert "another process has it" in lines[-1]
        with server.wire() as wire:
            wire.exchange(store(b"1"), STORED)


@pytest.mark.parametrize(
    "flags,code,named",
    [
        (["-p", "65536"], 64, "65536"),
        (["-U", "65536"], 64, "65536"),
        (["-p", "-2"], 64, "or -1 for any free port"),
        (["-m", "0"], 64, "-m"),
        (["-m", "-1"], 64, '"-1" is not in MiB'),
        (["-I", "5x"], 64, '"5x" is not a length in bytes'),
        (["--large-min", "x"], 1, '"x" is not a length in bytes'),
        (["--large-min", "-1"], 1, '"-1" is not a length in bytes'),
        (["--tcp-keepalive", "x"], 1, '"x" is not a whole number'),
        (["--lru-threshold", "x"], 1, "not a number such as 0.5"),
        (["-t", "0"], 1, "Number of threads must be greater than 0"),
        (["-t", "1000"], 1, "-t 1000"),
        (["-c", "0"], 1, "Maximum connections must be greater than 0"),
        (["-c", "-1"], 1, "Maximum connections must be greater than 0"),
        (["-R", "0"], 1, "Number of requests per event must be greater than 0"),
        (["-I", "100"], 64, "-I 100"),
        (["-I", "2000m"], 64, "-I"),
        (["-B", "http"], 64, "auto, binary, resp, or ascii"),
        (["-Z"], 64, "ssl_chain_cert"),
        (["-o", "nonsense"], 1, 'Illegal suboption "nonsense"'),
        (["-o", "hashpower=9"], 1, "hashpower=9"),
        (["-Y", "/nonexistent", "-B", "binary"], 64, "-Y"),
        (["-B", "resp", "-U", "-1"], 64, "-B resp excludes UDP"),
        (["--mode", "none"], 1, "cache, store"),
        (["-M", "--mode", "cache"], 64, "-M means --mode store"),
        (["-s", "/tmp/socket", "--native-port", "9"], 64, "--native-port"),
        (["--table", "memc3", "--evict", "lru"], 64, "--evict"),
        (["--access", "none"], 1, "erew, crew, crcw"),
        (["--evict", "random"], 1, "fifo, lru, s3fifo"),
        (["--lru-threshold", "7"], 1, "--lru-threshold 7"),
        (["-l", "999.1.1.1"], 71, "-l 999.1.1.1"),
        (["-l", "[::1"], 71, "-l [::1: not an address to listen on: the bracket is not closed"),
        (["-l", "203.0.113.1"], 71, "203.0.113.1"),
        (["-s", "/nonexistent/socket"], 71, "/nonexistent/socket"),
        (["--no-such-flag"], 1, "--no-such-flag"),
        (["stray"], 1, "stray"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(ours, flags, code, named):
    returned, lines = start_badly(*flags)
    assert returned == code, lines
    assert len(lines) == 1, lines
    assert lines[0].startswith("glimmer: ") and named in lines[0]


def started_with_open_files(limit, *flags):
    """Starts a server as a user who cannot raise this hard limit of open files."""

    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        if os.geteuid() == 0:
            os.setuid(pwd.getpwnam("nobody").pw_uid)

    port = free_port()
    line = command(server_binary(), *flags, port=port)
    return port, subprocess.Popen(line, stderr=subprocess.PIPE, text=True, preexec_fn=lower)


def test_a_low_limit_of_open_files_leaves_fewer_connections(ours):
    port, process = started_with_open_files(200, "-c", 200, "-t", 2)
    try:
        lines = [process.stderr.readline() for _ in range(2)]
        assert " ready on " in lines[0] and "-c 200 is lowered to 120" in lines[1], lines
        wires = [Wire(port) for _ in range(120)]
        for wire in wires:
            wire.exchange(b"get a\r\n", END)
        with Wire(port) as wire:
            wire.expect(b"ERROR Too many open connections\r\n")
            wire.expect_closed()
        wires[0].send(b"stats\r\n")
        lines = iter(wires[0].line, b"END\r\n")
        assert b"STAT max_connections 120\r\n" in list(lines)
        for wire in wires:
            wire.close()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_limit_of_open_files_below_the_connections_prevents_the_start(ours):
    _, process = started_with_open_files(199, "-c", 200, "-t", 2)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 71 and "-c 200 needs 280 file descriptors" in errors


def test_reserved_huge_pages_that_are_not_there(ours):
    if int(open("/proc/sys/vm/nr_hugepages").read()) > 0:
        pytest.skip("this machine has huge pages in reserve")
    code, lines = start_badly("--hugepages", "hugetlb", "-l", "127.0.0.1", "-p", str(free_port()))
    assert (code, len(lines)) == (1, 1)
    assert "nr_hugepages" in lines[0]


def test_an_unknown_user(ours):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    code, lines = start_badly("-l", "127.0.0.1", "-p", str(free_port()), "-u", "no-such-user")
    assert (code, len(lines)) == (67, 1)
    assert "no-such-user" in lines[0]


def test_it_becomes_the_user(ours):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with Server("-u", "nobody") as server:
        deadline = time.monotonic() + PATIENCE_S
        while os.stat(f"/proc/{server.pid}").st_uid == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        for thread in os.listdir(f"/proc/{server.pid}/task"):
            uids = next(line for line in open(f"/proc/{server.pid}/task/{thread}/status") if line.startswith("Uid:"))
            assert "0" not in uids.split()[1:], "no thread stays root"


def uids(pid):
    """The user ids of all threads, including saved and effective ones."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as status:
            yield from next(line for line in status if line.startswith("Uid:")).split()[1:]


class HeldOpens:
    """Holds up whoever opens or makes a file in a folder, by the kernel's fanotify."""

    CLASS_CONTENT, MARK_ADD, ALLOW = 0x4, 0x1, 1
    OPENS_OF_CHILDREN = 0x10000 | 0x08000000
    EVENT = struct.Struct("=IBBHQii")

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.fanotify_init(self.CLASS_CONTENT, os.O_RDONLY)
        events = ctypes.c_uint64(self.OPENS_OF_CHILDREN)
        at_cwd = -100
        if self.descriptor < 0 or libc.fanotify_mark(self.descriptor, self.MARK_ADD, events, at_cwd, bytes(folder)) < 0:
            pytest.skip("the kernel or its rights do not let a test hold up a process")

    def release(self):
        """Lets the one go on that waits now; waits until there is one. Ends the holding."""
        *_, opened, _ = self.EVENT.unpack(os.read(self.descriptor, 4096)[: self.EVENT.size])
        os.write(self.descriptor, struct.pack("=iI", opened, self.ALLOW))
        os.close(opened)
        self.close()

    def close(self):
        """Lets everybody go on."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.descriptor = None


def test_nobody_is_served_by_root(ours, tmp_path):
    """Clients that connect while the server starts wait until it has given up root.

    Making the file with the ports holds up the server with its addresses bound.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = tmp_path / "ports"
    folder.mkdir()
    path = folder / "ports"
    held = HeldOpens(folder)
    port = free_port()
    process = subprocess.Popen(
        command(server_binary(), "-u", "nobody", "-t", 2, port=port),
        stderr=subprocess.DEVNULL,
        env={**os.environ, "MEMCACHED_PORT_FILENAME": str(path)},
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
        with client:
            client.sendall(b"mn\r\n")
            client.settimeout(0.5)
            try:
                reply = client.recv(4)
                assert "0" not in uids(process.pid), "root answered"
            except TimeoutError:
                reply = b""
            held.release()
            client.settimeout(PATIENCE_S)
            assert reply + client.recv(4) == b"MN\r\n"
            assert "0" not in uids(process.pid)
        assert "TCP INET" in path.read_text()
    finally:
        held.close()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_locked_memory_outlasts_root(ours):
    """A user who may lock little memory still gets what the server needs."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 16, limit[1]))
    try:
        with Server("-k", "-u", "nobody", "-t", 4) as server, server.wire() as wire:
            wire.exchange(store(bytes(100_000)), STORED)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, limit)


def test_a_unix_socket_is_the_users(ours, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    path = tmp_path / "socket"
    process = subprocess.Popen(command(server_binary(), "-u", "nobody", "-s", path, "-a", "660"), stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + PATIENCE_S
        nobody = pwd.getpwnam("nobody")
        while not path.exists() or path.stat().st_uid == 0:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        stat = path.stat()
        assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o777) == (nobody.pw_uid, nobody.pw_gid, 0o660)
    finally:
        process.terminate()
        process.communicate()


def test_links_of_another_user_are_not_followed(ours, tmp_path, monkeypatch):
    """Names in a folder to which others may write, with links under all names that a server uses."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in ("pid", "pid.tmp", "ports", "ports.lck"):
        (tmp_path / name).symlink_to(precious)
    monkeypatch.setenv("MEMCACHED_PORT_FILENAME", str(tmp_path / "ports"))
    with Server("-P", tmp_path / "pid") as server:
        server.stats()
        assert precious.read_text() == "precious"
        assert (tmp_path / "pid").read_text() == f"{server.pid}\n"
        assert "TCP INET" in (tmp_path / "ports").read_text()
        names = sorted(path.name for path in tmp_path.iterdir() if not path.is_symlink())
        assert names == ["pid", "ports", "precious"]


def test_pid_file(ours, tmp_path):
    path = tmp_path / "pid"
    with Server("-P", path) as server:
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists() or not path.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert path.read_text() == f"{server.pid}\n"
    assert not path.exists()


def warnings(server):
    """The warnings of a server that has ended, but for the one that root gets."""
    return [line for line in server.errors.splitlines() if "WARN" in line and "running as root" not in line]


def test_a_pid_file_that_cannot_be_written_is_no_refusal(ours, tmp_path):
    path = tmp_path / "none" / "pid"
    with Server("-P", path) as server, server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
    (warning,) = warnings(server)
    assert f"-P {path}: cannot be written: " in warning


def test_a_pid_file_of_a_process_that_runs_is_warned_of(ours, tmp_path):
    path = tmp_path / "pid"
    with Server("-P", path) as first:
        first.stats()
        with Server("-P", path) as second:
            second.stats()
            assert path.read_text() == f"{second.pid}\n"
        (warning,) = warnings(second)
        assert f"-P {path}: process {first.pid}, which it names, runs" in warning
    path.write_text(f"{second.pid}\n")
    with Server("-P", path) as third:
        third.stats()
    assert warnings(third) == [], "an ended process left the file"


@pytest.mark.parametrize("mode", ["erew", "crew", "crcw"])
@pytest.mark.parametrize("memory,item", [(2, "1m"), (1, "1k"), (1024, "1m"), (64, "16m")])
def test_memory_limits(ours, memory, item, mode):
    """A small limit means fewer partitions and a lower item limit, not a refusal."""
    with Server("-m", memory, "-I", item, "--access", mode, "-t", 2) as server:
        limit = int(server.stats("settings")["item_size_max"])
        data = bytes(limit - 400)
        with server.wire() as wire:
            wire.exchange(store(data), STORED)
            wire.exchange(b"get a\r\n", value(b"a", data) + END)
            wire.exchange(store(bytes(limit)), b"SERVER_ERROR object too large for cache\r\n")


def test_it_starts_small(ours):
    with Server("-m", 4096) as server:
        assert resident_mib(server) < 32


def scheduling(thread):
    """For how long the scheduler lets a thread run at a time, and its nice value; 0 ns where the kernel does not tell."""
    get_attributes = {"x86_64": 315, "aarch64": 275}[platform.machine()]
    attributes = ctypes.create_string_buffer(48)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(get_attributes, int(thread), attributes, len(attributes), 0) == 0, ctypes.get_errno()
    _, _, _, nice, _, slice_ns = struct.unpack_from("=IIQiIQ", attributes)
    return slice_ns, nice


def test_who_runs_first_on_a_core(ours):
    """A thread with shorter slices goes first: workers before other programs, and long work after them."""
    usual, nice = scheduling(threading.get_native_id())
    if usual == 0:
        pytest.skip("the kernel tells of no slices: Linux 6.12 or newer is needed")
    wanted = {"worker-0": (100_000, nice), "worker-1": (100_000, nice), "pages": (100_000_000, nice)}
    with Server("-t", 2) as server:
        # A thread names itself and asks for its slices when it starts.
        deadline = time.monotonic() + PATIENCE_S
        found = {}
        while found.items() < wanted.items() and time.monotonic() < deadline:
            threads = Path(f"/proc/{server.pid}/task").iterdir()
            slices = {(thread / "comm").read_text().strip(): scheduling(thread.name) for thread in threads}
            found = {name: slices[name] for name in wanted if slices.get(name) == wanted[name]}
    assert found == wanted, slices
    assert {slice for name, slice in slices.items() if name not in wanted} == {(usual, nice)}


def comes_to_rest(server):
    """Requires that no thread of the server wakes up for a second, once it has done what earlier
    clients left to do. Buffers of large values are given up last, five to ten seconds after their
    use, and until then a worker looks after them every second."""

    def wake_ups():
        statuses = (path.read_text() for path in Path(f"/proc/{server.pid}/task").glob("*/status"))
        return sum(int(status.split("nonvoluntary_ctxt_switches")[0].split()[-1]) for status in statuses)

    def woke_within_a_second():
        before = wake_ups()
        time.sleep(1)
        return wake_ups() - before

    counts = []
    while not counts or (counts[-1] and len(counts) < 20):
        counts.append(woke_within_a_second())
    assert counts[-1] == 0, f"wake-ups in each second: {counts}"


def test_it_idles_at_no_cost(server, ours):
    comes_to_rest(server)


def test_it_says_that_it_is_ready(ours):
    server = Server("-t", 1, "-v")
    assert server.stop() == 0
    assert f"ready on 127.0.0.1:{server.port}: 64 MiB, 1 worker, crcw, adaptive" in server.errors
    server = Server("-t", 1, "-M")
    assert server.stop() == 0
    assert "1 worker, crcw, store mode" in server.errors


def test_it_says_where_it_receives_datagrams(ours):
    udp = free_port()
    server = Server("-t", 1, "-U", udp)
    assert server.stop() == 0
    assert f"ready on 127.0.0.1:{server.port} and UDP 127.0.0.1:{udp}: " in server.errors


def test_more_requests_in_a_turn_than_there_is_room_for(ours):
    for asked_for, is_told in ((256, False), (257, True)):
        with Server("-R", asked_for) as server:
            assert server.stats("settings")["reqs_per_event"] == "256"
        told = [line for line in warnings(server) if f"-R {asked_for} is lowered to 256" in line]
        assert len(told) == is_told, server.errors


def test_several_addresses(ours):
    port, other = free_port(), free_port()
    process = subprocess.Popen([server_binary(), "serve", "-l", f"127.0.0.1,127.0.0.2:{other}", "-p", str(port)])
    try:
        deadline = time.monotonic() + PATIENCE_S
        for address in (("127.0.0.1", port), ("127.0.0.2", other)):
            while True:
                try:
                    socket.create_connection(address, timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_under_memcacheds_name(ours, tmp_path):
    link = tmp_path / "memcached"
    link.symlink_to(os.path.abspath(server_binary()))
    assert is_memcached(link)
    port = free_port()
    process = subprocess.Popen(command(str(link), "-m", 64, port=port), stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    assert f"ready on 127.0.0.1:{port}" in line + process.stderr.read()


@pytest.mark.parametrize("flag", ["-h", "--help", "-V"])
def test_help_and_version(ours, flag):
    run = subprocess.run([server_binary(), "serve", flag], capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.returncode == 0
    assert run.stdout and not run.stderr


def test_a_second_signal_ends_it_at_once(ours):
    """While a client that does not read delays the end, a second signal does not wait for it."""
    server = Server("-t", 1)
    data = bytes(1_000_000)
    with server.wire() as wire:
        wire.exchange(store(data), STORED)
        wire.send(b"get a\r\n" * 50)
        wire.expect(value(b"a", data))
        os.kill(server.pid, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                server.wire().close()
            except OSError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert server.stop() == 1
