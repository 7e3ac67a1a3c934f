"""Requests over UDP: memcached's frame of 8 bytes, one request per datagram, replies of many."""

import random
import socket
import struct
import time

import binary
import pytest
from conftest import MODES
from harness import PATIENCE_S, Server, Wire, free_port, server_binary
from clauses_text import END, STORED, store, value
from test_network import Running
from test_watch import Watcher

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
        """The replies to these requests, in whatever order their datagrams arrive."""
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


SERVERS = MODES | {"t4-udp-plain": (*MODES["t4-crcw"], "--packet-transport", "udp-plain")}


@pytest.fixture(scope="module", params=SERVERS)
def udp_server(request):
    with served_over_udp(SERVERS[request.param]) as server:
        yield server


def served_over_udp(flags):
    """A server with UDP. If a port is free for TCP but in use for UDP, another one is chosen."""
    for attempts_left in (4, 3, 2, 1, 0):
        port = free_port()
        try:
            server = Server("-U", port, *flags)
        except RuntimeError as refusal:
            if attempts_left == 0 or "in use" not in str(refusal):
                raise
        else:
            server.udp_port = port
            return server


def test_every_kind_of_request(ours, udp_server):
    with Udp(udp_server.udp_port) as udp:
        for n in range(20):
            key = b"key-%d" % n
            assert udp.ask(b"get " + key + b"\r\n") == END
            assert udp.ask(store(b"1", key)) == STORED
            assert udp.ask(b"incr " + key + b" 5\r\n") == b"6\r\n"
            assert udp.ask(b"get " + key + b"\r\n") == value(key, b"6") + END
            assert udp.ask(b"delete " + key + b"\r\n") == b"DELETED\r\n"
        assert udp.ask(b"nonsense\r\n") == b"ERROR\r\n"
        assert udp.ask(b"version\r\n").startswith(b"VERSION ")


def test_commands_that_need_a_connection(ours, udp_server):
    """A forged datagram changes no setting and asks for nothing expensive."""
    commands = [b"flush_all", b"dispatch keyhash", b"lru_crawler disable", b"verbosity 2", b"stats detail on"]
    commands += [b"stats reset", b"stats memory", b"stats settings", b"watch", b"lru_crawler metadump all"]
    with Udp(udp_server.udp_port) as udp:
        for command in commands:
            assert udp.ask(command + b"\r\n") == b"CLIENT_ERROR not available over UDP\r\n"
        assert udp.ask(b"stats\r\n").startswith(b"STAT pid ")
    settings = udp_server.stats("settings")
    assert (settings["lru_crawler"], settings["verbosity"], settings["detail_enabled"]) == ("yes", "0", "no")


def test_watchers_are_shown_requests(ours, udp_server):
    """Of all workers, also if another worker executes the request than the one that received it."""
    with Udp(udp_server.udp_port) as udp, Watcher(udp_server, b"mutations") as watcher:
        for n in range(16):
            assert udp.ask(store(b"1", b"watched-%d" % n)) == STORED
            watcher.expect(rb"item_store key=watched-%d status=stored cmd=set ttl=0 clsid=1 cfd=0 size=1" % n)


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


REPLIES = [
    b"ERROR\r\n",
    b"CLIENT_ERROR bad data chunk\r\n",
    b"SERVER_ERROR out of memory\r\n",
    b"END\r\n",
    b"VALUE a 0 1\r\nx\r\nEND\r\n",
    b"STORED\r\n",
    b"OK\r\n",
    b"7\r\n",
    b"VERSION 1.6.45\r\n",
    b"STAT pid 1\r\nEND\r\n",
    b"HD\r\n",
    b"EN\r\n",
    b"VA 1 t0\r\nx\r\n",
    b"MN\r\n",
    b"\r\n",
    binary.response(binary.NOOP),
    binary.refusal(binary.GET, binary.UNKNOWN),
]


def test_replies_are_not_answered(ours, udp_server):
    """Otherwise one datagram with a forged sender would make two servers answer each other for ever."""
    with Udp(udp_server.udp_port) as udp:
        for reply in REPLIES:
            udp.send(reply)
            # The next datagram is the answer to this request, and not to the reply.
            assert udp.ask(b"mn\r\n") == b"MN\r\n"


@pytest.mark.parametrize("protocol", ["ascii", "binary", "auto"])
def test_two_servers_do_not_answer_each_other(ours, protocol):
    """Each receives a request and a reply with the other's address as the sender."""
    ports = [free_port(), free_port()]
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("forged senders need root")
    flags = [("-t", 1, "-B", protocol, "-U", port) for port in ports]
    with raw, Server(*flags[0]) as one, Server(*flags[1]) as other:
        servers = (one, other)
        requests = [b"nonsense\r\n", b"mn\r\n", binary.request(0x70), binary.request(binary.NOOP), *REPLIES]
        for sender, receiver in (ports, reversed(ports)):
            for request in requests:
                payload = struct.pack(">HHHH", 1, 0, 1, 0) + request
                datagram = struct.pack(">HHHH", sender, receiver, 8 + len(payload), 0) + payload
                raw.sendto(datagram, ("127.0.0.1", 0))

        def received(server):
            with Wire(server.port) as wire:
                if protocol == "binary":
                    wire.send(binary.request(binary.STAT, b"glimmer"))
                    figures = {}
                    while True:
                        head = wire.receive(24)
                        body = wire.receive(int.from_bytes(head[8:12], "big"))
                        key_bytes = int.from_bytes(head[2:4], "big")
                        if key_bytes == 0:
                            return int(figures[b"datagrams_received"])
                        figures[body[:key_bytes]] = body[key_bytes:]
            return int(server.stats("glimmer")["datagrams_received"])

        # Every datagram is answered at most once, and answers are not answered.
        deadline = time.monotonic() + PATIENCE_S
        counts = None
        while counts != (counts := [received(server) for server in servers]) or min(counts) < len(requests):
            assert time.monotonic() < deadline, f"they go on: {counts}"
            time.sleep(0.2)
        assert max(counts) <= 2 * len(requests), counts


def test_an_open_udp_port_is_warned_of(ours):
    for address, is_open in (("127.0.0.1", False), ("0.0.0.0", True)):
        port = free_port()
        with Running(server_binary(), "-l", address, "-p", port, "-U", port) as server:
            server.wait_for(("127.0.0.1", port))
            assert ("make this server flood a third party" in server.end()) == is_open


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
