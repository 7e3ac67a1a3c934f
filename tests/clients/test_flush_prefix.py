"""`flush_prefix`, and `md` with the flag G: every item of a prefix is gone at once, for all clients."""

import random
import signal
import threading

import pytest
from harness import Server
from test_memory_file import TABLES, file, kill, refused  # noqa: F401
from test_udp import Udp, served_over_udp

GROUPED = ("--prefix-delimiter", ":")
OK = b"OK\r\n"
STORED = b"STORED\r\n"
ACCESS_MODES = ["erew", "crew", "crcw"]


def values(wire, *keys):
    """The keys' values, those that there are."""
    wire.send(b"get %s\r\n" % b" ".join(keys))
    found = {}
    while (line := wire.line()) != b"END\r\n":
        key, length = line.split()[1], int(line.split()[3])
        found[key] = wire.receive(length + 2)[:-2]
    return found


def test_replies(ours):
    with Server("-t", 2, *GROUPED) as server, server.wire() as wire, server.wire() as other:
        for key in (b"a:1", b"a:2", b"b:1", b"a", b":a", b"ab:1", b"b:a:1"):
            wire.exchange(b"set %s 0 0 1\r\nx\r\n" % key, STORED)
        wire.exchange(b"flush_prefix a\r\n", OK)
        keys = (b"a:1", b"a:2", b"b:1", b"a", b":a", b"ab:1", b"b:a:1")
        assert set(values(other, *keys)) == {b"b:1", b"a", b":a", b"ab:1", b"b:a:1"}
        # What is not there can be added, and neither replaced nor appended to.
        wire.exchange(b"replace a:1 0 0 1\r\ny\r\n", b"NOT_STORED\r\n")
        wire.exchange(b"append a:1 0 0 1\r\ny\r\n", b"NOT_STORED\r\n")
        wire.exchange(b"incr a:1 1\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"touch a:1 0\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"delete a:2\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"add a:1 255 0 1\r\ny\r\n", STORED)
        wire.exchange(b"append a:1 0 0 1\r\nz\r\n", STORED)
        other.exchange(b"get a:1\r\n", b"VALUE a:1 255 2\r\nyz\r\nEND\r\n")
        wire.exchange(b"md a G k Oid\r\n", b"HD ka Oid\r\n")
        wire.exchange(b"md Yg== G b q\r\nmn\r\n", b"MN\r\n")
        assert set(values(other, *keys)) == {b"a", b":a", b"ab:1"}
        wire.exchange(b"flush_prefix ab noreply\r\nget ab:1\r\n", b"END\r\n")
        # Whoever has the reply finds the flush counted, by another worker, too.
        for flushes in range(4, 104):
            assert server.stats("glimmer")["prefix_flushes"] == str(flushes)
            wire.exchange(b"flush_prefix ab\r\n", OK)


def test_what_prefixes_have(ours):
    """`stats prefix` counts items exactly, and requests by a sample."""
    with Server("-t", 3, *GROUPED) as server, server.wire() as wire:
        for n in range(20):
            wire.exchange(b"set a:%d 0 0 1\r\nx\r\n" % n, STORED)
        wire.exchange(b"set b:1 0 0 2000\r\n%s\r\nset none 0 0 1\r\nx\r\n" % (b"x" * 2000), STORED * 2)
        for _ in range(40):
            wire.send(b"get a:1 a:2 " + b"a:none " * 98 + b"\r\n")
            while wire.line() != b"END\r\n":
                pass

        def shown():
            wire.send(b"stats prefix\r\n")
            lines = []
            while (line := wire.line()) != b"END\r\n":
                words = line.decode().split()
                assert words[0] == "PREFIX" and words[2::2] == ["items", "bytes", "get", "hit", "set"]
                lines.append((words[1], *map(int, words[3::2])))
            return lines

        (b, b_items, b_bytes, *_), (a, a_items, a_bytes, gets, hits, _) = shown()
        assert (b, b_items, a, a_items) == ("b", 1, "a", 20)
        assert 2000 < b_bytes < 2200 and 20 * 16 <= a_bytes < 20 * 100
        # 4,000 reads are 16 of a sample on average. It is random, so that few bounds are safe.
        assert gets % 256 == 0 and 0 < gets < 16_000 and hits <= gets
        wire.exchange(b"flush_prefix a\r\nset a:new 0 0 1\r\nx\r\n", OK + STORED)
        assert [line[:2] for line in shown()] == [("b", 1), ("a", 1)]
    with Server("-t", 1, "-X", *GROUPED) as server, server.wire() as wire:
        wire.exchange(b"stats prefix\r\n", b"CLIENT_ERROR stats detail not allowed\r\n")


def test_what_is_refused(ours):
    length = b"CLIENT_ERROR a prefix has 1 to 249 bytes, without the delimiter\r\n"
    delimiter = b"CLIENT_ERROR a prefix ends before the first delimiter in a key\r\n"
    without = b"CLIENT_ERROR keys have no prefixes: the server was started without --prefix-delimiter\r\n"
    with Server("-t", 1, *GROUPED) as server, server.wire() as wire:
        wire.exchange(b"flush_prefix\r\n", b"CLIENT_ERROR bad command line format\r\n")
        wire.exchange(b"flush_prefix a b\r\n", b"CLIENT_ERROR bad command line format\r\n")
        wire.exchange(b"flush_prefix a:\r\n", delimiter)
        wire.exchange(b"flush_prefix a: noreply\r\nmn\r\n", b"MN\r\n")
        wire.exchange(b"md a:b G\r\n", delimiter)
        wire.exchange(b"flush_prefix %s\r\n" % (b"x" * 249), OK)
        for bytes_ in (250, 251, 1000):
            wire.exchange(b"flush_prefix %s\r\n" % (b"x" * bytes_), length)
        for flag in (b"I", b"C1", b"T0", b"x"):
            wire.exchange(b"md a G %s\r\n" % flag, b"CLIENT_ERROR invalid flag\r\n")
        wire.exchange(b"mg a G\r\n", b"CLIENT_ERROR invalid flag\r\n")
    with Server("-t", 1, "--disable-commands", "flush_prefix", *GROUPED) as server, server.wire() as wire:
        wire.exchange(b"flush_prefix a\r\n", b"CLIENT_ERROR flush_prefix not allowed\r\n")
        wire.exchange(b"md a G\r\n", b"CLIENT_ERROR flush_prefix not allowed\r\n")
    with Server("-t", 1) as server, server.wire() as wire:
        wire.exchange(b"flush_prefix a\r\nmd a G\r\nstats prefix\r\n", without * 3)


@pytest.mark.parametrize("access", ACCESS_MODES)
@pytest.mark.parametrize("table", TABLES)
def test_no_client_reads_an_older_value(ours, table, access):
    """Clients store numbers that rise. What is read after a flush was stored after it."""
    seed = random.getrandbits(32)
    print("seed", seed)
    keys = [b"%d:%d" % (n % 3, n) for n in range(30)]
    with Server("-t", 3, "--access", access, *TABLES[table], *GROUPED) as server:
        written = [0] * len(keys)
        is_done = threading.Event()

        def write(me):
            draws = random.Random(seed + me)
            with server.wire() as wire:
                version = 0
                while not is_done.is_set():
                    version += 1
                    n = draws.randrange(15) * 2 + me
                    wire.exchange(b"set %s 0 0 8\r\n%08d\r\n" % (keys[n], version), STORED)
                    written[n] = version

        writers = [threading.Thread(target=write, args=(me,)) for me in (0, 1)]
        for writer in writers:
            writer.start()
        with server.wire() as wire, server.wire() as reader:
            for turn in range(30):
                group = turn % 3
                before = list(written)
                wire.exchange((b"flush_prefix %d\r\n", b"md %d G\r\n")[turn % 2] % group, (OK, b"HD\r\n")[turn % 2])
                for key, value in values(reader, *keys[group::3]).items():
                    n = keys.index(key)
                    assert int(value) > before[n], f"{key} was stored before"
        is_done.set()
        for writer in writers:
            writer.join()
        with server.wire() as wire:
            found = values(wire, *keys)
            assert all(int(value) == written[keys.index(key)] for key, value in found.items())


def test_every_protocol(ours):
    with served_over_udp(GROUPED) as server, server.wire() as wire:
        wire.exchange(b"set a:1 0 0 1\r\nx\r\n", STORED)
        with server.wire() as resp, Udp(server.udp_port) as udp:
            assert udp.ask(b"get a:1\r\n").startswith(b"VALUE")
            resp.send(b"*2\r\n$3\r\nGET\r\n$3\r\na:1\r\n")
            resp.expect(b"$1\r\nx\r\n")
            wire.exchange(b"flush_prefix a\r\n", OK)
            resp.send(b"*2\r\n$3\r\nGET\r\n$3\r\na:1\r\n")
            resp.expect(b"$-1\r\n")
            assert udp.ask(b"get a:1\r\n") == b"END\r\n"
            assert udp.ask(b"flush_prefix a\r\n") == b"CLIENT_ERROR not available over UDP\r\n"
        with server.wire() as binary:
            head = b"\x80\x00" + (3).to_bytes(2) + bytes(4) + (3).to_bytes(4) + bytes(12)
            binary.send(head + b"a:1")
            assert binary.receive(24)[6:8] == b"\x00\x01", "not found"


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_across_a_warm_restart(file, table, is_killed):  # noqa: F811
    flags = ("-t", 2, *TABLES[table], "-e", file, *GROUPED)
    server = Server(*flags)
    with server.wire() as wire:
        for key in (b"a:old", b"a:both", b"b:1"):
            wire.exchange(b"set %s 0 0 1\r\nx\r\n" % key, STORED)
        wire.exchange(b"flush_prefix a\r\n", OK)
        wire.exchange(b"set a:both 255 0 1\r\ny\r\n", STORED)
    kill(server) if is_killed else server.__exit__(None, None, None)
    with Server(*flags) as server, server.wire() as wire:
        assert values(wire, b"a:old", b"a:both", b"b:1") == {b"a:both": b"y", b"b:1": b"x"}
        wire.exchange(b"get a:both\r\n", b"VALUE a:both 255 1\r\ny\r\nEND\r\n")
        wire.exchange(b"flush_prefix a\r\n", OK)
    assert "made with --prefix-delimiter :" in refused(*flags[:-2])
    with Server(*flags) as server, server.wire() as wire:
        assert values(wire, b"a:old", b"a:both", b"b:1") == {b"b:1": b"x"}


def test_a_snapshot_has_no_item_that_was_flushed(ours, tmp_path):
    flags = ("-t", 2, "--snapshot", tmp_path / "snapshot", *GROUPED)
    with Server(*flags) as server, server.wire() as wire:
        wire.exchange(b"set a:1 0 0 1\r\nx\r\nset b:1 0 0 1\r\nx\r\n", STORED * 2)
        wire.exchange(b"flush_prefix a\r\nset a:2 0 0 1\r\ny\r\n", OK + STORED)
        server.stop(signal.SIGTERM)
    with Server(*flags) as server, server.wire() as wire:
        assert values(wire, b"a:1", b"a:2", b"b:1") == {b"a:2": b"y", b"b:1": b"x"}


def test_the_accelerator_answers_with_nothing_that_was_flushed(ours):
    with (
        served_over_udp((*GROUPED, "--accelerate", "model")) as server,
        server.wire() as wire,
        Udp(server.udp_port) as udp,
    ):
        for turn in range(5):
            wire.exchange(b"set a:hot 0 0 1\r\n%d\r\n" % turn, STORED)
            for _ in range(100):
                assert udp.ask(b"get a:hot\r\n") == b"VALUE a:hot 0 1\r\n%d\r\nEND\r\n" % turn
            wire.exchange((b"flush_prefix a\r\n", b"md a G\r\n")[turn % 2], (OK, b"HD\r\n")[turn % 2])
            assert udp.ask(b"get a:hot\r\n") == b"END\r\n"
        assert int(server.stats("accelerator")["hits"]) > 0
