"""Statistics with memcached's meanings."""

import re
import time
from pathlib import Path

import pytest
from clauses_text import END, STORED, store, value
from harness import PATIENCE_S, Server

# Statistics that monitoring of memcached reads; every name is memcached's.
NAMES = """pid uptime time version pointer_size rusage_user rusage_system max_connections curr_connections total_connections
rejected_connections cmd_get cmd_set cmd_flush cmd_touch get_hits get_misses delete_misses delete_hits incr_misses incr_hits
decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses bytes_read bytes_written limit_maxbytes
accepting_conns threads conn_yields hash_bytes bytes curr_items total_items evictions reclaimed evicted_active lru_maintainer_juggles moves_to_cold
moves_to_warm moves_within_lru direct_reclaims lru_bumps_dropped""".split()


def numbers(server):
    """memcached's counters that are determined by the requests."""
    counted = [name for name in NAMES if name.startswith(("cmd_", "get_", "delete_", "incr_", "decr_", "cas_", "touch_"))]
    stats = server.stats()
    return {name: int(stats[name]) for name in counted}


def test_every_name_is_there(server_or_peer):
    stats = server_or_peer.stats()
    assert [name for name in NAMES if name not in stats] == []
    assert int(stats["pid"]) == server_or_peer.pid
    assert int(stats["limit_maxbytes"]) == 64 << 20


def test_counts_are_memcacheds(server_or_peer):
    server = server_or_peer
    with server.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(store(b"1", b"a") + store(b"10", b"n"), STORED * 2)
        wire.exchange(b"get a b n\r\n", value(b"a", b"1") + value(b"n", b"10") + END)
        wire.exchange(store(b"x", b"a", verb=b"add"), b"NOT_STORED\r\n")
        wire.exchange(store(b"x", b"a", verb=b"cas", rest=b" 99999999999"), b"EXISTS\r\n")
        wire.exchange(store(b"x", b"b", verb=b"cas", rest=b" 1"), b"NOT_FOUND\r\n")
        wire.exchange(b"incr n 1\r\nincr b 1\r\ndecr n 1\r\ndecr b 1\r\n", b"11\r\nNOT_FOUND\r\n10\r\nNOT_FOUND\r\n")
        wire.exchange(b"touch a 100\r\ntouch b 100\r\n", b"TOUCHED\r\nNOT_FOUND\r\n")
        wire.exchange(b"delete a\r\ndelete a\r\n", b"DELETED\r\nNOT_FOUND\r\n")
    figures = numbers(server)
    # Nine exchanges end with a get that misses, and one also requests an absent key.
    for name, expected in {
        "get_hits": 2,
        "get_misses": 10,
        "cas_badval": 1,
        "cas_misses": 1,
        "incr_hits": 1,
        "incr_misses": 1,
        "decr_hits": 1,
        "decr_misses": 1,
        "touch_hits": 1,
        "touch_misses": 1,
        "delete_hits": 1,
        "delete_misses": 1,
        "cmd_touch": 2,
    }.items():
        assert figures[name] == expected, name


# Statistics of other versions of memcached than the one compared with.
OTHER_VERSIONS = {
    "": {"slab_reassign_busy_nomem", "slab_reassign_evictions_nomem", "slab_reassign_last_busy_status"},
    "settings": {"client_flags_size"},
    "slabs": set(),
    "items": set(),
}


@pytest.mark.parametrize("subject", OTHER_VERSIONS)
def test_names_and_their_order_are_memcacheds(server, ours, peer, subject):
    for each in (server, peer):
        with each.wire() as wire:
            wire.exchange(store(b"1"), STORED)
    # memcached has a class per item size, and keeps classes that other tests have used.
    other_class = re.compile(r"(items:)?(?!1:)\d+:")
    expected = [name for name in peer.stats(*subject.split()) if not other_class.match(name)]
    names = list(server.stats(*subject.split()))
    assert [name for name in expected if name not in names] == []
    assert [name for name in names if name in expected] == expected
    own = [name for name in names if name not in expected and "glimmer_" not in name]
    assert set(own) <= OTHER_VERSIONS[subject]


