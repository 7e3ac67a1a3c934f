"""Excessive clients harm only themselves."""

import re
import socket
import time
from pathlib import Path

import pytest
from harness import PATIENCE_S, Server, Wire, is_memcached, server_binary
from clauses_text import END, STORED, store, value


DOCUMENTS = Path(__file__).parents[2] / "docs"


def resident_mib(server):
    for line in open(f"/proc/{server.pid}/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel keeps no account")


def page_faults(server):
    """Page faults of the server so far that took no disk access."""
    fields = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    return int(fields[7])


def assert_serves(server):
    with server.wire() as wire:
        wire.exchange(store(b"1", b"alive"), STORED)
        wire.exchange(b"get alive\r\n", value(b"alive", b"1") + END)


def test_a_client_that_never_reads(server):
    """A client requests 200 MB of replies and reads none. The server holds a bounded part of them and serves all other clients."""
    data = bytes(200_000)
    with server.wire() as wire:
        wire.exchange(store(data, b"big"), STORED)
    before = resident_mib(server)
    greedy = server.wire()
    greedy.socket.settimeout(0.5)
    try:
        greedy.send(b"get big\r\n" * 1000)
    except TimeoutError:
        pass
    for _ in range(20):
        assert_serves(server)
    assert resident_mib(server) - before < 32
    greedy.close()
    assert_serves(server)


def test_a_slow_reader_gets_everything_in_order(server):
    data = bytes(100_000)
    with server.wire() as wire:
        wire.exchange(store(data, b"big"), STORED)
        wire.send(b"".join(b"get big missing-%d\r\nget missing\r\n" % i for i in range(100)))
        time.sleep(1)
        wire.expect((value(b"big", data) + END + END) * 100)


def test_nothing_waits_behind_urgent_data(server):
    """The urgent byte is no part of what is received, and a receive ends in front of it."""
    half = b"x" * 20_000
    with server.wire() as wire:
        for before, behind, replies in (
            (b"get absent\r\n", b"get absent\r\n", b"END\r\nEND\r\n"),
            (b"set urgent 0 0 40000\r\n" + half, half + b"\r\nget absent\r\n", b"STORED\r\nEND\r\n"),
        ):
            wire.exchange(b"get absent\r\n", b"END\r\n")
            server.pause()
            try:
                wire.send(before)
                wire.socket.send(b"!", socket.MSG_OOB)
                wire.send(behind)
            finally:
                server.go_on()
            wire.expect(replies)


def test_a_length_of_two_gigabytes(server):
    """The bytes are swallowed as they arrive, and none is kept."""
    before = resident_mib(server)
    with server.wire() as wire:
        wire.send(b"set a 0 0 2000000000\r\n")
        wire.expect(b"SERVER_ERROR object too large for cache\r\n")
        for _ in range(64):
            wire.send(bytes(1 << 20))
        assert_serves(server)
        assert resident_mib(server) - before < 32
    assert_serves(server)


def test_a_line_without_end(server):
    with server.wire() as wire:
        try:
            wire.send(b"x" * 600_000)
            wire.send(b"x" * 600_000)
            closing = wire.receive(100)
        except (ConnectionResetError, BrokenPipeError):
            closing = b""
        assert closing == b"" or closing.startswith((b"CLIENT_ERROR", b"ERROR"))
    assert_serves(server)


def test_half_a_value_and_gone(server):
    for _ in range(50):
        with server.wire() as wire:
            wire.send(b"set half 0 0 100000\r\n" + bytes(50_000))
    assert_serves(server)
    with server.wire() as wire:
        wire.exchange(b"get half\r\n", END)


def test_gone_without_reading(server):
    """Connections are reset while replies and forwarded requests are in flight."""
    for i in range(50):
        wire = server.wire()
        wire.send(b"".join(store(b"1", b"key-%d" % j) + b"get key-%d\r\n" % j for j in range(i, i + 200)))
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        wire.close()
    assert_serves(server)


