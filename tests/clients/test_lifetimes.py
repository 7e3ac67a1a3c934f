"""Lifetimes in milliseconds: by the meta flag `m` and by RESP, and what keeps them when a server ends."""

import random
import time

import lifetimes
import pytest
import resp
from harness import Server
from test_copy import copy
from test_memory_file import file  # noqa: F401, a fixture

pytestmark = pytest.mark.usefixtures("ours")

TABLES = {"mica": [], "memc3": ["--table", "memc3"], "store": ["--mode", "store"]}


def ends(server, count):
    """When items end, by the server's word, in milliseconds since 1970."""
    with server.wire() as wire:
        return [int(resp.say(wire, "PEXPIRETIME", f"k{number}")[1:]) for number in range(count)]


def fill(server, rng):
    """Items of both kinds of lifetimes, and one without."""
    with server.wire() as wire:
        for number in range(20):
            in_ms = number % 2 == 0
            lifetime = rng.randrange(10**7, 10**9) if in_ms else rng.randrange(10**4, 10**6)
            flag = b" m" if in_ms else b""
            wire.exchange(b"ms k%d 1 T%d%s\r\nx\r\n" % (number, lifetime, flag), b"HD\r\n")
        wire.exchange(b"set k20 0 0 1\r\nx\r\n", b"STORED\r\n")


@pytest.mark.parametrize("table", TABLES)
def test_an_item_is_there_until_its_time_has_come(ours, table):
    """The server's own count of what is left falls to its end, and what it shows has some left."""
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    with Server("-t", 2, *TABLES[table]) as server:
        print(*lifetimes.report(lifetimes.measure(server.address, 0.3, seed)), sep="\n")
        with server.wire() as wire:
            wire.exchange(b"ms k 1 T30 m\r\nx\r\n", b"HD\r\n")
            left = 30
            while True:
                wire.send(b"mg k t m\r\n")
                line = wire.line()
                if line == b"EN\r\n":
                    break
                assert 1 <= int(line[len(b"HD t") :]) <= left, line
                left = int(line[len(b"HD t") :])
            assert server.stats()["cmd_touch"] == "0"


@pytest.mark.parametrize("table", TABLES)
def test_a_snapshot_and_a_memory_file_keep_milliseconds(ours, table, file, tmp_path):  # noqa: F811, the fixture
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    for kept in (("--snapshot", tmp_path / "snapshot"), ("-e", file)):
        flags = ("-t", 2, *TABLES[table], *kept)
        with Server(*flags) as server:
            fill(server, random.Random(seed))
            before = ends(server, 22)
        assert before[20:] == [-1, -2] and len({end % 1000 for end in before[:20]}) > 10
        with Server(*flags) as server:
            after = ends(server, 22)
        assert after[20:] == [-1, -2]
        # Two servers may start with clocks that differ, but not from item to item.
        (shift,) = {new - old for old, new in zip(before[:20], after, strict=False)}
        assert abs(shift) < 10_000


def test_a_copy_keeps_milliseconds(ours):
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    with Server("-t", 2) as source, Server("-t", 1) as target:
        fill(source, random.Random(seed))
        begun = time.monotonic()
        copy(source, target)
        # What is left when the item is read counts from when it is stored. Wall clocks may differ by a millisecond.
        late_ms = (time.monotonic() - begun) * 1000 + 2
        for old, new in zip(ends(source, 20), ends(target, 20), strict=True):
            assert -2 <= new - old <= late_ms, (old, new)


def test_a_full_store_lets_items_end_at_once():
    """An expiry time takes memory, but not one that is past."""
    with Server("-M", "-m", 2, "-t", 1) as server, server.wire() as wire:

        def fill(prefix, value):
            number, line = 0, b"STORED\r\n"
            while line == b"STORED\r\n":
                wire.send(b"set %s%d 0 0 %d\r\n%s\r\n" % (prefix, number, len(value), value))
                number, line = number + 1, wire.line()
            assert line == b"SERVER_ERROR out of memory storing object\r\n"

        # As long as the items after it.
        number = b"n" * 101
        wire.exchange(b"set %s 0 0 1\r\n5\r\n" % number, b"STORED\r\n")
        # A number of two digits needs a longer item.
        longer = b"l" * 103
        wire.exchange(b"set %s 0 0 1\r\n9\r\n" % longer, b"STORED\r\n")
        fill(b"f", bytes(100))
        fill(b"small", b"")
        wire.exchange(b"touch f0 100\r\n", b"SERVER_ERROR out of memory\r\n")
        wire.exchange(b"ma %s T100 v\r\n" % number, b"SERVER_ERROR out of memory\r\n")
        wire.exchange(b"ma %s T-1 v\r\nget %s\r\n" % (longer, longer), b"VA 2\r\n10\r\nEND\r\n")
        fill(b"then", b"")
        wire.exchange(b"ma %s T-1 v\r\nget %s\r\n" % (number, number), b"VA 1\r\n6\r\nEND\r\n")
        fill(b"and", b"")
        wire.exchange(b"touch f1 -1\r\nget f1\r\n", b"TOUCHED\r\nEND\r\n")
        fill(b"again", b"")
        wire.exchange(b"mg f2 T-1 s\r\nmg f2 s\r\n", b"HD s100\r\nEN\r\n")
        fill(b"more", b"")
        wire.exchange(b"md f3 I T-1\r\nmg f3 s\r\n", b"HD\r\nEN\r\n")
