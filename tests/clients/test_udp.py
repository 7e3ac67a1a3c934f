"""Requests over UDP: memcached's frame of 8 bytes, one request per datagram, replies of many."""

import random
import socket
import struct
import time

import pytest
from conftest import MODES
from harness import PATIENCE_S, Server, free_port
from clauses_text import END, STORED, store, value

PAYLOAD = 1392


class Udp:
    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.connect(("127.0.0.1", port))
        self.id = 0

    def send(self, request, header=None):
        self.id = (self.id + 1) % 65536
        self.socket.send((header or struct.pack(">HHHH", self.id, 0, 1, 0)) + request)
        return self.id

    def replies(self, ids):
        """The replies to these requests, whatever order their datagrams come in."""
        parts = {id: {} for id in ids}
        totals = {}
        while len(totals) < len(parts) or any(len(parts[id]) < totals[id] for id in parts):
            datagram = self.socket.recv(65536)
            id, sequence, total, reserved = struct.unpack(">HHHH", datagram[:8])
            assert reserved == 0 and sequence < total and totals.setdefault(id, total) == total
            assert len(datagram) == 8 + PAYLOAD or sequence == total - 1
            parts[id][sequence] = datagram[8:]
        return [b"".join(parts[id][sequence] for sequence in range(totals[id])) for id in ids]

    def ask(self, request):
        return self.replies([self.send(request)])[0]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.socket.close()


@pytest.fixture(scope="module", params=MODES)
def udp_server(request):
    port = free_port()
    with Server("-U", port, *MODES[request.param]) as server:
        server.udp_port = port
        yield server


def test_every_kind_of_request(ours, udp_server):
    with Udp(udp_server.udp_port) as udp:
        assert udp.ask(b"flush_all\r\n") == b"OK\r\n"
        for n in range(20):
            key = b"key-%d" % n
            assert udp.ask(b"get " + key + b"\r\n") == END
            assert udp.ask(store(b"1", key)) == STORED
            assert udp.ask(b"incr " + key + b" 5\r\n") == b"6\r\n"
            assert udp.ask(b"get " + key + b"\r\n") == value(key, b"6") + END
            assert udp.ask(b"delete " + key + b"\r\n") == b"DELETED\r\n"
        assert udp.ask(b"nonsense\r\n") == b"ERROR\r\n"
        assert udp.ask(b"version\r\n").startswith(b"VERSION ")


def test_many_keys_and_many_datagrams(ours, udp_server):
    with Udp(udp_server.udp_port) as udp, udp_server.wire() as wire:
        wire.exchange(b"".join(store(b"%d" % n * 9, b"k%d" % n) for n in range(700)), STORED * 700)
        keys = [b"k%d" % n for n in range(700)]
        expected = b"".join(value(b"k%d" % n, b"%d" % n * 9) for n in range(700)) + END
        assert udp.ask(b"get " + b" ".join(keys) + b"\r\n") == expected
        # The last datagram may be full.
        for length in (PAYLOAD, 20_000, 1_000_000):
            data = random.randbytes(length - len(value(b"a", b"")) - len(END) - len(str(length)) + 1)
            wire.exchange(store(data), STORED)
            assert udp.ask(b"get a\r\n") == value(b"a", data) + END


def test_several_requests_at_once_are_answered_each(ours, udp_server):
    with Udp(udp_server.udp_port) as udp:
        for n in range(50):
            assert udp.ask(store(b"%d" % n, b"b%d" % n)) == STORED
        ids = [udp.send(b"get b%d\r\n" % (n % 50)) for n in range(200)]
        expected = [value(b"b%d" % (n % 50), b"%d" % (n % 50)) + END for n in range(200)]
        assert udp.replies(ids) == expected


def test_what_is_no_request_is_dropped(ours, udp_server):
    with Udp(udp_server.udp_port) as udp:
        before = int(udp_server.stats("glimmer")["datagrams_dropped"])
        for datagram in (b"", b"1234567", b"12345678", b"\0\0\0\0\0\x02\0\0get a\r\n", b"\0\0\0\0\0\0\0\0get a\r\n"):
            udp.socket.send(datagram)
        udp.send(b"get unfinished")
        udp.send(b"set a 0 0 10\r\nshort")
        udp.send(b"quit\r\n")
        assert udp.ask(b"get a-key-that-is-not-there\r\n") == END
        deadline = time.monotonic() + PATIENCE_S
        while int(udp_server.stats("glimmer")["datagrams_dropped"]) < before + 5:
            assert time.monotonic() < deadline


def test_a_reply_that_is_too_large_says_so(ours, udp_server):
    with Udp(udp_server.udp_port) as udp, udp_server.wire() as wire:
        wire.exchange(store(bytes(900_000), b"large"), STORED)
        reply = udp.ask(b"get large large large\r\n")
        assert reply == b"SERVER_ERROR reply too large for UDP\r\n"
        assert udp.ask(b"get large\r\n") == value(b"large", bytes(900_000)) + END


def test_udp_is_off_unless_asked_for(ours):
    with Server() as server, Udp(server.port) as udp:
        with pytest.raises(ConnectionRefusedError):
            udp.ask(b"get a\r\n")


def test_a_udp_port_in_use(ours):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"cannot listen on 127.0.0.1:{port} for UDP"):
            Server("-U", port)