def test_connections_past_the_limit():
    with Server("-c", 10, "-t", 2) as server:
        wires = []
        deadline = time.monotonic() + PATIENCE_S
        # The fixture's first connection may still be counted for a moment.
        while len(wires) < 10 and time.monotonic() < deadline:
            wire = server.wire()
            try:
                wire.exchange(b"get a\r\n", END)
                wires.append(wire)
            except (AssertionError, ConnectionError):
                wire.close()
        assert len(wires) == 10
        for _ in range(5):
            with server.wire() as refused:
                assert refused.receive(100) in (b"ERROR Too many open connections\r\n", b"")
        for wire in wires:
            wire.exchange(b"get a\r\n", END)
        wires.pop().close()
        while time.monotonic() < deadline:
            with server.wire() as wire:
                try:
                    wire.exchange(b"get a\r\n", END)
                    break
                except (AssertionError, ConnectionError):
                    time.sleep(0.01)
        else:
            pytest.fail("a place that was given up is not given to another")
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("rule", ["fifo", "lru", "s3fifo"])
@pytest.mark.parametrize("mode", ["erew", "crew", "crcw"])
def test_full_memory_evicts_and_stays_in_bounds(ours, mode, rule):
    """Four times as many items as fit: the newest are present, memory stays bounded, and every value belongs to its key."""
    with Server("-m", 16, "-t", 2, "--access", mode, "--evict", rule) as server:
        with server.wire() as wire:
            for start in range(0, 64_000, 1000):
                keys = [b"key-%d" % i for i in range(start, start + 1000)]
                wire.send(b"".join(store(key * 100, key, rest=b" noreply") for key in keys))
                wire.exchange(b"get " + keys[-1] + b"\r\n", value(keys[-1], keys[-1] * 100) + END)
            found = 0
            for i in range(0, 64_000, 7):
                key = b"key-%d" % i
                wire.send(b"get " + key + b"\r\n")
                if (line := wire.line()) != END:
                    assert line == b"VALUE %b 0 %d\r\n" % (key, len(key) * 100)
                    wire.expect(key * 100 + b"\r\n" + END)
                    found += 1
        assert 500 < found < 64_000 / 7 / 2
        stats = server.stats()
        assert int(stats["evictions"]) > 20_000
        assert int(stats["curr_items"]) < 32_000
        assert resident_mib(server) < 16 + 32


def test_what_is_read_once_and_later_is_found(ours):
    """Sessions and rendered pages: each item is read 30,000 writes after its own, in a server that has room for 60,000. The rule
    shows what it has found out."""
    lag, items, batch, found = 30_000, 90_000, 1000, 0
    with Server("-m", 64, "-t", 2) as server, server.wire() as wire:
        for first in range(0, items, batch):
            keys = (b"key-%d" % n for n in range(first, first + batch))
            wire.send(b"".join(store(bytes(1000), key, rest=b" noreply") for key in keys))
            wire.exchange(b"mn\r\n", b"MN\r\n")
            if first >= lag:
                wire.send(b"".join(b"mg key-%d\r\n" % n for n in range(first - lag, first - lag + batch)))
                found += wire.receive(4 * batch).count(b"HD\r\n")
        # A full bucket of the index may cost an item now and then.
        assert found > 0.9999 * (items - lag), found
        learned = server.stats("glimmer")
        assert learned["evict"] == "adaptive" and learned["evict_for"] == "hits"
        assert learned["evict_setting"] == "fifo" and int(learned["evict_keys_followed"]) > 100
        # They come from a sample, and differ from server to server.
        estimates = dict(estimate.split("=") for estimate in learned["evict_estimates"].split())
        best = max(float(part) for part in estimates.values())
        assert float(estimates["fifo"]) == best > 0.8, estimates


