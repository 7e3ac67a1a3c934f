"""memcached's flags, each tested by its effect on a client or on the machine."""

import os
import signal
import socket
import stat
import subprocess
import time

import binary
from harness import PATIENCE_S, Server, Wire, command, free_port, server_binary
from clauses_text import END, STORED, store, value


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


class Started:
    """A server that need not listen on a port."""

    def __init__(self, *flags, **environment):
        line = command(server_binary(), *flags)
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        # The line that announces that it is ready, after the warnings.
        while True:
            self.ready = self.process.stderr.readline()
            assert self.ready, "it ended"
            if " ready on" in self.ready:
                return

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0 or exception != (None, None, None)


def unix_wire(path):
    wire = Wire.__new__(Wire)
    wire.socket = socket.socket(socket.AF_UNIX)
    wire.socket.settimeout(PATIENCE_S)
    wire.socket.connect(str(path))
    wire.pending = b""
    return wire


def test_unix_socket(ours, tmp_path):
    path = tmp_path / "socket"
    with Started("-s", path, "-a", "750", "-t", 2):
        assert stat.S_IMODE(path.stat().st_mode) == 0o750
        for _ in range(4):
            with unix_wire(path) as wire:
                wire.exchange(store(b"1"), STORED)
                wire.exchange(b"get a\r\n", value(b"a", b"1") + END)
        with unix_wire(path) as wire:
            wire.send(b"stats settings\r\n")
            lines = iter(wire.line, b"END\r\n")
            settings = dict(line.split(None, 2)[1:] for line in lines)
            assert settings[b"domain_socket"].strip() == str(path).encode()
            assert settings[b"tcpport"].strip() == b"0"
    # An ended server left its socket; the next one replaces it.
    with Started("-s", path), unix_wire(path) as wire:
        wire.exchange(b"get a\r\n", END)


def test_settings_show_what_was_asked_for(ours):
    flags = "-b 77 -R 33 -B ascii -A -C -F -X -D / -o idle_timeout=9,no_maxconns_fast"
    expected = {
        "tcp_backlog": "77",
        "reqs_per_event": "33",
        "binding_protocol": "ascii",
        "shutdown_command": "yes",
        "cas_enabled": "no",
        "flush_enabled": "no",
        "dump_enabled": "no",
        "stat_key_prefix": "/",
        "detail_enabled": "yes",
        "idle_timeout": "9",
        "maxconns_fast": "no",
    }
    with Server(*flags.split()) as server:
        settings = server.stats("settings")
        assert {name: settings[name] for name in expected} == expected


def test_options_without_effect_are_warned_of_once(ours):
    server = Server("-o", "slab_automove=1,modern", "-f", "1.1")
    assert server.stop() == 0
    warnings = [line for line in server.errors.splitlines() if "no effect" in line]
    assert len(warnings) == 2


def test_shutdown_where_it_is_enabled(ours):
    for line in (b"shutdown\r\n", b"shutdown graceful\r\n"):
        server = Server("-A")
        with server.wire() as wire:
            wire.exchange(b"shutdown now\r\n", b"CLIENT_ERROR invalid shutdown mode\r\n")
            wire.send(line)
            wire.expect_closed()
        assert server.process.wait(PATIENCE_S) == 0
        server.stop()


def test_shutdown_where_it_is_not(ours):
    with Server() as server, server.wire() as wire:
        wire.exchange(b"shutdown\r\n", b"SERVER_ERROR: shutdown not enabled\r\n")


def test_flush_where_it_is_disabled(ours):
    with Server("-F") as server, server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
        wire.exchange(b"flush_all\r\n", b"CLIENT_ERROR flush_all not allowed\r\n")
        wire.exchange(b"flush_all x\r\n", b"CLIENT_ERROR flush_all not allowed\r\n")
        wire.exchange(b"get a\r\n", value(b"a", b"1") + END)


def test_connections_beyond_the_limit_wait_if_asked_to(ours):
    with Server("-c", 2, "-o", "no_maxconns_fast") as server:
        first, second = server.wire(), server.wire()
        first.exchange(b"get a\r\n", END)
        second.exchange(b"get a\r\n", END)
        third = server.wire()
        third.send(b"get a\r\n")
        third.socket.settimeout(0.2)
        try:
            assert third.line() == b"", "it has to wait"
            raise AssertionError("it was closed")
        except TimeoutError:
            pass
        third.socket.settimeout(PATIENCE_S)
        first.close()
        third.expect(END)
        second.close()
        third.close()


def test_idle_connections_are_closed(ours):
    with Server("-o", "idle_timeout=1") as server:
        with server.wire() as wire:
            wire.exchange(b"get a\r\n", END)
            wire.expect_closed()
        assert server.stats()["idle_kicks"] == "1"


