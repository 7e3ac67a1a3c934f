"""Listing keys: lru_crawler metadump and mgdump, stats cachedump."""

import base64
import re
import time

import pytest
from harness import Server
from clauses_text import END, STORED, store, value

LINE = re.compile(rb"key=(\S+) exp=(-1|\d+) la=\d+ cas=(\d+) fetch=(yes|no) cls=1 size=(\d+) flags=(\d+) \n")


def listed(wire, command, end):
    wire.send(command)
    wire.expect(b"OK\r\n")
    lines = []
    while (line := wire.line()) != end:
        lines.append(line)
    return lines


def fill(wire, count, prefix=b"k"):
    wire.exchange(b"".join(store(b"%d" % n, prefix + b"%d" % n) for n in range(count)), STORED * count)


def test_metadump_lists_every_item_once(server, ours):
    with server.wire() as wire:
        # A key of an earlier test may still be listed: consider only this test's keys.
        fill(wire, 5000, b"listed-")
        wire.exchange(b"set mortal 7 1000 3\r\nabc\r\nset gone 0 -1 1\r\nx\r\n", STORED * 2)
        wire.exchange(b"set odd#key 0 0 1\r\nx\r\n", STORED)
        wire.exchange(b"get listed-7\r\n", value(b"listed-7", b"7") + END)
        for which in (b"all", b"hash", b"1"):
            lines = listed(wire, b"lru_crawler metadump " + which + b"\r\n", END)
            items = [LINE.fullmatch(line) for line in lines]
            assert all(items), lines[:3]
            keys = [item[1] for item in items if re.match(rb"listed-|mortal|odd|gone", item[1])]
            assert len(keys) == len(set(keys)) == 5002
            assert b"odd%23key" in keys and b"gone" not in keys
            by_key = {item[1]: item for item in items}
            assert abs(int(by_key[b"mortal"][2]) - time.time() - 1000) < 30
            assert by_key[b"mortal"][6] == b"7" and by_key[b"listed-0"][2] == b"-1"
            assert by_key[b"listed-7"][4] == b"yes" and by_key[b"listed-8"][4] == b"no"
        wire.exchange(b"get listed-1\r\n", value(b"listed-1", b"1") + END)


def test_mgdump_lists_commands(server, ours):
    with server.wire() as wire:
        fill(wire, 300)
        lines = listed(wire, b"lru_crawler mgdump all\r\n", b"EN\r\n")
        assert sorted(lines) == sorted(b"mg k%d\r\n" % n for n in range(300))


def test_keys_that_no_line_can_hold(server, ours):
    """A key of the binary protocol or in base64 may have any bytes. What is listed can be sent back."""
    key = base64.b64encode(b"a b\r\nset x")
    with server.wire() as wire:
        wire.exchange(b"ms %s 2 b\r\nhi\r\n" % key, b"HD\r\n")
        assert listed(wire, b"lru_crawler mgdump all\r\n", b"EN\r\n") == [b"mg %s b\r\n" % key]
        wire.exchange(b"mg %s b v\r\n" % key, b"VA 2\r\nhi\r\n")
        assert listed(wire, b"lru_crawler metadump all\r\n", END)[0].startswith(b"key=a%20b%0D%0Aset%20x ")
        wire.exchange(b"stats cachedump 1 10\r\n", END)


@pytest.mark.parametrize("access", ["erew", "crew", "crcw"])
def test_store_mode_lists_its_items_and_frees_what_has_expired(ours, access):
    with Server("-M", "-t", 2, "--access", access) as server, server.wire() as wire:
        fill(wire, 2000)
        wire.exchange(b"".join(b"set gone%d 0 -1 1\r\nx\r\n" % n for n in range(300)), STORED * 300)
        wire.exchange(b"get k7\r\n", value(b"k7", b"7") + END)
        items = [LINE.fullmatch(line) for line in listed(wire, b"lru_crawler metadump all\r\n", END)]
        assert all(items)
        assert {item[1] for item in items} == {b"k%d" % n for n in range(2000)}
        assert {item[1] for item in items if item[4] == b"yes"} == {b"k7"}
        mg = listed(wire, b"lru_crawler mgdump all\r\n", b"EN\r\n")
        assert {line for line in mg} == {b"mg k%d\r\n" % n for n in range(2000)}
        wire.exchange(b"lru_crawler crawl all\r\n", b"OK\r\n")
        deadline = time.monotonic() + 20
        while server.stats()["curr_items"] != "2000" or server.stats()["lru_crawler_running"] != "0":
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_others_are_served_while_a_client_does_not_take_its_listing(ours):
    with Server("-t", 2, "-m", 256) as server:
        with server.wire() as slow, server.wire() as other:
            fill(other, 200_000, b"a-key-that-is-rather-long-so-that-the-listing-fills-every-buffer-there-is-")
            slow.send(b"lru_crawler metadump all\r\n")
            slow.expect(b"OK\r\n")
            for n in range(50):
                other.exchange(store(b"x", b"other%d" % n), STORED)
            other.exchange(b"lru_crawler metadump all\r\n", b"BUSY currently processing crawler request\r\n")
            assert server.stats()["lru_crawler_running"] == "1"
            count = 0
            while slow.line() != END:
                count += 1
            assert count >= 200_000
            assert len(listed(other, b"lru_crawler metadump all\r\n", END)) >= 200_000


