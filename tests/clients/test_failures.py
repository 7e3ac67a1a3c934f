"""Failures that no client is told of are counted and logged, and an unread log delays no client."""

import os
import re
import resource
import signal
import socket
import struct
import time

import pytest
from clauses_text import END, STORED, store, value
from harness import PATIENCE_S, Server, free_port
from test_udp import Udp

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z +WARN ")


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def figure(server, name, *argument):
    return int(server.stats(*argument)[name])


def logged(server, words):
    """The log lines of a stopped server that contain these words. Each begins with the time of day."""
    lines = [line for line in server.errors.splitlines() if words in line]
    assert all(LINE.match(line) for line in lines), lines
    return lines


def test_connections_that_cannot_be_accepted(ours):
    with Server("-t", 1) as server:
        with server.wire() as wire:
            wire.exchange(store(b"1"), STORED)
            limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            used = len(os.listdir(f"/proc/{server.pid}/fd"))
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
            with server.wire() as waiting:
                waiting.send(b"get a\r\n")

                def has_failed():
                    wire.send(b"stats glimmer\r\n")
                    figures = dict(line.split()[1:] for line in iter(wire.line, END))
                    return int(figures[b"accept_failures"]) > 0

                wait_until(has_failed, "the failure is not counted")
                resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
                waiting.expect(value(b"a", b"1") + END)
    assert any("Too many open files" in line for line in logged(server, "accept a connection failed"))


@pytest.mark.parametrize("flag", ["-U", "--native-port"])
def test_datagrams_that_the_kernel_drops(ours, flag):
    port = free_port()
    with Server("-t", 1, flag, port) as server, Udp(port) as udp:
        server.pause()
        # More than any receive buffer holds. The server drops all of it.
        for _ in range(20_000):
            udp.socket.send(bytes(1400))
        server.go_on()

        def is_counted():
            # The first datagram after a loss reports it.
            udp.socket.send(bytes(8))
            return figure(server, "datagrams_overflowed", "glimmer") > 0

        wait_until(is_counted, "the loss is not counted")
    assert logged(server, "the kernel or the NIC dropped")


def test_datagrams_that_cannot_be_sent(ours):
    """A request from port 0, to which nothing can be sent."""
    port = free_port()
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("raw sockets need root")
    with raw, Server("-t", 1, "-U", port) as server, Udp(port) as udp:
        payload = struct.pack(">HHHH", 1, 0, 1, 0) + b"mn\r\n"
        raw.sendto(struct.pack(">HHHH", 0, port, 8 + len(payload), 0) + payload, ("127.0.0.1", 0))
        wait_until(lambda: figure(server, "datagrams_unsent", "glimmer") == 1, "the loss is not counted")
        assert udp.ask(b"mn\r\n") == b"MN\r\n"
    assert logged(server, "could not be sent")


def test_a_blocked_log_holds_nobody_up(ours):
    """No process reads stderr here, and the pipe is full. A client that causes lines is served anyway, and so are others."""
    server = Server("-t", 1)
    pipe = os.open(f"/proc/{server.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(pipe, b"\n" * 4096)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(pipe, b"\n")
    os.close(pipe)
    with server.wire() as wire, server.wire() as other:
        for _ in range(50):
            wire.send(b"verbosity 9\r\n" + b"stats no-such-thing\r\n" * 500)
            wire.expect(b"OK\r\n" + b"ERROR\r\n" * 500)
            other.exchange(store(b"1"), STORED)
    os.kill(server.pid, signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) == 0
    server.stop()


def test_log_lines_have_the_time_of_day(ours):
    server = Server("-t", 1, "-f", "1.1")
    assert server.stop() == 0
    (line,) = logged(server, "-f has no effect")
    written = time.strptime(line[:19], "%Y-%m-%dT%H:%M:%S")
    assert written.tm_year >= 2024