def test_a_daemon_and_its_pid_file(ours, tmp_path):
    path, port = tmp_path / "pid", free_port()
    started = subprocess.run(command(server_binary(), "-d", "-P", path, port=port), timeout=PATIENCE_S)
    assert started.returncode == 0
    pid = int(path.read_text())
    try:
        with Wire(port) as wire:
            wire.exchange(store(b"1"), STORED)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        assert os.readlink(f"/proc/{pid}/fd/2") == "/dev/null"
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not path.exists(), "the pid file stays")


def test_a_daemon_that_cannot_serve_says_so(ours):
    with Server() as server:
        line = command(server_binary(), "-d", port=server.port)
        started = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
        assert started.returncode == 71
        assert f"cannot listen on 127.0.0.1:{server.port}" in started.stderr


def test_ports_are_written_where_the_environment_says(ours, tmp_path):
    path = tmp_path / "ports"
    with Started("-l", "127.0.0.1", "-p", "-1", "-t", 2, MEMCACHED_PORT_FILENAME=str(path)):
        lines = path.read_text().splitlines()
        name, port = lines[0].split(": ")
        assert name == "TCP INET" and len(lines) == 1
        with Wire(int(port)) as wire:
            wire.exchange(store(b"1"), STORED)
    path.unlink()
    with Started("-p", "0", MEMCACHED_PORT_FILENAME=str(path)) as server:
        assert path.read_text() == "" and " ready on no port: " in server.ready


def test_several_listeners_one_of_them_tagged(ours):
    one, other = free_port(), free_port()
    with Started("-l", f"tag[a]:127.0.0.1:{one},127.0.0.2", "-l", "127.0.0.3", "-p", other):
        for address in (("127.0.0.1", one), ("127.0.0.2", other), ("127.0.0.3", other)):
            socket.create_connection(address, timeout=PATIENCE_S).close()


def test_a_protocol_for_one_address(ours):
    text, binary_only, either = free_port(), free_port(), free_port()
    addresses = f"proto[ascii]:127.0.0.1:{text},proto[binary]:tag[b]:127.0.0.1:{binary_only},127.0.0.1:{either}"
    packet, answer = binary.request(binary.NOOP), binary.response(binary.NOOP)
    with Started("-l", addresses, "-t", 2):
        for port, speaks_text, speaks_binary in ((text, True, False), (binary_only, False, True), (either, True, True)):
            # Connections go to the worker with the fewest, which must know the protocol too.
            for _ in range(3):
                with Wire(port) as wire:
                    wire.send(packet if speaks_binary else b"mn\r\n")
                    wire.expect(answer if speaks_binary else b"MN\r\n")
                with Wire(port) as wire:
                    wire.send(b"mn\r\n" + bytes(20))
                    if speaks_text:
                        wire.expect(b"MN\r\n")
                    else:
                        wire.expect_closed()


def test_without_uniques(ours):
    with Server("-C") as server, server.wire() as wire:
        assert server.stats("settings")["cas_enabled"] == "no"
        wire.exchange(store(b"1"), STORED)
        wire.exchange(b"gets a\r\n", b"VALUE a 0 1 0\r\n1\r\n" + END)
        for unique in (b" 0", b" 1", b" 18446744073709551615"):
            wire.exchange(store(b"2", verb=b"cas", rest=unique), b"EXISTS\r\n")
        wire.exchange(b"mg a c v\r\n", b"VA 1 c0\r\n1\r\n")
        with server.wire() as other:
            other.send(binary.store(binary.SET, b"a", b"3"))
            other.expect(binary.response(binary.SET))
            other.send(binary.request(binary.GET, b"a"))
            other.expect(binary.item(binary.GET, b"3", cas=0))


def test_more_threads_than_memory_has_room_for(ours):
    server = Server("-t", 32, "-m", 64)
    settings = server.stats("settings")
    assert 1 <= int(settings["num_threads"]) < 32
    assert settings["item_size_max"] == str(1 << 20)
    assert server.stop() == 0
    assert [line for line in server.errors.splitlines() if "-t 32" in line and "WARN" in line]


def test_small_memory_is_no_refusal(ours):
    with Server("-m", 2, "-t", 4) as server, server.wire() as wire:
        wire.exchange(store(b"1"), STORED)


def test_the_licence(ours):
    run = subprocess.run([server_binary(), "serve", "-i"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.returncode == 0 and "Apache License" in run.stdout


def test_memory_for_buffers_is_taken_from_the_memory_for_items(ours):
    def started(*flags):
        with Server("-m", 1024, "-t", 2, *flags) as server:
            return int(server.stats("settings")["read_buf_mem_limit"]), int(server.stats("glimmer")["log_bytes"])

    usual, items = started()
    larger, fewer_items = started("-o", "read_buf_mem_limit=200")
    assert larger == 200 << 20 > usual
    assert fewer_items < items
    assert started("-o", "read_buf_mem_limit=0") == (usual, items)
