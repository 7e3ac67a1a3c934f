"""glimmer copy: a server is filled from another one, which may be memcached."""

import base64
import re
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import quote_from_bytes

import binary
import certificates
import pytest
from conftest import PEER, start
from harness import PATIENCE_S, Server, free_port, server_binary

MONTHS = 90 * 24 * 3600
MIB = 1 << 20


@pytest.fixture
def peer_of_copy(ours):
    with start(PEER) as server:
        yield server


def begin(source, target, *flags):
    """Starts a copy; the servers may be given as text."""
    places = [place if isinstance(place, str) else place.url for place in (source, target)]
    return subprocess.Popen(
        [server_binary(), "copy", *places, *map(str, flags)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process, code=0):
    """What a copy has printed."""
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, (process.returncode, output, errors)
    return output.splitlines(), errors


def copy(source, target, *flags, code=0):
    return end(begin(source, target, *flags), code)


class Scripted:
    """A server that answers each line with what a function has for it, and keeps the lines."""

    def __init__(self, answer):
        self.heard = []
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                line = line.removesuffix(b"\r\n")
                self.heard.append(line)
                connection.sendall(self.answer(line))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


def listing(keys):
    """What memcached answers to `lru_crawler metadump all`."""
    shown = [quote_from_bytes(key, safe="") for key in keys]
    lines = [f"key={key} exp=-1 la=0 cas=1 fetch=no cls=1 size=60\n" for key in shown]
    return "".join(lines).encode() + b"END\r\n"


def store(wire, key, value, flags=0, ttl=0, coded=False):
    word = b" b" if coded else b""
    # More than 30 days are a time of the calendar.
    exptime = ttl if ttl <= 30 * 24 * 3600 else int(time.time()) + ttl
    lifetime = b" T%d" % exptime if ttl else b""
    wire.send(b"ms %s %d F%d%s%s\r\n%s\r\n" % (key, len(value), flags, lifetime, word, value))
    wire.expect(b"HD\r\n")


def held(wire, key, coded=False):
    """Value, flags and remaining lifetime of an item."""
    wire.send(b"mg %s v f t%s\r\n" % (key, b" b" if coded else b""))
    line = wire.line()
    if line == b"EN\r\n":
        return None
    size, flags, ttl = re.fullmatch(rb"VA (\d+) f(\d+) t(-?\d+)(?: b)?\r\n", line).groups()
    value = wire.receive(int(size))
    wire.expect(b"\r\n")
    return value, int(flags), int(ttl)


ITEMS = [
    (b"plain", b"value", 0, 0, False),
    (b"empty", b"", 7, 0, False),
    (b"flags", b"x\r\ny\0", 0xFFFF_FFFF, 0, False),
    (b"soon", b"s", 1, 500, False),
    (b"late", b"l", 2, MONTHS, False),
    (b"per%cent:/?", b"p", 3, 0, False),
    (b"aGVsbG8gd29ybGQh", b"coded", 4, 600, True),
    (b"/////w==", b"bytes", 5, 0, True),
    (b"large", b"L" * (MIB - 1000), 6, 0, False),
    (b"k" * 250, b"longest key", 0, 0, False),
]


def check_items(server):
    with server.wire() as wire:
        for key, value, flags, ttl, coded in ITEMS:
            got_value, got_flags, got_ttl = held(wire, key, coded)
            assert (got_value, got_flags) == (value, flags), key
            # A lifetime is copied to a second.
            assert got_ttl == -1 if ttl == 0 else ttl - 60 <= got_ttl <= ttl + 1, (key, got_ttl)


def fill(server):
    with server.wire() as wire:
        for key, value, flags, ttl, coded in ITEMS:
            store(wire, key, value, flags, ttl, coded)
        for number in range(500):
            store(wire, b"n%d" % number, b"%d" % number)


def check_copy(source, target):
    fill(source)
    lines, _ = copy(source, target, "--rate", 0, "--byte-rate", 0)
    assert lines == [f"copied: {len(ITEMS) + 500} items, 1.0 MiB"]
    check_items(target)
    with target.wire() as wire:
        for number in range(500):
            assert held(wire, b"n%d" % number) == (b"%d" % number, 0, -1)
    lines, _ = copy(source, target, "--rate", 0, "--skip-present")
    assert lines == ["copied: 0 items, 0 B", f"not copied: {len(ITEMS) + 500}: TO has an item with this key"]


def test_between_servers(ours):
    with Server("-t", 2) as source, Server("-t", 1, "--table", "memc3") as target:
        check_copy(source, target)


def test_from_memcached(peer_of_copy):
    with Server("-t", 2) as target:
        check_copy(peer_of_copy, target)


def test_to_memcached(peer_of_copy):
    with Server("-t", 2) as source:
        check_copy(source, peer_of_copy)


# Keys and values that are commands, or parts of them.
COMMANDS = {
    b"victim T2": b"flush_all",
    b"made N0": b"delete own",
    b"own b": b"flush_all",
    b"x\r\nEN": b"flush_all\r\nflush_all",
    b"y\r\nflush_all": b"quit",
    b"mg hello\tworld\x7f": b"END",
}


def check_commands(target):
    with target.wire() as wire:
        assert held(wire, b"own") == (b"abc", 0, -1)
        for key, value in COMMANDS.items():
            assert held(wire, base64.b64encode(key), coded=True) == (value, 5, -1), key
    assert int(target.stats()["cmd_flush"]) == 0


@pytest.mark.parametrize("flags", [(), ("--skip-present",)])
def test_keys_are_no_commands(ours, flags):
    """memcached 1.6.19 and later lists keys of binary clients as they are in `mgdump`."""
    raw = b"".join(b"mg %s\r\n" % key for key in COMMANDS) + b"EN\r\n"
    items = {base64.b64encode(key): value for key, value in COMMANDS.items()}

    def answer(line):
        if line.startswith(b"lru_crawler "):
            return raw if b"mgdump" in line else listing(COMMANDS)
        words = line.split(b" ")
        if words[0] == b"mg" and words[-1] == b"b" and words[1] in items:
            value = items[words[1]]
            return b"VA %d f5 t-1\r\n%s\r\n" % (len(value), value)
        return b"CLIENT_ERROR invalid flag\r\n"

    with Scripted(answer) as source, Server("-t", 1) as target, target.wire() as wire:
        store(wire, b"own", b"abc")
        lines, _ = copy(source, target, *flags)
        assert lines == [f"copied: {len(COMMANDS)} items, {sum(map(len, COMMANDS.values()))} B"]
        check_commands(target)
        told = [line for line in source.heard if re.fullmatch(rb"mg [A-Za-z0-9+/]+=* v f t b", line)]
        assert len(told) == len(COMMANDS) and len(source.heard) == len(told) + 2, source.heard


def test_keys_of_binary_clients(peer_of_copy):
    with Server("-t", 1) as target, target.wire() as wire, peer_of_copy.wire() as peer:
        store(wire, b"own", b"abc")
        for key, value in COMMANDS.items():
            peer.send(binary.store(binary.SET, key, value, flags=5))
            assert peer.receive(24)[6:8] == b"\0\0"
        for _ in range(2):
            copy(peer_of_copy, target, "--skip-present")
            check_commands(target)
        assert int(peer_of_copy.stats()["curr_items"]) == len(COMMANDS)


@pytest.mark.parametrize("target_is_old", [True, False])
def test_a_server_without_meta_commands(ours, target_is_old):
    """It would take the values for commands."""

    def answer(line):
        if line.startswith(b"version"):
            return b"VERSION 1.4.31\r\n"
        return listing([b"a"]) if line == b"lru_crawler metadump all" else b"ERROR\r\n"

    with Scripted(answer) as old, Server("-t", 1) as server, server.wire() as wire:
        store(wire, b"a", b"flush_all")
        _, errors = copy(*((server, old) if target_is_old else (old, server)), code=1)
        assert "it has no meta commands" in errors and "--skip-present" not in errors, errors
        assert ("TO (" if target_is_old else "FROM (") in errors, errors
        assert b"flush_all" not in old.heard


def test_a_target_of_the_first_meta_commands(ours):
    """From 1.6.0 to 1.6.9, memcached takes the length of a value as a flag."""
    answers = {b"ms": b"CLIENT_ERROR invalid flag\r\n", b"mn": b"MN\r\n", b"version": b"VERSION 1.6.9\r\n"}

    with Scripted(lambda line: answers.get(line.split(b" ")[0], b"ERROR\r\n")) as old:
        with Server("-t", 1) as source, source.wire() as wire:
            store(wire, b"a", b"flush_all")
            _, errors = copy(source, old, code=1)
            assert "memcached has these since 1.6.10" in errors, errors
            assert b"flush_all" not in old.heard


def source_with(first):
    """A server with three items, the first of which it sends as told."""

    def answer(line):
        if line.startswith(b"lru_crawler "):
            return listing([b"a", b"b", b"c"])
        if line.startswith(b"mg a "):
            return first
        if line.startswith(b"mg k m"):
            return b"CLIENT_ERROR invalid flag\r\n"
        return b"VA 1 f0 t-1\r\n%s\r\n" % line[3:4]

    return Scripted(answer)


def test_large_flags(ours):
    with source_with(b"VA 16 f4294967296 t-1\r\nVA 3 f0 t-1\r\nEVI\r\n") as source:
        with Server("-t", 1) as target, target.wire() as wire:
            lines, errors = copy(source, target, code=1)
            refused = "not copied: 1: refused, first with CLIENT_ERROR bad command line format"
            assert lines == ["copied: 2 items, 2 B", refused] and "1 item is not in" in errors
            assert held(wire, b"a") is None
            assert [held(wire, key) for key in (b"b", b"c")] == [(b"b", 0, -1), (b"c", 0, -1)]


@pytest.mark.parametrize("answer", [b"VA 3 f-1 t-1", b"VA x", b"HD"])
def test_an_answer_that_cannot_be_read(ours, answer):
    """What follows it may be a value."""
    with source_with(answer + b"\r\nVA 1 f0 t-1\r\nE\r\n") as source, Server("-t", 1) as target:
        _, errors = copy(source, target, code=1)
        assert f"not what a memcached answers: {answer.decode()}" in errors, errors
        assert int(target.stats()["curr_items"]) == 0


def test_a_refusal_is_counted(ours):
    with source_with(b"SERVER_ERROR out of memory\r\n") as source, Server("-t", 1) as target:
        lines, _ = copy(source, target, code=1)
        assert lines == ["copied: 2 items, 2 B", "not copied: 1: refused, first with SERVER_ERROR out of memory"]


def test_stale_items_of_the_target(ours):
    """A client of TO gets the right to renew them, and not the copy."""
    with Server("-t", 1) as source, Server("-t", 1) as target, source.wire() as old, target.wire() as new:
        for wire in (old, new):
            store(wire, b"a", b"a")
        new.send(b"md a I T100\r\n")
        new.expect(b"HD\r\n")
        lines, _ = copy(source, target, "--skip-present")
        assert lines == ["copied: 0 items, 0 B", "not copied: 1: TO has an item with this key"]
        new.send(b"mg a\r\n")
        assert set(new.line().split()) == {b"HD", b"W", b"X"}


def test_a_target_without_statistics(ours):
    with Server("-t", 1) as source, source.wire() as wire:
        store(wire, b"a", b"a")
        with Server("-t", 1, "--disable-commands", "stats") as target:
            lines, _ = copy(source, target)
            assert lines == ["copied: 1 item, 1 B"]


def test_what_changes_meanwhile(ours):
    """Clients use both servers while items are copied. What they have stored in the new one stays, and no item gets an older value than
    the old one had when the copy began."""
    with Server("-t", 2) as source, Server("-t", 2) as target:
        with source.wire() as old, target.wire() as new:
            for number in range(400):
                store(old, b"n%d" % number, b"0")
            process = begin(source, target, "--rate", 1000)
            deadline = time.monotonic() + PATIENCE_S
            while int(target.stats()["cmd_set"]) == 0:
                assert time.monotonic() < deadline
            for number in range(400):
                store(old, b"n%d" % number, b"1")
            for number in range(0, 400, 2):
                store(new, b"n%d" % number, b"2")
            end(process)
            for number in range(400):
                value = held(new, b"n%d" % number)[0]
                assert value == b"2" if number % 2 == 0 else value in (b"0", b"1"), number


def test_items_that_go(ours):
    """Some are gone when their turn comes, or declared out of date."""
    with Server("-t", 1) as source, Server("-t", 1) as target, source.wire() as wire:
        store(wire, b"a", b"a")
        store(wire, b"stale", b"s")
        wire.send(b"md stale I T100\r\n")
        wire.expect(b"HD\r\n")
        lines, _ = copy(source, target)
        assert lines == ["copied: 1 item, 1 B", "not copied: 1: declared out of date by a client"]
    with Server("-t", 1) as source, Server("-t", 1) as target, source.wire() as wire:
        for number in range(30):
            store(wire, b"n%d" % number, b"x")
        process = begin(source, target, "--rate", 20)
        deadline = time.monotonic() + PATIENCE_S
        while int(target.stats()["cmd_set"]) == 0:
            assert time.monotonic() < deadline
        wire.send(b"flush_all\r\n")
        wire.expect(b"OK\r\n")
        lines, _ = end(process)
        copied, gone = (int(re.search(r": (\d+)", line).group(1)) for line in lines)
        assert copied + gone == 30 and copied > 0 and gone > 0, lines
        assert lines[1].endswith(": deleted or expired meanwhile")


def test_a_target_that_is_full(ours):
    with Server("-t", 1, "-m", 64) as source, source.wire() as wire:
        for number in range(40):
            store(wire, b"n%d" % number, b"x" * (512 << 10))
        with Server("-t", 1, "-m", 10, "-M") as target:
            lines, errors = copy(source, target, "--byte-rate", 0, code=1)
            copied, lacking = (int(re.search(r": (\d+)", line).group(1)) for line in lines)
            assert copied + lacking == 40 and copied > 0 and lacking > 0, lines
            assert lines[1].endswith(": no memory left in TO") and f"{lacking} items are not in" in errors
        with Server("-t", 1, "-m", 10) as target:
            lines, _ = copy(source, target, "--byte-rate", 0)
            assert lines[0].startswith("copied: 40 items") and re.match(r"TO has evicted \d+ items", lines[1]), lines


def test_a_target_with_a_smaller_limit(ours):
    with Server("-t", 1, "-I", "2m", "-m", 64) as source, Server("-t", 1) as target, source.wire() as wire:
        store(wire, b"small", b"s")
        store(wire, b"large", b"x" * (MIB + MIB // 2))
        lines, errors = copy(source, target, code=1)
        assert lines == ["copied: 1 item, 1 B", "not copied: 1: too large for TO: its -I is smaller"]
        assert "1 item is not in" in errors


@pytest.mark.parametrize("victim", ["source", "target"])
def test_a_server_that_dies(ours, victim):
    source, target = Server("-t", 1), Server("-t", 1)
    with source.wire() as wire:
        for number in range(200):
            store(wire, b"n%d" % number, b"%d" % number)
    process = begin(source, target, "--rate", 100)
    deadline = time.monotonic() + PATIENCE_S
    while int(target.stats()["cmd_set"]) < 10:
        assert time.monotonic() < deadline
    {"source": source, "target": target}[victim].stop(signal.SIGKILL)
    lines, errors = end(process, code=1)
    assert re.match(r"copied: \d+ items", lines[0])
    assert "give the command again with --skip-present" in errors
    assert ("FROM (" if victim == "source" else "TO (") in errors, errors
    if victim == "source":
        assert int(lines[0].split()[1]) <= int(target.stats()["curr_items"])
    for server in (source, target):
        server.stop()


def test_a_login_for_one_of_them(ours, tmp_path):
    users = tmp_path / "users"
    users.write_text("ann:secret\n")
    password = tmp_path / "password"
    password.write_text("secret\n")
    with Server("-t", 1) as source, Server("-t", 1, "-Y", users) as target, source.wire() as wire:
        store(wire, b"a", b"a")
        _, errors = copy(source, target, code=1)
        assert "--auth-user" in errors
        lines, _ = copy(source, target, "--login-to", "to", "--auth-user", "ann", "--password-file", password)
        assert lines == ["copied: 1 item, 1 B"]


@pytest.mark.skipif(not certificates.available(), reason="needs openssl")
def test_over_tls(ours, tmp_path):
    authority = certificates.Authority(tmp_path)
    with Server("-t", 1) as source:
        with Server("-t", 1, *certificates.flags(authority.issue("localhost")), context=authority.context()) as target:
            fill(source)
            place = f"localhost:{target.port}"
            for pair in ((source, place), (place, source)):
                _, errors = copy(*pair, code=1)
                assert "give --tls" in errors
            lines, _ = copy(source, place, "--rate", 0, "--login-to", "to", "--tls", "--tls-ca", authority.pem)
            assert lines == [f"copied: {len(ITEMS) + 500} items, 1.0 MiB"]
            check_items(target)


def test_what_is_wrong(ours):
    with Server("-t", 1, "-X") as mute, Server("-t", 1) as server:
        for source, target, words in [
            (server, server, "FROM and TO are the same server"),
            (mute, server, "it does not list its keys"),
            (f"127.0.0.1:{free_port()}", server, "cannot connect to"),
            (server, f"127.0.0.1:{free_port()}", "cannot connect to"),
            (server, "udp:127.0.0.1", "TCP"),
        ]:
            _, errors = copy(source, target, code=1)
            assert words in errors and errors.count("\n") == 1, errors


def test_another_listing_is_awaited(ours):
    """The server lists for one client at a time, and the other one may be slow."""
    with Server("-t", 1) as source, Server("-t", 1) as target, source.wire() as wire, source.wire() as lister:
        for number in range(20000):
            wire.send(b"ms %s%05d 1 q\r\nx\r\n" % (b"k" * 200, number))
        wire.send(b"mn\r\n")
        wire.expect(b"MN\r\n")
        lister.send(b"lru_crawler metadump all\r\n")
        lister.expect(b"OK\r\n")
        process = begin(source, target, "--rate", 0)
        reader = threading.Timer(0.3, lambda: [None for _ in iter(lister.line, b"END\r\n")])
        reader.start()
        lines, _ = end(process)
        reader.join()
        assert lines[0].startswith("copied: 20000 items"), lines
