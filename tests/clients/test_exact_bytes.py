"""Replies byte for byte, in order, however requests are cut into packets."""

import random
import re
import threading
import time

import pytest
from clauses_text import END, NEWER_TRANSCRIPTS, STORED, TRANSCRIPTS, store, value
from conformance import OLDEST
from harness import Server, Wire, version

ALL_TRANSCRIPTS = TRANSCRIPTS | NEWER_TRANSCRIPTS


def transcript(server, name):
    if name in NEWER_TRANSCRIPTS and version(server) <= OLDEST:
        pytest.skip("memcached's parser has changed since")
    return ALL_TRANSCRIPTS[name]


@pytest.mark.parametrize("name", ALL_TRANSCRIPTS)
def test_transcript(server_or_peer, name):
    with server_or_peer.wire() as wire:
        for request, reply in transcript(server_or_peer, name):
            wire.exchange(request, reply)


@pytest.mark.parametrize("name", ALL_TRANSCRIPTS)
def test_transcript_pipelined(server_or_peer, name):
    """All requests of a transcript at once: the replies are the same, in the same order."""
    with server_or_peer.wire() as wire:
        requests, replies = zip(*transcript(server_or_peer, name))
        wire.exchange(b"".join(requests), b"".join(replies))


def test_transcripts_in_small_pieces(server_or_peer):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    names = [
        "Storage commands: set and get",
        "Keys: keys",
        "Error strings: numbers",
        "Storage commands: append and prepend",
        "Increment/Decrement: increment",
        "Commands: noreply",
        "Storage commands: bad data chunks",
    ]
    for name in names:
        emptying = [(b"flush_all\r\n", b"OK\r\n")]
        with server_or_peer.wire() as wire:
            for request, reply in emptying + TRANSCRIPTS[name]:
                while request:
                    cut = rng.randint(1, 40)
                    wire.send(request[:cut])
                    request = request[cut:]
                wire.expect(reply)
            # What has no reply is executed before the next test begins.
            wire.exchange(b"", b"")


def test_gets_reports_one_unique_per_version(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(store(b"1", flags=2), STORED)
        wire.send(b"gets a a\r\n")
        lines = [wire.line() for _ in range(5)]
        found = re.fullmatch(rb"VALUE a 2 1 (\d+)\r\n", lines[0])
        assert found and lines == [lines[0], b"1\r\n", lines[0], b"1\r\n", END]
        wire.exchange(store(b"2", verb=b"cas", rest=b" " + found[1]), STORED)
        wire.exchange(store(b"3", verb=b"cas", rest=b" " + found[1]), b"EXISTS\r\n")
        wire.send(b"gats 0 a\r\n")
        assert re.fullmatch(rb"VALUE a 0 1 \d+\r\n", wire.line()).string != lines[0]
        wire.expect(b"2\r\n" + END)


def test_version_is_one_that_clients_accept(server):
    with server.wire() as wire:
        wire.send(b"version\r\n")
        assert re.match(rb"VERSION 1\.6\.\d+", wire.line())


def test_quit_closes(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.send(store(b"1") + b"quit\r\n" + store(b"2"))
        wire.expect(STORED)
        wire.expect_closed()
    with server_or_peer.wire() as wire:
        wire.exchange(b"get a\r\n", value(b"a", b"1") + END)


def test_half_closed_connection_gets_its_replies(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.send(store(b"1") + b"get a\r\n")
        wire.socket.shutdown(1)
        wire.expect(STORED + value(b"a", b"1") + END)
        wire.expect_closed()


def test_a_thousand_keys_in_one_get(server_or_peer):
    keys = [b"key-%04d" % i for i in range(1000)]
    with server_or_peer.wire() as wire:
        wire.exchange(b"".join(store(b"value of " + key, key) for key in keys), STORED * 1000)
        found = b"".join(value(key, b"value of " + key) for key in keys)
        for verb in (b"get ", b"gat 100 "):
            wire.exchange(verb + b" ".join(keys) + b"\r\n", found + END)


def test_a_line_of_128_kib(server_or_peer):
    keys = [b"%0249d" % i for i in range(525)]
    line = b"get " + b" ".join(keys) + b"\r\n"
    assert len(line) > 128 << 10
    with server_or_peer.wire() as wire:
        wire.exchange(store(b"last", keys[-1]), STORED)
        wire.exchange(line, value(keys[-1], b"last") + END)


def test_a_long_pipeline_keeps_its_order(server_or_peer):
    """More requests than fit into any buffer, with reads after writes of the same key, sent while replies are read."""
    rounds = 5000
    requests = b"".join(
        store(b"%d" % i, b"key-%d" % (i % 97)) + b"get key-%d other-%d\r\n" % (i % 97, i % 89) for i in range(rounds)
    )
    replies = b"".join(STORED + value(b"key-%d" % (i % 97), b"%d" % i) + END for i in range(rounds))
    with server_or_peer.wire() as wire:
        sender = threading.Thread(target=wire.send, args=(requests,))
        sender.start()
        wire.expect(replies)
        sender.join()


def test_counting_from_many_connections(server_or_peer):
    """Increments from many connections at once add up: none is lost, whichever worker a connection is on."""
    connections, rounds = 8, 500
    with server_or_peer.wire() as wire:
        wire.exchange(store(b"0", b"count"), STORED)

    def count():
        with server_or_peer.wire() as wire:
            wire.send(b"incr count 1\r\n" * rounds)
            seen = [int(wire.line()) for _ in range(rounds)]
            assert seen == sorted(set(seen))

    threads = [threading.Thread(target=count) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with server_or_peer.wire() as wire:
        wire.exchange(b"incr count 0\r\n", b"%d\r\n" % (connections * rounds))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, 4095, 65_536, 300_000, 1 << 20])
def test_values_of_every_size(server_or_peer, size):
    """1 MiB exceeds memcached's limit of 1 MiB for key, value and header together."""
    data = random.Random(size).randbytes(size)
    with server_or_peer.wire() as wire:
        if size == 1 << 20:
            wire.exchange(store(data), b"SERVER_ERROR object too large for cache\r\n")
            data = data[: (1 << 20) - 600]
        wire.exchange(store(data), STORED)
        wire.exchange(b"get a\r\n", value(b"a", data) + END)
        wire.exchange(b"get a a a\r\n", value(b"a", data) * 3 + END)


def test_flush_with_delay(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(store(b"1"), STORED)
        wire.exchange(b"flush_all 2\r\n", b"OK\r\n")
        wire.exchange(b"get a\r\n", value(b"a", b"1") + END)
        time.sleep(3.2)
        wire.exchange(b"get a\r\n", END)
        wire.exchange(store(b"2"), STORED)
        wire.exchange(b"get a\r\n", value(b"a", b"2") + END)


def test_expiry_in_real_time(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(store(b"1", b"relative", exptime=1), STORED)
        wire.exchange(store(b"1", b"absolute", exptime=int(time.time()) + 2), STORED)
        wire.exchange(store(b"1", b"kept", exptime=1), STORED)
        wire.exchange(b"gat 100 kept\r\n", value(b"kept", b"1") + END)
        time.sleep(3.2)
        wire.exchange(b"get relative absolute kept\r\n", value(b"kept", b"1") + END)
        wire.exchange(store(b"2", b"relative", verb=b"add"), STORED)
        wire.exchange(b"incr absolute 1\r\n", b"NOT_FOUND\r\n")
