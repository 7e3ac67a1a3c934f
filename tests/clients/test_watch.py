"""Reports of events to clients: watch and stats detail."""

import re
import time

import pytest
from conftest import MODES
from harness import PATIENCE_S, Server
from clauses_text import END, STORED, store, value

STAMP = rb"ts=\d+\.\d+ gid=\d+ type="


class Watcher:
    def __init__(self, server, *interests):
        self.wire = server.wire()
        self.wire.send(b" ".join((b"watch", *interests)) + b"\r\n")
        self.wire.expect(b"OK\r\n")

    def expect(self, pattern, about=b""):
        line = self.wire.line()
        # Events of other connections, such as the one that waited for the server's start, are ignored.
        while line and about not in line:
            line = self.wire.line()
        assert re.fullmatch(STAMP + pattern + b"\n", line), (pattern, line)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.wire.close()


@pytest.mark.parametrize("mode", MODES)
def test_fetchers_and_mutations(ours, mode):
    """Requests are reported, whichever worker executes them, with the descriptor of their client."""
    with Server(*MODES[mode]) as server, server.wire() as wire, Watcher(server, b"fetchers", b"mutations") as watcher:
        get = rb"item_get key=a status=%s clsid=\d cfd=\d+ size=%d"
        stored = rb"item_store key=a status=%s cmd=%s ttl=%s clsid=\d cfd=\d+ size=%d"
        wire.send(b"set a 0 100 4 noreply\r\nabcd\r\n")
        watcher.expect(get % (b"not_found", 0))
        watcher.expect(stored % (b"stored", b"set", b"100", 4))
        wire.send(b"get a\r\n")
        wire.expect(value(b"a", b"abcd") + END)
        watcher.expect(get % (b"found", 4))
        for request, reply, line in [
            (store(b"x", verb=b"add"), b"NOT_STORED\r\n", (b"not_stored", b"add", b"0", 1)),
            (store(b"x", verb=b"cas", rest=b" 99999"), b"EXISTS\r\n", (b"exists", b"cas", b"0", 1)),
            (store(b"xy", verb=b"append"), STORED, (b"stored", b"append", rb"(100|\d\d)", 6)),
        ]:
            wire.send(request)
            wire.expect(reply)
            watcher.expect(get % (b"found", 4))
            watcher.expect(stored % line)
        wire.send(b"delete a\r\n")
        wire.expect(b"DELETED\r\n")
        watcher.expect(get % (b"found", 6))


@pytest.mark.parametrize("mode", MODES)
def test_mutations_name_their_client(ours, mode):
    """A mutation is reported once, with its client's descriptor, also if another worker executes it."""
    with Server(*MODES[mode]) as server, Watcher(server, b"mutations", b"connevents") as watcher, server.wire() as wire:
        port = wire.socket.getsockname()[1]
        line = watcher.wire.line()
        while b" rport=%d " % port not in line:
            line = watcher.wire.line()
        client = line.rsplit(b" cfd=")[1].strip()
        keys = [b"key-%d" % n for n in range(32)]
        wire.send(b"".join(store(b"1", key) for key in keys))
        wire.expect(STORED * len(keys))
        seen = []
        while len(seen) < len(keys):
            line = watcher.wire.line()
            if b" type=item_store " in line:
                seen.append(line.partition(b" key=")[2])
        assert sorted(seen) == sorted(b"%s status=stored cmd=set ttl=0 clsid=1 cfd=%s size=1\n" % (key, client) for key in keys)


def test_a_refused_append_and_an_expired_store(ours):
    with Server("-t", 1) as server, server.wire() as wire, Watcher(server, b"mutations") as watcher:
        for request, reply, line in [
            (store(b"ab"), STORED, rb"stored cmd=set ttl=0 .* size=2"),
            (b"ms a 1 MA C99999\r\nx\r\n", b"EX\r\n", rb"exists cmd=append ttl=0 .* size=1"),
            (b"set a 0 -1 3\r\nabc\r\n", STORED, rb"stored cmd=set ttl=0 .* size=3"),
        ]:
            wire.exchange(request, reply)
            watcher.expect(rb"item_store key=a status=" + line)