def display(server):
    """`memcached-tool`'s view of the class: it skips a class without pages."""
    slabs = {name: int(figure) for name, figure in server.stats("slabs").items()}
    items = server.stats("items")
    assert slabs["1:total_pages"] > 0
    assert slabs["1:total_chunks"] == slabs["1:total_pages"] * slabs["1:chunks_per_page"]
    assert slabs["1:used_chunks"] + slabs["1:free_chunks"] == slabs["1:total_chunks"]
    assert slabs["1:used_chunks"] * slabs["1:chunk_size"] >= int(items["items:1:mem_requested"])
    return {"full": slabs["1:used_chunks"] == slabs["1:total_chunks"], **items}


@pytest.mark.parametrize("flags", [(), ("-M",), ("--table", "memc3")])
def test_a_class_is_full_once_items_make_room_for_others(ours, flags):
    with Server("-m", 4, "-t", 1, "-I", "16k", *flags) as server, server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
        shown = display(server)
        assert not shown["full"] and shown["items:1:number"] == "1" and shown["items:1:evicted"] == "0"
        for n in range(1000):
            wire.send(store(bytes(8192), b"k%d" % n))
            wire.line()
        evicts = "-M" not in flags
        shown = display(server)
        assert shown["full"] == evicts
        assert (int(shown["items:1:evicted"]) > 0) == evicts


@pytest.mark.parametrize("rule", ["fifo", "lru"])
def test_ages_of_the_oldest_item_and_of_the_last_evicted(ours, rule):
    flags = ("--debug-commands", "--evict", rule, "-m", 4, "-t", 1, "-I", "16k")
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"set mortal 0 1000 1\r\nx\r\n" + store(b"1", b"immortal"), STORED * 2)
        wire.exchange(b"debugtime 500\r\n" + store(b"1", b"later"), b"OK\r\n" + STORED)
        items = server.stats("items")
        assert 500 <= int(items["items:1:age"]) < 500 + PATIENCE_S
        assert items["items:1:evicted_time"] == items["items:1:evicted_nonzero"] == "0"
        fill = b"".join(b"set p%d 0 0 8192 noreply\r\n%b\r\n" % (n, bytes(8192)) for n in range(1000))
        while "VALUE" in keys_present(wire, b"mortal", b"immortal", b"later"):
            wire.send(fill)
        # Ages are updated with the first store of a second.
        wire.exchange(b"debugtime 1\r\n" + fill, b"OK\r\n")
        items = server.stats("items")
        assert items["items:1:evicted_nonzero"] == "1"
        assert int(items["items:1:age"]) < 500 and 0 < int(items["items:1:evicted_time"]) < 500 + PATIENCE_S


def test_what_counts_as_what(server_or_peer):
    """`gat` is a touch and not a get. Creating an item is not a miss, and marking one is not a delete."""
    server = server_or_peer
    with server.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(store(b"1", b"a"), STORED)
        wire.exchange(b"gat 0 a\r\ngat 0 b\r\ngats 0 b\r\n", value(b"a", b"1") + END * 3)
        wire.exchange(b"mg a T100\r\n", b"HD\r\n")
        wire.exchange(b"md a I\r\nmd b\r\nmd a\r\n", b"HD\r\nNF\r\nHD\r\n")
        wire.exchange(b"ma c\r\nma c N0\r\nma c\r\nma d MD\r\n", b"NF\r\nHD\r\nHD\r\nNF\r\n")
    figures = numbers(server)
    # Each exchange ends with a get that misses.
    expected = {
        "cmd_get": 6,
        "get_hits": 0,
        "get_misses": 6,
        "cmd_touch": 4,
        "touch_hits": 2,
        "touch_misses": 2,
        "delete_hits": 1,
        "delete_misses": 1,
        "incr_hits": 1,
        "incr_misses": 1,
        "decr_misses": 1,
    }
    assert {name: figures[name] for name in expected} == expected