@pytest.mark.parametrize("value_bytes", [120, 150, 10_000])
@pytest.mark.parametrize("rule", ["fifo", "lru", "s3fifo"])
def test_a_store_into_a_full_cache_of_items_like_it_evicts_one(ours, rule, value_bytes):
    """A client that fills the cache and then stores one item more sees one eviction, not two or none. Index buckets that overflow
    or are added change that for a few stores."""
    data = bytes(value_bytes)
    with Server("-m", 8, "-t", 1, "--evict", rule) as server, server.wire() as wire:
        for first in range(0, 24_000_000 // value_bytes, 1000):
            keys = (b"key-%08d" % n for n in range(first, first + 1000))
            wire.send(b"".join(store(data, key, rest=b" noreply") for key in keys))
            wire.exchange(b"mn\r\n", b"MN\r\n")
        evictions = []
        for n in range(300):
            wire.exchange(store(data, b"new-%08d" % n), STORED)
            evictions.append(int(server.stats()["evictions"]))
        ones = sum(after - before == 1 for before, after in zip(evictions, evictions[1:]))
        assert ones >= 285


def test_store_mode_holds_what_its_memory_promises(ours):
    """At least 12,500 items per MiB with keys of 16 and values of 32 bytes, none of them refused."""
    items = 64 * 12_500
    with Server("-M", "-m", 64, "-t", 1) as server, server.wire() as wire:
        for first in range(0, items, 25_000):
            numbers = range(first, first + 25_000)
            wire.send(b"".join(b"set %016d 0 0 32 noreply\r\n%032d\r\n" % (n, n) for n in numbers))
            wire.exchange(b"mn\r\n", b"MN\r\n")
        assert int(server.stats()["curr_items"]) == items


@pytest.mark.parametrize("value_bytes", [100_000, 1_000_000])
def test_large_values_are_served_from_memory_that_is_there(ours, value_bytes):
    """The buffers of large values are kept: after a warm-up, neither reads nor writes make the kernel hand out and zero pages again.
    A value of 1 MB has 244 pages."""
    rounds = 50
    with Server("-m", 1024, "-t", 1) as server:
        wires = [server.wire() for _ in range(4)]
        exchanges = {
            "set": (store(bytes(value_bytes), b"large") * 2, STORED * 2),
            "get": (b"get large\r\n" * 2, (value(b"large", bytes(value_bytes)) + END) * 2),
        }
        for verb, (request, reply) in exchanges.items():
            for turn in range(2 * rounds):
                if turn == rounds:
                    before = page_faults(server)
                for wire in wires:
                    wire.send(request)
                for wire in wires:
                    wire.expect(reply)
            faults = page_faults(server) - before
            assert faults < rounds * len(wires), f"{faults} faults in {2 * rounds * len(wires)} times {verb}"
        for wire in wires:
            wire.close()


# Values of a megabyte, and as many of them as fill -m.
MEGABYTE = bytes(1_000_000)


@pytest.mark.parametrize("access", ["erew", "crew", "crcw"])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_the_first_large_value_leaves_when_memory_is_full(threads, access):
    """Partitions share the memory: whatever the number of threads, no value leaves before 85% of -m has been stored."""
    if is_memcached(server_binary()):
        pytest.skip("a property of Glimmer")
    megabytes = 64
    stored = megabytes * (1 << 20) * 85 // 100 // len(MEGABYTE)
    with Server("-m", megabytes, "-t", threads, "--access", access) as server, server.wire() as wire:
        for number in range(stored):
            wire.exchange(store(MEGABYTE, b"large-%d" % number), STORED)
        for number in range(stored):
            key = b"large-%d" % number
            wire.exchange(b"get %s\r\n" % key, value(key, MEGABYTE) + END)
        assert server.stats()["evictions"] == "0"
        # Twice the memory goes through it, and the process stays within its bound.
        for number in range(2 * megabytes):
            wire.exchange(store(MEGABYTE, b"more-%d" % number), STORED)
        assert resident_mib(server) < megabytes + 32


def kept_until_one_leaves(megabytes, threads, size):
    """How many values of this size a fresh server has before it evicts one."""
    large = bytes(size)
    with Server("-m", megabytes, "-t", threads) as server, server.wire() as wire:
        kept = 0
        while server.stats()["evictions"] == "0":
            kept = int(server.stats()["curr_items"])
            wire.exchange(store(large, b"large-%d" % kept), STORED)
    return kept


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_documentation_has_the_share_that_large_values_fill(threads):
    if is_memcached(server_binary()):
        pytest.skip("a property of Glimmer")
    page = (DOCUMENTS / "memory.md").read_text()
    said = re.search(rf"\n\| {threads} \| (\d+)% \| (\d+)% \| (\d+)% \|", page)
    for megabytes, share in zip((64, 128, 256), said.groups()):
        kept = kept_until_one_leaves(megabytes, threads, 1_000_000)
        assert abs(kept * 1_000_000 / (megabytes << 20) * 100 - int(share)) <= 2.5


@pytest.mark.parametrize("threads", ["two threads", "one"])
def test_the_documentation_says_how_many_large_values_fit(threads):
    if is_memcached(server_binary()):
        pytest.skip("a property of Glimmer")
    page = (DOCUMENTS / "memcached-differences.md").read_text()
    found = re.search(r"With two threads, `-m 128` holds (\d+) values of almost 1 MiB, and with one (\d+);", " ".join(page.split()))
    said = int(found[1 if threads == "two threads" else 2])
    kept = kept_until_one_leaves(128, 2 if threads == "two threads" else 1, (1 << 20) - 100)
    assert abs(kept - said) <= 3


@pytest.mark.parametrize("threads", [4, 16, 32])
def test_threads_do_not_lower_the_item_limit(threads):
    if is_memcached(server_binary()):
        pytest.skip("a property of Glimmer")
    with Server("-m", 64, "-t", threads) as server, server.wire() as wire:
        assert server.stats("settings")["item_size_max"] == str(1 << 20)
        wire.exchange(store(bytes(100_000), b"large"), STORED)


@pytest.mark.parametrize("flags", [("-m", 64, "-t", 2), ("-m", 128, "-t", 4)], ids=["64", "128"])
def test_a_large_value_outlives_what_it_is_compared_with_or_grows_by(ours, flags):
    """The memory is almost empty, but a partition keeps few values of this size among the new ones."""
    data, more = bytes(900_000), bytes(1_000)
    with Server(*flags) as server, server.wire() as wire:
        for number in range(20):
            key = b"key%d" % number
            wire.exchange(store(data, key), STORED)
            wire.exchange(b"cas %s 0 0 900000 999999\r\n%s\r\n" % (key, data), b"EXISTS\r\n")
            wire.exchange(b"add %s 0 0 900000\r\n%s\r\n" % (key, data), b"NOT_STORED\r\n")
            wire.exchange(b"append %s 0 0 1000\r\n%s\r\n" % (key, more), STORED)
            wire.exchange(b"mg %s s\r\n" % key, b"HD s901000\r\n")
        assert server.stats()["evictions"] == "0"