def test_counts_and_what_is_too_large(ours):
    with Server("-t", 1) as server, server.wire() as wire, Watcher(server, b"fetchers", b"mutations") as watcher:
        wire.send(b"incr n 1\r\nma n N0 J12\r\nincr n 1\r\n")
        wire.expect(b"NOT_FOUND\r\nHD\r\n13\r\n")
        watcher.expect(rb"item_get key=n status=not_found .* size=0")
        watcher.expect(rb"item_get key=n status=not_found .* size=0")
        watcher.expect(rb"item_store key=n status=stored cmd=add ttl=0 .* size=2")
        watcher.expect(rb"item_get key=n status=found .* size=2")
        wire.send(b"set big 0 0 3000000\r\n" + bytes(3000000) + b"\r\n")
        wire.expect(b"SERVER_ERROR object too large for cache\r\n")
        watcher.expect(rb"item_get key=big status=not_found .*")
        watcher.expect(rb"item_store key=big status=too_large cmd=set ttl=0 .* size=0")


def test_events_are_numbered_without_gaps(ours):
    """Unwatched events have no number: a gap would look like lost lines."""
    with Server("-t", 1) as server, server.wire() as wire, Watcher(server, b"mutations") as watcher:
        for number in range(1, 4):
            wire.exchange(store(b"1"), STORED)
            assert re.match(rb"ts=\S+ gid=%d " % number, watcher.wire.line())


def test_requests_without_uniques(ours):
    """The result of a store is reported even without CAS uniques."""
    with Server("-t", 1, "-C") as server, server.wire() as wire, Watcher(server, b"mutations") as watcher:
        for request, line in [
            (store(b"ab"), rb"stored cmd=set .* size=2"),
            (store(b"cd"), rb"stored cmd=set .* size=2"),
            (store(b"ef", verb=b"add"), rb"not_stored cmd=add .* size=2"),
            (store(b"ef", verb=b"cas", rest=b" 1"), rb"exists cmd=cas .* size=2"),
        ]:
            wire.send(request)
            wire.line()
            watcher.expect(rb"item_store key=a status=" + line)


def test_deletions(ours):
    with Server("-t", 2) as server, server.wire() as wire, Watcher(server, b"deletions") as watcher:
        for request, reply in [
            (b"delete a\r\n", b"NOT_FOUND\r\n"),
            (store(b"1234") + b"delete a\r\n", STORED + b"DELETED\r\n"),
            (store(b"12") + b"delete a noreply\r\n", STORED),
        ]:
            wire.exchange(request, reply)
        watcher.expect(rb"deleted key=a cmd=delete clsid=1 size=4")
        watcher.expect(rb"deleted key=a cmd=delete clsid=1 size=2")


def test_keys_are_escaped(ours):
    with Server() as server, server.wire() as wire, Watcher(server, b"mutations") as watcher:
        wire.exchange(store(b"1", b"#" * 250), STORED)
        watcher.expect(rb"item_store key=(%23){250} status=stored .*")


def test_connections(ours):
    with Server("-t", 2) as server, Watcher(server, b"connevents") as watcher:
        for request, reason in ((b"quit\r\n", b"normal"), (b"GET / HTTP/1.1\r\n", b"error"), (b"", b"normal")):
            with server.wire() as wire:
                port = wire.socket.getsockname()[1]
                about = b" rport=%d " % port
                watcher.expect(rb"conn_new rip=127.0.0.1 rport=%d transport=tcp cfd=\d+" % port, about)
                wire.send(request)
                if request:
                    wire.expect_closed()
            watcher.expect(rb"conn_close rip=127.0.0.1 rport=%d transport=tcp reason=%s cfd=\d+" % (port, reason), about)