def test_a_client_that_leaves_amid_its_listing_frees_the_way(ours):
    with Server("-t", 2) as server, server.wire() as other:
        fill(other, 100_000, b"a-key-that-is-rather-long-so-that-the-listing-fills-every-buffer-there-is-")
        with server.wire() as wire:
            wire.send(b"lru_crawler metadump all\r\n")
            wire.expect(b"OK\r\n")
        deadline = time.monotonic() + 20
        while server.stats()["lru_crawler_running"] != "0":
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_listing_stands_alone(server, ours):
    with server.wire() as wire:
        wire.send(b"mn\r\nlru_crawler metadump all\r\n")
        wire.expect(b"MN\r\nERROR cannot pipeline other commands before metadump\r\n")
        wire.send(b"mn\r\nlru_crawler mgdump all\r\n")
        wire.expect(b"MN\r\nERROR cannot pipeline other commands before mgdump\r\n")


def test_listing_can_be_switched_off(ours):
    disabled = b"CLIENT_ERROR lru crawler disabled\r\n"
    with Server("-o", "no_lru_crawler") as server, server.wire() as wire:
        wire.exchange(b"lru_crawler metadump all\r\n", disabled)
        assert server.stats("settings")["lru_crawler"] == "no"
        wire.exchange(b"lru_crawler enable\r\n", b"OK\r\n")
        assert server.stats("settings")["lru_crawler"] == "yes"
        assert listed(wire, b"lru_crawler metadump all\r\n", END) == []
        wire.exchange(b"lru_crawler disable\r\n", b"OK\r\n")
        wire.exchange(b"lru_crawler mgdump all\r\n", disabled)
    with Server("-X") as server, server.wire() as wire:
        wire.exchange(b"lru_crawler metadump all\r\n", b"ERROR metadump not allowed\r\n")
        wire.exchange(b"lru_crawler mgdump all\r\n", b"ERROR key dump not allowed\r\n")
        wire.exchange(b"stats cachedump 1 1\r\n", b"CLIENT_ERROR stats cachedump not allowed\r\n")
        # Wrong words are no reason to say more.
        wire.exchange(b"lru_crawler metadump x\r\n", b"ERROR metadump not allowed\r\n")
        wire.exchange(b"lru_crawler mgdump 99\r\n", b"ERROR key dump not allowed\r\n")
        for words in (b"", b" x y", b" 99 1"):
            wire.exchange(b"stats cachedump" + words + b"\r\n", b"CLIENT_ERROR stats cachedump not allowed\r\n")


@pytest.mark.parametrize("flags", [("-t", 1), ("-t", 2)])
def test_cachedump_is_bounded(ours, flags):
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"set a 0 0 3\r\nabc\r\n", STORED)
        wire.exchange(b"stats cachedump 1 100\r\n", b"ITEM a [3 b; 0 s]\r\n" + END)
        fill(wire, 1000)
        for wanted, least in ((10, 10), (0, 1001)):
            wire.send(b"stats cachedump 1 %d\r\n" % wanted)
            lines = list(iter(wire.line, END))
            assert len(lines) == least
            assert all(re.fullmatch(rb"ITEM \S+ \[\d+ b; 0 s\]\r\n", line) for line in lines)


@pytest.mark.parametrize("access", ["erew", "crcw"])
def test_cachedump_lists_an_item_under_one_class(ours, access):
    """Clients that want every key ask for each class in turn."""
    with Server("-t", 1, "--access", access) as server, server.wire() as wire:
        fill(wire, 20)
        lines = []
        for item_class in range(64):
            wire.send(b"stats cachedump %d 0\r\n" % item_class)
            lines += iter(wire.line, END)
        assert sorted(line.split()[1] for line in lines) == sorted(b"k%d" % n for n in range(20))
        wire.exchange(b"stats cachedump 64 0\r\n", b"CLIENT_ERROR Illegal slab id\r\n")


def test_a_crawl_removes_what_has_expired(server, ours):
    with server.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        fill(wire, 500)
        wire.exchange(b"".join(b"set gone%d 0 -1 1\r\nx\r\n" % n for n in range(300)), STORED * 300)
        wire.exchange(b"lru_crawler crawl all\r\n", b"OK\r\n")
        deadline = time.monotonic() + 20
        while server.stats()["lru_crawler_running"] != "0" or server.stats()["curr_items"] != "500":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        stats = server.stats()
        assert (stats["crawler_reclaimed"], stats["crawler_items_checked"]) == ("300", "800")
        wire.exchange(b"get k499 gone7\r\n", value(b"k499", b"499") + END)


def test_the_clock_is_put_forward_only_where_that_is_allowed(ours):
    with Server("--debug-commands") as server, server.wire() as wire:
        wire.exchange(b"set a 0 100 1\r\nx\r\n", STORED)
        wire.exchange(b"debugtime 99\r\n", b"OK\r\n")
        wire.exchange(b"get a\r\n", value(b"a", b"x") + END)
        wire.exchange(b"debugtime 2\r\n", b"OK\r\n")
        wire.exchange(b"get a\r\n", END)
    with Server() as server, server.wire() as wire:
        wire.exchange(b"debugtime 2\r\n", b"ERROR\r\n")