def test_cmd_set_counts_every_store(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(store(b"1") * 5, STORED * 5)
    stats = server_or_peer.stats()
    assert stats["cmd_set"] == "5"
    assert stats["total_items"] == "5"


def counts(server, *names):
    stats = server.stats()
    return [int(stats[name]) for name in names]


def test_reads_of_what_has_expired_or_was_flushed(server):
    """Not against memcached, which forgets such an item with its first read."""
    remembers = "memc3" not in server.flags
    with server.wire() as wire:
        wire.exchange(store(b"1", b"live") + store(b"1", b"gone", exptime=-1), STORED * 2)
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(b"get live gone never\r\n", value(b"live", b"1") + END)
        wire.exchange(b"mg gone v\r\n", b"EN\r\n")
        wire.exchange(b"gat 0 gone\r\n", END)
        assert counts(server, "get_expired") == [3]
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
        wire.exchange(b"get live never\r\n", END)
        wire.exchange(store(b"2", b"live"), STORED)
        wire.exchange(b"get live\r\n", value(b"live", b"2") + END)
        assert counts(server, "get_expired") == [3]
        assert counts(server, "get_flushed") == [int(remembers)]


def test_a_read_of_what_has_expired_since_a_flush_counts_as_expired(server):
    """The item from before the flush, which may still be known, does not count."""
    keys = [b"k%d" % number for number in range(50)]
    with server.wire() as wire:
        wire.exchange(b"".join(store(b"1", key) for key in keys), STORED * 50)
        wire.exchange(b"flush_all\r\nstats reset\r\n", b"OK\r\nRESET\r\n")
        wire.exchange(b"".join(store(b"2", key, exptime=-1) for key in keys), STORED * 50)
        wire.exchange(b"get " + b" ".join(keys) + b"\r\n", END)
    assert counts(server, "get_expired", "get_flushed") == [50, 0]


def test_meta_debug_commands_are_counted(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(b"me a\r\nme b\r\n", b"EN\r\nEN\r\n")
        wire.exchange(b"mg a v\r\n", b"EN\r\n")
    assert counts(server_or_peer, "cmd_meta") == [2]


@pytest.mark.parametrize("flags", [("--evict", "fifo"), ("--evict", "lru"), ("--table", "memc3")])
def test_what_left_without_having_been_fetched(ours, flags):
    """All items are evicted in the end. Those that were read are not counted; those that were read and then stored again are."""
    with Server("-m", 8, "-t", 1, *flags) as server, server.wire() as wire:
        for n in range(40):
            wire.exchange(store(bytes(1000), b"k%d" % n), STORED)
        read = b"get " + b" ".join(b"k%d" % n for n in range(20)) + b"\r\n"
        wire.send(read)
        assert sum(wire.line().startswith(b"VALUE") for _ in range(41)) == 20
        for n in range(10):
            wire.exchange(store(bytes(1000), b"k%d" % n), STORED)
        pushed = 0
        while "VALUE" in (left := keys_left(wire, 40)):
            wire.send(b"".join(b"set p%d 0 0 1000 noreply\r\n%b\r\n" % (pushed + n, bytes(1000)) for n in range(1000)))
            pushed += 1000
            assert pushed < 100_000, left
        evictions, unfetched = counts(server, "evictions", "evicted_unfetched")
        # keys_left does not read. Ten of the keys were read after their last store.
        assert evictions - unfetched == 10


def keys_left(wire, count):
    """The first keys that are still stored, found without reading them."""
    return keys_present(wire, *(b"k%d" % n for n in range(count)))


def keys_present(wire, *keys):
    wire.send(b"".join(b"mg %b u s\r\n" % key for key in keys))
    return "".join("VALUE" if wire.line().startswith(b"HD") else "" for _ in keys)


def test_buffers_are_counted(ours):
    with Server("-t", 1) as server:
        wires = [server.wire() for _ in range(10)]
        for wire in wires:
            wire.send(b"set a 0 0 100\r\nhalf of it")
        deadline = time.monotonic() + PATIENCE_S
        while counts(server, "read_buf_count")[0] < 10:
            assert time.monotonic() < deadline
        for wire in wires:
            wire.close()


def test_reset_forgets_counts_and_keeps_states(server):
    with server.wire() as wire:
        wire.exchange(store(b"1"), STORED)
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
    stats = server.stats()
    assert stats["cmd_set"] == "0"
    assert stats["curr_items"] == "1"


def test_settings(ours):
    flags = "-m 100 -t 3 -c 77 -I 512k --access crew --evict lru --lru-threshold 0.25 --hugepages off --item-size-hint 99"
    with Server(*flags.split()) as server:
        settings = server.stats("settings")
        assert settings["tcpport"] == str(server.port)
        assert {name: settings[name] for name in ("maxbytes", "num_threads", "maxconns", "item_size_max", "inter")} == {
            "maxbytes": str(100 << 20),
            "num_threads": "3",
            "maxconns": "77",
            "item_size_max": str(512 << 10),
            "inter": "127.0.0.1",
        }
        assert settings["oldest"] == "0"
        assert settings["glimmer_access"] == "crew"
        assert settings["glimmer_evict"] == "lru"
        assert settings["glimmer_lru_threshold"] == "0.25"
        assert settings["glimmer_hugepages"] == "off"
        assert settings["glimmer_item_size_hint"] == "99"


def test_settings_tell_when_all_was_flushed(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(b"flush_all 100\r\n", b"OK\r\n")
        soon = int(server_or_peer.stats("settings")["oldest"])
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
        now = int(server_or_peer.stats("settings")["oldest"])
        assert 100 - PATIENCE_S < soon - now <= 100


def test_memory_limit_is_accepted_if_it_is_the_current_one(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(b"cache_memlimit 64\r\n", b"OK\r\n")
        wire.exchange(b"cache_memlimit 64 noreply\r\n", b"")
        wire.exchange(b"cache_memlimit 7\r\n", b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n")
        if not server_or_peer.is_memcached:
            refusal = b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"
            wire.exchange(b"cache_memlimit 65\r\n", refusal)
        assert server_or_peer.stats("settings")["maxbytes"] == str(64 << 20)


def test_items_and_slabs(server, ours):
    assert server.stats("items") == {}
    with server.wire() as wire:
        # Deleting an expired item makes no room for another: the server is not full by that.
        wire.exchange(b"set gone 0 -1 1\r\n1\r\ndelete gone\r\n", STORED + b"NOT_FOUND\r\n")
        wire.exchange(store(b"1"), STORED)
    assert server.stats("items")["items:1:number"] == "1"
    used = int(server.stats("slabs")["1:used_chunks"])
    # A header of 8 bytes, and a key and a value of one byte each.
    assert used == 2 or used == 3
    assert server.stats("sizes") == {"sizes_status": "disabled"}


@pytest.mark.parametrize("policy,absent", [("off", "transparent_huge_bytes"), ("transparent", "hugetlb_bytes")])
def test_memory_reports_the_pages_in_use(ours, policy, absent):
    with Server("--hugepages", policy) as server:
        with server.wire() as wire:
            wire.exchange(store(bytes(500_000)) * 20, STORED * 20)
        memory = {name: int(figure) for name, figure in server.stats("memory").items()}
        used = memory["hugetlb_bytes"] + memory["transparent_huge_bytes"] + memory["small_page_bytes"]
        assert used > 500_000
        assert memory[absent] == 0


def test_crossings_are_counted_where_there_are_any(server, ours):
    with server.wire() as wire:
        wire.exchange(b"stats reset\r\n", b"RESET\r\n")
        wire.exchange(b"".join(store(b"1", b"key-%d" % i) for i in range(200)), STORED * 200)
    stats = server.stats("glimmer")
    crosses = stats["access"] != "crcw" and server.stats()["threads"] != "1"
    # A worker shows what it has counted when its turn ends, and a reply leaves before.
    deadline = time.monotonic() + PATIENCE_S
    while crosses and int(server.stats("glimmer")["requests_crossed"]) == 0:
        assert time.monotonic() < deadline
    assert crosses or stats["requests_crossed"] == "0"


def test_verbosity_is_remembered(server_or_peer):
    with server_or_peer.wire() as wire:
        wire.exchange(b"verbosity 2\r\n", b"OK\r\n")
        assert server_or_peer.stats("settings")["verbosity"] == "2"
        wire.exchange(b"verbosity 0\r\n", b"OK\r\n")


def conns(wire):
    wire.send(b"stats conns\r\n")
    sockets = {}
    for line in iter(wire.line, END):
        _, name, figure = line.rstrip(b"\r\n").split(b" ", 2)
        fd, name = name.split(b":")
        sockets.setdefault(int(fd), {})[name.decode()] = figure.decode()
    return list(sockets.values())


def test_conns_shows_every_socket(ours):
    with Server("-t", 2) as server, server.wire() as sender, server.wire() as other:
        sender.send(b"set a 0 0 10\r\nhalf")
        expected = ["conn_listening"] * 2 + ["conn_nread", "conn_parse_cmd"]
        deadline = time.monotonic() + PATIENCE_S
        while sorted(socket["state"] for socket in conns(other)) != expected:
            assert time.monotonic() < deadline
        sockets = conns(other)
        clients = [socket for socket in sockets if "listen_addr" in socket]
        ends = {f"tcp:127.0.0.1:{wire.socket.getsockname()[1]}" for wire in (sender, other)}
        assert {socket["addr"] for socket in clients} == ends
        assert {socket["listen_addr"] for socket in clients} == {f"tcp:127.0.0.1:{server.port}"}
        assert all(int(socket["secs_since_last_cmd"]) <= PATIENCE_S for socket in sockets)


def test_refused_values_are_counted(ours):
    with Server("-I", "1k") as server, server.wire() as wire:
        wire.exchange(b"set a 0 0 2000\r\n" + bytes(2000) + b"\r\n", b"SERVER_ERROR object too large for cache\r\n")
        assert server.stats()["store_too_large"] == "1"
    with Server("-M", "-m", 2, "-t", 1) as server, server.wire() as wire:
        refused = 0
        for n in range(1000):
            wire.send(store(bytes(8192), b"k%d" % n))
            refused += wire.line() != STORED
        assert 0 < refused < 1000
        assert server.stats()["store_no_memory"] == str(refused)
        stats, own = server.stats(), server.stats("glimmer")
        assert stats["total_items"] == str(1000 - refused)
        assert (own["mode"], own["evict"], own["stores_refused"]) == ("store", "none", str(refused))
        # Items that other commands make are refused in the same way, and counted once.
        for command, refusal in ((b"ma", b"SERVER_ERROR"), (b"mg", b"EN")):
            line = b"HD"
            for n in range(20000):
                wire.send(b"%s %s-%0200d N60 t\r\n" % (command, command, n))
                line = wire.line()
                if not line.startswith(b"HD"):
                    break
            assert line.startswith(refusal)
            refused += 1
            assert server.stats()["store_no_memory"] == str(refused)
            assert server.stats("glimmer")["stores_refused"] == str(refused)


def test_hot_keys_are_shown_by_their_bytes(server, ours):
    """A key that was sent in base64 is the same key as one that was not."""
    with server.wire() as wire:
        wire.exchange(b"ms Y2Fm6Q== 2 b\r\nxy\r\n", b"HD\r\n")
        for _ in range(40):
            wire.exchange(b"mg Y2Fm6Q== b v\r\n" * 100, b"VA 2\r\nxy\r\n" * 100)
    names = list(server.stats("hotkeys"))
    assert "caf%E9" in names
    assert "Y2Fm6Q==" not in names


def test_a_slow_request_is_kept_with_its_key_and_what_its_time_went_to():
    length = 16_000_000
    with Server("-t", 1, "-m", 256, "-I", "32m", "--slow-ms", 1) as server, server.wire() as wire:
        wire.exchange(store(b"x" * length, b"\x01large"), STORED)
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [it for it in server.stats("slow").values() if f"command=get bytes={length}" in it]):
            assert time.monotonic() < deadline
            wire.send(b"get \x01large\r\n")
            # The sockets' buffers hold less than the value, so that its reply ends after this.
            time.sleep(0.005)
            wire.receive(length + len(b"VALUE \x01large 0 %d\r\n\r\nEND\r\n" % length))
        fields = dict(field.split("=") for field in found[0].split(" "))
        assert fields["key"] == "%01large" and fields["worker"] == "0"
        parts = [int(fields[name]) for name in ("waiting_us", "elsewhere_us", "executing_us", "sending_us")]
        assert 1000 <= int(fields["total_us"]) and abs(sum(parts) - int(fields["total_us"])) <= len(parts)
        assert int(fields["sending_us"]) == max(parts)
        # Another threshold while the server runs.
        assert server.stats("slow", "1234")["threshold_ms"] == "1234"
        wire.exchange(b"stats slow 1.5\r\n", b"CLIENT_ERROR usage: stats slow [MILLISECONDS]\r\n")
        assert server.stats("slow")["threshold_ms"] == "1234"
        latency = server.stats("latency")
        assert int(latency["get:larger:timed"]) > 0


def test_the_documentation_has_every_name_of_a_subject():
    """Names of other subjects are compared with the tables from which the server makes them."""
    page = (Path(__file__).parents[2] / "docs/statistics.md").read_text()
    headings = {"memory": "Memory", "native": "The native protocol", "packets": "Packets", "accelerator": "The accelerator"}
    with Server("-t", 2, "-U", -1, "--native-port", -1, "--accelerate", "model") as server:
        for subject, heading in headings.items():
            section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
            documented = set(re.findall(r"`([a-z_]+)[^`]*`", section))
            # A name may be one of each worker: worker:0:requests.
            shown = {name.split(":")[2 if name.startswith("worker:") else 0] for name in server.stats(subject)}
            assert shown - documented == set(), subject
            assert shown, subject