def test_a_slow_watcher_loses_lines_and_slows_nobody(ours):
    with Server("-t", 2) as server, server.wire() as wire, Watcher(server, b"fetchers") as watcher:
        keys = b" ".join(b"%0240d" % n for n in range(100))
        for _ in range(400):
            wire.send(b"get " + keys + b"\r\n")
            wire.expect(END)
        assert int(server.stats()["log_watcher_skipped"]) > 0
        # After its buffers are empty, the next line says how much was lost.
        seen = 0
        while True:
            line = watcher.wire.line()
            if line.startswith(b"skipped="):
                break
            seen += 1
            if seen % 100 == 0:
                wire.exchange(b"get a\r\n", END)
        # Two notes in a row are possible: the other worker may count what it could not show after the first.
        skipped = 0
        while line.startswith(b"skipped="):
            skipped += int(line.removeprefix(b"skipped="))
            wire.exchange(b"get a\r\n", END)
            line = watcher.wire.line()
        assert 0 < skipped < 40_000
        assert re.fullmatch(STAMP + rb"item_get .*\n", line), line


def test_evictions(ours):
    with Server("-m", 8, "-t", 1) as server, server.wire() as wire, Watcher(server, b"evictions") as watcher:
        for n in range(2000):
            wire.send(b"set k%d 0 0 10000 noreply\r\n%s\r\n" % (n, bytes(10000)))
        wire.exchange(b"get none\r\n", END)
        assert int(server.stats()["evictions"]) > 0
        watcher.expect(rb"eviction key=k\d+ fetch=no ttl=-1 la=-1 clsid=1 size=10000")


def test_watchers_are_counted_and_limited(ours):
    with Server("-t", 2) as server:
        watchers = [Watcher(server) for _ in range(20)]
        assert server.stats()["log_watchers"] == "20"
        with server.wire() as wire:
            wire.send(b"watch\r\n")
            wire.expect(b"WATCHER_TOO_MANY log watcher limit reached\r\n")
        for watcher in watchers:
            watcher.wire.close()
        deadline = time.monotonic() + PATIENCE_S
        while server.stats()["log_watchers"] != "0":
            assert time.monotonic() < deadline


def test_watching_can_be_forbidden_and_stands_alone(ours):
    with Server("-W") as server, server.wire() as wire:
        wire.exchange(b"watch\r\n", b"CLIENT_ERROR watch commands not allowed\r\n")
        wire.exchange(b"watch nothing\r\n", b"CLIENT_ERROR watch commands not allowed\r\n")
    with Server() as server, server.wire() as wire:
        wire.send(b"mn\r\nwatch\r\n")
        wire.expect(b"MN\r\nERROR cannot pipeline other commands before watch\r\n")
        wire.exchange(b"watch everything\r\n", b"ERROR\r\n")


@pytest.mark.parametrize("mode", MODES)
def test_detail_counts_by_prefix(ours, mode):
    with Server(*MODES[mode]) as server, server.wire() as wire:
        wire.exchange(b"stats detail dump\r\n", END)
        wire.exchange(b"stats detail on\r\n", b"OK\r\n")
        wire.send(store(b"1", b"foo:1") + b"get foo:1 foo:2 none\r\ndelete foo:3\r\nset bar: 0 0 1 noreply\r\nx\r\n")
        wire.expect(STORED + value(b"foo:1", b"1") + END + b"NOT_FOUND\r\n")
        bar, foo = b"PREFIX bar get 0 hit 0 set 1 del 0\r\n", b"PREFIX foo get 2 hit 1 set 1 del 1\r\n"
        wire.exchange(b"stats detail dump\r\n", bar + foo + END)
        wire.exchange(b"stats detail off\r\n", b"OK\r\n")
        wire.exchange(b"get foo:1\r\n", value(b"foo:1", b"1") + END)
        wire.exchange(b"stats detail dump\r\n", bar + foo + END)
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(b"stats detail dump\r\n", END)
        wire.exchange(b"stats detail\r\n", b"CLIENT_ERROR usage: stats detail on|off|dump\r\n")
    with Server("-X") as server, server.wire() as wire:
        wire.exchange(b"stats detail on\r\n", b"CLIENT_ERROR stats detail not allowed\r\n")
    with Server("-D", "/") as server, server.wire() as wire:
        wire.send(b"get a/b\r\nstats detail dump\r\n")
        wire.expect(END + b"PREFIX a get 1 hit 0 set 0 del 0\r\n" + END)
