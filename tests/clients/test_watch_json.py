"""watch mutations json: each line is true, nothing is lost in silence, and a second server is kept warm by them."""

import json
import random
import time

import pytest
import replay
import resp
from conftest import MODES
from harness import Server

KEYS = [b"a", b"b", b"key:3", b"per%cent", b"quote\"\\", b"k" * 250]


class Watcher:
    def __init__(self, server):
        self.wire = server.wire()
        self.wire.send(b"watch mutations json\r\n")
        self.wire.expect(b"OK\r\n")

    def next(self):
        return json.loads(self.wire.line())

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.wire.close()


def expect(line, **members):
    """The members are those of the line, but for its stamp and its client."""
    stamp = {name: line.pop(name) for name in ("ts", "gid", "cfd")}
    assert stamp["ts"] > 1_700_000_000 and stamp["gid"] > 0, stamp
    unique = line.pop("cas", None)
    assert line == members
    return unique


def stored(size, flags=0, ttl_ms=None):
    return {"status": "stored", "size": size, "flags": flags, "ttl_ms": ttl_ms}


@pytest.mark.parametrize("mode", MODES)
def test_what_lines_say(ours, mode):
    with Server(*MODES[mode]) as server, server.wire() as wire, server.wire() as other, Watcher(server) as watcher:
        wire.exchange(b"set a 7 0 5\r\nhello\r\n", b"STORED\r\n")
        first = expect(watcher.next(), type="store", key="a", cmd="set", **stored(5, 7))
        wire.exchange(b"append a 0 0 1\r\n!\r\n", b"STORED\r\n")
        second = expect(watcher.next(), type="store", key="a", cmd="append", **stored(6, 7))
        assert second != first
        wire.exchange(b"mg a c\r\n", b"HD c%d\r\n" % second)
        wire.exchange(b"add a 0 0 1\r\nx\r\n", b"NOT_STORED\r\n")
        expect(watcher.next(), type="store", key="a", cmd="add", status="not_stored")
        wire.exchange(b"cas a 0 0 1 1%d\r\nx\r\n" % second, b"EXISTS\r\n")
        expect(watcher.next(), type="store", key="a", cmd="cas", status="exists")
        wire.exchange(b"mg a T1000000 m\r\n", b"HD\r\n")
        line = watcher.next()
        assert 0 < line["ttl_ms"] <= 1_000_000
        assert expect(line, type="touch", key="a", cmd="mg", **{**stored(6, 7, line["ttl_ms"]), "status": "touched"}) == second
        # Neither of them changes anything.
        wire.exchange(b"get a\r\n", b"VALUE a 7 6\r\nhello!\r\nEND\r\n")
        wire.exchange(b"touch none 5\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"delete none\r\n", b"NOT_FOUND\r\n")
        wire.exchange(b"touch a 0\r\n", b"TOUCHED\r\n")
        expect(watcher.next(), type="touch", key="a", cmd="touch", **{**stored(6, 7), "status": "touched"})
        wire.exchange(b"delete a\r\n", b"DELETED\r\n")
        expect(watcher.next(), type="delete", key="a", cmd="delete", status="deleted")
        wire.exchange(b"ma n N0 J41\r\nma n\r\nincr n 1\r\n", b"HD\r\nHD\r\n43\r\n")
        for command in ("ma", "ma", "incr"):
            expect(watcher.next(), type="store", key="n", cmd=command, **stored(2))
        wire.exchange(b"md n I\r\n", b"HD\r\n")
        expect(watcher.next(), type="store", key="n", cmd="md", **stored(2))
        wire.exchange(b"ms AP8K 1 b\r\nx\r\n", b"HD\r\n")
        expect(watcher.next(), type="store", key="%00%FF%0A", cmd="set", **stored(1))
        assert resp.say(other, "SET", 'quo"te', "xy", "PX", "1", "XX") == b"$-1\r\n"
        expect(watcher.next(), type="store", key="quo%22te", cmd="replace", status="not_stored")
        assert resp.say(other, "SET", 'quo"te', "xy") == b"+OK\r\n"
        expect(watcher.next(), type="store", key="quo%22te", cmd="set", **stored(2))
        assert resp.say(other, "GETDEL", 'quo"te') == b"$2\r\nxy\r\n"
        expect(watcher.next(), type="delete", key="quo%22te", cmd="delete", status="deleted")


def change(rng, key):
    """A random request, and how many lines it is answered with."""
    word, flag = replay.named(key)
    value = b"%d" % rng.randrange(10**9)
    lifetime = rng.choice([b"", b" T%d m" % rng.randrange(10**7, 10**9), b" T%d" % rng.randrange(10**4, 10**6)])
    mode = rng.choice([b"S", b"S", b"E", b"R", b"A", b"P"])
    tail = lifetime + flag
    return rng.choice(
        [
            b"ms %s %d F%d M%s%s\r\n%s\r\n" % (word, len(value), rng.randrange(1 << 32), mode, tail, value),
            b"ms %s %d F%d%s\r\n%s\r\n" % (word, len(value), rng.randrange(300), tail, value),
            b"mg %s T%d m%s\r\n" % (word, rng.randrange(10**7, 10**9), flag),
            b"ma %s N0 J5%s\r\n" % (word, tail),
            b"ma %s D%d%s\r\n" % (word, rng.randrange(99), tail),
            b"md %s%s\r\n" % (word, flag),
            b"mg %s N0 %s\r\n" % (word, flag),
        ]
    )


def state(wire, key):
    """Value, flags and lifetime of an item."""
    word, flag = replay.named(key)
    wire.send(b"mg %s v f t m%s\r\n" % (word, flag))
    words = wire.line().split()
    if words[0] == b"EN":
        return None
    value = wire.receive(int(words[1]) + 2)
    found = {word[:1]: int(word[1:]) for word in words[2:] if word[:1] in (b"f", b"t")}
    return value, found[b"f"], found[b"t"]


@pytest.mark.parametrize("mode", MODES)
def test_a_second_server_is_kept_warm(ours, mode):
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    keys = [*KEYS, b"\0\xff\n", b"with space"]
    with Server(*MODES[mode]) as server, Server("-t", 1) as second, Watcher(server) as watcher:
        with server.wire() as wire, second.wire() as other, server.wire() as third:
            requests = b"".join(change(rng, rng.choice(keys)) for _ in range(400))
            wire.send(requests + b"set the-end 0 0 1\r\nx\r\n")
            source, target = (replay.Server(*it.address) for it in (server, second))
            lines = []
            while not lines or json.loads(lines[-1]).get("key") != "the-end":
                lines.append(watcher.wire.line())
            # Twice, as what is passed on is what is there.
            for _ in range(2):
                assert replay.follow(lines, source, target) == 0
            seen = 0
            for key in keys:
                old, new = state(third, key), state(other, key)
                assert (old is None) == (new is None), key
                if old is not None:
                    seen += 1
                    assert old[:2] == new[:2], key
                    assert (old[2] == -1) == (new[2] == -1) and abs(old[2] - new[2]) < 600_000, (key, old, new)
            assert seen > 0 and len(lines) > 200
            for connection in (source, target):
                connection.socket.close()


def test_losses_are_told_in_json(ours):
    with Server("-t", 2) as server, Watcher(server) as watcher, server.wire() as wire:
        stores = 60_000
        for _ in range(stores // 1000):
            wire.exchange(b"set key 0 0 1\r\nx\r\n" * 1000, b"STORED\r\n" * 1000)
        told = shown = 0
        while told + shown < stores:
            line = watcher.next()
            if line["type"] == "lost":
                told += line["lines"]
            else:
                shown += 1
        assert told + shown == stores and told > 0 and shown > 0, (told, shown)
        wire.exchange(b"set last 0 0 1\r\nx\r\n", b"STORED\r\n")
        expect(watcher.next(), type="store", key="last", cmd="set", **stored(1))


def test_what_is_given_on_and_what_is_not(ours):
    """A lifetime of more than thirty days is a time for a meta command. What cannot be given is said."""
    with Server("-t", 1) as server, Server("-t", 1) as second:
        source, target = (replay.Server(*it.address) for it in (server, second))
        end = int(time.time()) + 60 * 24 * 3600
        assert source.ask(b"ms far 1 T%d\r\nx\r\n" % end) == "HD"
        assert replay.give(source, target, b"far") is None
        assert int(target.ask(b"mg far t\r\n").split()[1][1:]) > 59 * 24 * 3600
        assert source.ask(b"md far I T100\r\n") == "HD"
        assert replay.give(source, target, b"far") == "it is out of date"
        assert replay.give(source, target, b"\xff" * 187) == "the key is too long for base64"
        assert replay.give(source, target, b"none") is None
