"""RESP: what Redis clients send, compared with a real Redis reply by reply where there is one."""

import http.client
import os
import random
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis as redis_py
import resp
from harness import PATIENCE_S, Server, in_a_moment
from resp import say
from test_auth import users  # noqa: F401, a fixture

pytestmark = pytest.mark.usefixtures("ours")

LONG_KEY = "k" * 250

# Conversations, each with an empty server. Both servers have to say the same bytes.
CONVERSATIONS = {
    "strings": [
        ("GET", "a"), ("SET", "a", "1"), ("GET", "a"), ("get", "a"), ("SET", "a", ""), ("GET", "a"), ("STRLEN", "a"),
        ("SET", "a", b"\0\r\n\xff" * 9), ("GET", "a"), ("STRLEN", "a"), ("STRLEN", "none"), ("TYPE", "a"), ("TYPE", "none"),
        ("GETSET", "a", "2"), ("GETSET", "b", "3"), ("GET", "b"), ("SETNX", "a", "x"), ("SETNX", "c", "x"), ("GET", "c"),
        ("SET", LONG_KEY, "long"), ("GET", LONG_KEY), ("SET", "with space", "v"), ("GET", "with space"),
    ],
    "conditions": [
        ("SET", "a", "1", "XX"), ("SET", "a", "1", "NX"), ("SET", "a", "2", "NX"), ("GET", "a"), ("SET", "a", "3", "xx"), ("GET", "a"),
        ("SET", "a", "4", "GET"), ("SET", "n", "4", "GET"), ("SET", "a", "5", "NX", "GET"), ("GET", "a"), ("SET", "m", "5", "XX", "GET"),
        ("EXISTS", "m"), ("SET", "a", "1", "NX", "XX"), ("SET", "a", "1", "XX", "NX"), ("SET", "a", "1", "GARBAGE"), ("SET", "a", "1", "NX", "NX"),
        ("SET", "p", "1", "NX", "GET"), ("GET", "p"),
    ],
    "lifetimes": [
        ("TTL", "a"), ("PTTL", "a"), ("SET", "a", "1"), ("TTL", "a"), ("PTTL", "a"), ("EXPIRE", "a", "100"), ("TTL", "a"),
        ("PERSIST", "a"), ("PERSIST", "a"), ("PERSIST", "none"), ("TTL", "a"), ("EXPIRE", "none", "100"), ("PEXPIRE", "a", "100000"), ("TTL", "a"),
        ("SET", "a", "2"), ("TTL", "a"), ("SET", "a", "3", "EX", "50"), ("TTL", "a"), ("SET", "a", "4", "KEEPTTL"), ("TTL", "a"), ("GET", "a"),
        ("SET", "a", "5", "PX", "70000"), ("TTL", "a"), ("INCR", "a"), ("TTL", "a"), ("GETSET", "a", "1"), ("TTL", "a"),
        ("EXPIRE", "a", "0"), ("GET", "a"), ("SET", "a", "1"), ("EXPIRE", "a", "-5"), ("EXISTS", "a"), ("SETEX", "a", "30", "v"), ("TTL", "a"),
        ("PSETEX", "a", "40000", "w"), ("TTL", "a"), ("GET", "a"), ("EXPIREAT", "a", "1"), ("GET", "a"), ("SET", "a", "1", "EXAT", "1"), ("GET", "a"),
        ("SET", "a", "1", "PXAT", "99999999999"), ("EXISTS", "a"), ("SET", "b", "1"), ("PEXPIREAT", "b", "1000"), ("EXISTS", "b"),
    ],
    "bad lifetimes": [
        ("SET", "a", "1", "EX", "0"), ("SET", "a", "1", "EX", "-1"), ("SET", "a", "1", "PX", "0"), ("SET", "a", "1", "EX", "x"), ("SET", "a", "1", "EX"),
        ("SET", "a", "1", "EX", "1", "PX", "1"), ("SET", "a", "1", "EX", "1", "KEEPTTL"), ("SET", "a", "1", "KEEPTTL", "EX", "1"),
        ("SET", "a", "1", "EX", "9223372036854775807"), ("SETEX", "a", "0", "1"), ("PSETEX", "a", "-1", "1"), ("SETEX", "a", "x", "1"),
        ("EXPIRE", "a", "x"), ("EXPIRE", "a", "9223372036854775807"), ("PEXPIRE", "a", "9223372036854775807"), ("GET", "a"),
    ],
    "numbers": [
        ("INCR", "n"), ("INCR", "n"), ("DECR", "n"), ("GET", "n"), ("INCRBY", "n", "10"), ("DECRBY", "n", "21"), ("GET", "n"), ("INCRBY", "n", "-4"),
        ("SET", "n", "9223372036854775806"), ("INCR", "n"), ("INCR", "n"), ("GET", "n"), ("SET", "n", "-9223372036854775808"), ("DECR", "n"),
        ("INCRBY", "n", "-1"), ("DECRBY", "n", "-9223372036854775808"), ("INCRBY", "n", "x"), ("INCRBY", "n", "1.5"), ("INCRBY", "n", "01"),
        ("SET", "n", "x"), ("INCR", "n"), ("SET", "n", " 1"), ("INCR", "n"), ("SET", "n", "1 "), ("INCR", "n"), ("SET", "n", ""), ("INCR", "n"),
        ("SET", "n", "01"), ("INCR", "n"), ("SET", "n", "-0"), ("INCR", "n"), ("SET", "n", "9" * 40), ("INCR", "n"), ("DECRBY", "fresh", "3"),
    ],
    "several keys": [
        ("MSET", "a", "1", "b", "2", "c", "3"), ("MGET", "a", "none", "c"), ("MGET", "none"), ("EXISTS", "a", "b", "none", "a"), ("EXISTS", "none"),
        ("DEL", "a", "none", "b"), ("DEL", "a"), ("DEL", "c"), ("DEL", "x", "y"), ("MGET", "a", "b", "c"), ("MSET", "a"), ("MSET", "a", "1", "b"),
        ("MSET", "a", "1", "a", "2"), ("GET", "a"), ("UNLINK", "a", "b"), ("UNLINK", "a"), ("MSET", *[f"k{i // 2}" for i in range(400)]),
        ("MGET", *[f"k{i}" for i in range(200)]), ("EXISTS", *[f"k{i}" for i in range(300)]), ("DEL", *[f"k{i}" for i in range(300)]),
    ],
    "parts of values": [
        ("APPEND", "a", "one"), ("APPEND", "a", ""), ("APPEND", "a", "two"), ("GET", "a"), ("GETRANGE", "a", "0", "-1"), ("GETRANGE", "a", "-2", "99"),
        ("GETRANGE", "a", "3", "1"), ("GETRANGE", "a", "-99", "-99"), ("GETRANGE", "a", "9", "10"), ("GETRANGE", "none", "0", "1"), ("SUBSTR", "a", "1", "2"),
        ("GETRANGE", "a", "x", "1"), ("GETRANGE", "a", "-9223372036854775808", "9223372036854775807"), ("SETRANGE", "a", "1", "XX"), ("GET", "a"),
        ("SETRANGE", "a", "9", "end"), ("GET", "a"), ("SETRANGE", "a", "-1", "x"), ("SETRANGE", "none", "5", ""), ("EXISTS", "none"),
        ("SETRANGE", "new", "2", "ab"), ("GET", "new"), ("SETRANGE", "new", "x", "ab"), ("GETDEL", "a"), ("GETDEL", "a"), ("GET", "a"), ("EXPIRE", "new", "100"),
        ("APPEND", "new", "more"), ("TTL", "new"), ("SETRANGE", "new", "0", "more"), ("TTL", "new"), ("TOUCH", "new", "none"), ("APPEND", "a"),
        ("SET", "a", "hello"), ("GETRANGE", "a", "-1", "-5"), ("GETRANGE", "a", "-5", "-9"), ("SUBSTR", "a", "-8", "-9"), ("GETRANGE", "a", "-9", "-5"),
        ("GETRANGE", "a", "-9223372036854775807", "-9223372036854775808"), ("GETRANGE", "a", "-2", "0"), ("GETRANGE", "a", "0", "-9"), ("GETRANGE", "a", "3", "-9"),
    ],
    "conditional lifetimes": [
        ("EXPIRE", "a", "10", "NX"), ("SET", "a", "1"), ("EXPIRE", "a", "10", "XX"), ("EXPIRE", "a", "10", "GT"), ("EXPIRE", "a", "10", "XX", "LT"), ("TTL", "a"),
        ("EXPIRE", "a", "10", "LT"), ("TTL", "a"), ("EXPIRE", "a", "20", "NX"), ("EXPIRE", "a", "20", "LT"), ("EXPIRE", "a", "20", "GT"), ("EXPIRE", "a", "15", "XX", "GT"),
        ("TTL", "a"), ("EXPIRE", "a", "1", "NX", "GT"), ("EXPIRE", "a", "1", "NX", "XX"), ("EXPIRE", "a", "1", "GT", "LT"), ("EXPIRE", "a", "1", "NOPE"),
        ("PEXPIREAT", "a", "2500000000000", "GT"), ("EXPIRETIME", "none"), ("PERSIST", "a"), ("EXPIRETIME", "a"), ("PEXPIRETIME", "a"),
        ("EXPIREAT", "a", "2500000000"), ("EXPIRETIME", "a"), ("PEXPIRETIME", "a"), ("GETEX", "a", "PXAT", "2000000000499"), ("PEXPIRETIME", "a"), ("EXPIRETIME", "a"),
        ("SET", "a", "1", "PXAT", "2000000000001"), ("PEXPIRETIME", "a"), ("EXPIRETIME", "a"), ("PEXPIREAT", "a", "2000000000001", "GT"),
        ("PEXPIREAT", "a", "2000000000002", "GT"), ("PEXPIREAT", "a", "2000000000003", "LT"), ("PEXPIRETIME", "a"), ("SET", "a", "2", "KEEPTTL"),
        ("PEXPIREAT", "a", "2000000000001", "XX", "LT"), ("PEXPIREAT", "a", "2000000000005", "NX"), ("APPEND", "a", "3"), ("INCR", "a"), ("PEXPIRETIME", "a"),
        ("GETEX", "a"), ("GETEX", "a", "PERSIST"), ("TTL", "a"), ("GETEX", "a", "EX", "100"), ("TTL", "a"), ("GETEX", "a", "EX", "0"), ("GETEX", "a", "NOPE"),
        ("GETEX", "a", "EX"), ("GETEX", "none", "EX", "5"), ("EXPIRE", "a", "-1", "LT"), ("GET", "a"), ("SET", "a", "1", "EX", "100"), ("GETEX", "a", "PERSIST", "EX", "5"),
        ("GETEX", "a", "EX", "5", "PERSIST"), ("TTL", "a"), ("GETEX", "a", "PERSIST", "persist"), ("TTL", "a"), ("GETEX", "a", "PERSIST", "NOPE"),
    ],
    "fractions": [
        ("INCRBYFLOAT", "n", "10.50"), ("INCRBYFLOAT", "n", "0.1"), ("INCRBYFLOAT", "n", "-5"), ("INCRBYFLOAT", "n", "1.0e1"), ("GET", "n"), ("INCRBYFLOAT", "n", "-2.5e-2"),
        ("INCRBYFLOAT", "n", "x"), ("INCRBYFLOAT", "n", ""), ("SET", "n", "x"), ("INCRBYFLOAT", "n", "1"), ("SET", "n", "3"), ("EXPIRE", "n", "100"),
        ("INCRBYFLOAT", "n", "0.2"), ("TTL", "n"), ("INCRBYFLOAT", "n", "-3.2"),
    ],
    "about keys": [
        ("SET", "a", "12"), ("OBJECT", "ENCODING", "a"), ("SET", "a", "text"), ("OBJECT", "ENCODING", "a"), ("SET", "a", "x" * 44), ("OBJECT", "ENCODING", "a"),
        ("SET", "a", "x" * 45), ("OBJECT", "ENCODING", "a"), ("OBJECT", "REFCOUNT", "a"), ("OBJECT", "ENCODING", "none"), ("MEMORY", "USAGE", "none"), ("DBSIZE",),
        ("OBJECT", "NOPE", "a"), ("OBJECT", "ENCODING"), ("MEMORY", "USAGE"), ("LATENCY", "LATEST"), ("LATENCY", "NOPE"), ("CONFIG", "GET", "save"), ("CONFIG", "GET", "appendonly"),
        ("MEMORY", "USAGE", "none", "FOO", "BAR"), ("MEMORY", "USAGE", "none", "SAMPLES"), ("MEMORY", "USAGE", "none", "SAMPLES", "x"), ("MEMORY", "USAGE", "none", "samples", "-1"),
        ("MEMORY", "USAGE", "none", "SAMPLES", "0"), ("OBJECT", "FREQ"), ("SLOWLOG", "LEN", "x"), ("SLOWLOG", "RESET", "x"), ("LATENCY", "LATEST", "x"), ("LATENCY", "RESET"),
        ("LATENCY", "LEN"), ("SLOWLOG", "LATEST"), ("SCRIPT", "EXISTS"), ("SCRIPT", "LOAD"), ("SCRIPT", "FLUSH", "A"), ("SCRIPT", "FLUSH", "SYNC", "B"), ("SCRIPT", "FLUSH", "async"),
    ],
    "keys that change": [
        ("COPY", "a", "b"), ("SET", "a", "1"), ("COPY", "a", "b"), ("GET", "b"), ("SET", "a", "2"), ("COPY", "a", "b"), ("GET", "b"), ("COPY", "a", "b", "replace"), ("GET", "b"),
        ("COPY", "a", "a"), ("COPY", "none", "none"), ("COPY", "a", "b", "DB", "0"), ("COPY", "a", "c", "DB", "0", "REPLACE"), ("COPY", "a", "d", "DB", "x"), ("COPY", "a", "d", "DB"),
        ("COPY", "a", "d", "DB", "99"), ("COPY", "a", "d", "NOPE"), ("COPY", "a"), ("COPY", "a", "d", "REPLACE", "REPLACE"), ("GET", "d"), ("EXPIRE", "a", "100"), ("COPY", "a", "e"), ("TTL", "e"),
        ("PEXPIREAT", "a", "2000000000499"), ("COPY", "a", "e", "REPLACE"), ("PEXPIRETIME", "e"), ("RENAME", "a", "f"), ("PEXPIRETIME", "f"), ("EXISTS", "a"), ("GET", "f"), ("RENAME", "a", "f"),
        ("RENAME", "f", "f"), ("RENAMENX", "f", "f"), ("GET", "f"), ("RENAME", "none", "none"), ("RENAMENX", "none", "none"), ("RENAMENX", "none", "f"), ("RENAMENX", "f", "b"), ("GET", "b"), ("GET", "f"),
        ("RENAMENX", "f", "g"), ("GET", "g"), ("EXISTS", "f"), ("RENAME", "g", "b"), ("GET", "b"), ("TTL", "g"), ("RENAME", "a"), ("RENAMENX", "a"), ("RENAME", "a", "b", "c"), ("RANDOMKEY", "x"),
        ("SET", "large", "v" * 100_000), ("EXPIRE", "large", "100"), ("RENAME", "large", "b"), ("STRLEN", "b"), ("GET", "b"), ("TTL", "b"), ("COPY", "b", "large"), ("GET", "large"), ("PERSIST", "large"),
        ("SET", "empty", ""), ("RENAME", "empty", "large"), ("GET", "large"), ("TTL", "large"), ("MULTI",), ("RENAME", "large", "h"), ("COPY", "h", "i"), ("MGET", "h", "i", "large"), ("EXEC",), ("DBSIZE",),
        ("FLUSHALL",), ("RANDOMKEY",), ("SET", "only", "1"), ("RANDOMKEY",),
    ],
    "transactions": [
        ("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("MGET", "a", "b"), ("GET", "a"), ("EXEC",), ("GET", "a"), ("MULTI",), ("EXEC",), ("EXEC",), ("DISCARD",),
        ("MULTI",), ("SET", "a", "x"), ("DISCARD",), ("GET", "a"), ("MULTI",), ("SET", "a", "y"), ("NOPE",), ("SET", "a", "z"), ("EXEC",), ("GET", "a"),
        ("MULTI",), ("GET",), ("DISCARD",), ("MULTI",), ("SET", "a", "x"), ("INCR", "a"), ("SET", "b", "1", "NOPE"), ("DEL", "a", "b"), ("PING",), ("EXEC",),
        ("MULTI",), ("MSET", *[f"k{i // 2}" for i in range(400)]), ("MGET", *[f"k{i}" for i in range(200)]), ("DEL", *[f"k{i}" for i in range(300)]), ("EXEC",),
        ("UNWATCH",), ("MULTI",), ("UNWATCH",), ("SETEX", "a", "100", "v" * 20000), ("TTL", "a"), ("GETDEL", "a"), ("ECHO", "x"), ("EXEC",), ("MULTI", "x"), ("WATCH",),
        ("MULTI",), ("MULTI",), ("SET", "a", "1"), ("MULTI",), ("WATCH", "a", "b"), ("SET", "b", "2"), ("WATCH", "a"), ("EXEC",), ("MGET", "a", "b"),
        ("MULTI",), ("SET", "a", "v" * 20000), ("MULTI",), ("WATCH", "a"), ("STRLEN", "a"), ("EXEC",), ("MULTI",), ("GET", "b"), ("MULTI",), ("DISCARD",), ("EXEC",),
        ("MULTI",), ("GET", "b"), ("WATCH",), ("EXEC",), ("MULTI",), ("GET", "b"), ("MULTI", "x"), ("EXEC",), ("MULTI",), ("NOPE",), ("MULTI",), ("GET", "b"), ("EXEC",),
        ("MULTI",), ("SET", "a", "1"), ("EXEC", "x"), ("GET", "a"), ("MULTI",), ("SET", "a", "v" * 20000), ("EXEC", "x"), ("GET", "b"), ("EXEC",),
        ("MULTI",), ("SET", "a", "3"), ("CLIENT", "ID", "x"), ("OBJECT", "ENCODING"), ("CLIENT", "NOPE"), ("EXEC",), ("GET", "a"), ("MULTI",), ("OBJECT", "ENCODING", "b"), ("EXEC",),
        ("MULTI",), ("SET", "a", "v" * 20000), ("CONFIG", "GET"), ("EXEC",), ("MULTI",), ("SET", "a", "v" * 20000), ("OBJECT", "ENCODING", "a"), ("SLOWLOG", "LEN", "x"), ("EXEC",), ("GET", "a"),
        ("MULTI",), ("PING", "a", "b"), ("SET", "a", "5"), ("EXEC",), ("GET", "a"), ("MULTI",), ("SET", "a", "v" * 20000), ("PING", "a", "b"), ("EXEC",),
        ("MULTI",), ("COMMAND", "COUNT", "x"), ("EXEC",), ("MULTI",), ("OBJECT", "HELP"), ("CLIENT", "help"), ("DISCARD",), ("MULTI",), ("OBJECT", "NOPE"), ("EXEC",),
    ],
    "connection": [
        ("PING",), ("PING", "hello"), ("PING", "a", "b"), ("ECHO", "text"), ("ECHO",), ("SELECT", "0"), ("SELECT", "x"),
        ("CLIENT", "SETNAME", "me"), ("CLIENT", "NOPE"), ("AUTH", "password"), ("AUTH", "default", "password"), ("AUTH", "no", "password"),
        ("AUTH", "a", "b", "c"), ("HELLO", "9"), ("HELLO", "x"), ("HELLO", "3", "AUTH", "a"), ("HELLO", "2", "NOPE"), ("CLIENT",), ("COMMAND", "NOPE"),
        ("CLIENT", "GETNAME", "x"), ("CLIENT", "ID", "x"), ("CLIENT", "NO-EVICT"), ("CLIENT", "SETNAME"), ("CLIENT", "TRACKING"), ("CLIENT", "CACHING"), ("CLIENT", "LIST", "x"),
    ],
    "errors": [
        ("NOPE",), ("NOPE", "a", "b"), ("NOPE", "x" * 200, "y"), ("NOPE", "with\r\nline"), ("GET",), ("GET", "a", "b"), ("SET", "a"), ("DEL",), ("MGET",),
        ("INCR",), ("INCRBY", "a"), ("EXPIRE", "a"), ("TTL",), ("STRLEN",), ("SETEX", "a", "1"), ("SETNX", "a"), ("GETSET", "a"), ("EXISTS",), ("MSET",),
        ("PERSIST", "a", "b"), ("TYPE",),
    ],
}


@pytest.fixture(scope="module")
def redis():
    with resp.Redis() as redis:
        yield redis


@pytest.fixture(params=[2, 3])
def version(request):
    return request.param


def wires(server, redis, version):
    """A connection to each, both servers empty, both in this version of RESP."""
    ours, theirs = server.wire(), redis.wire()
    for wire in (ours, theirs):
        assert say(wire, "FLUSHALL") == b"+OK\r\n"
        assert say(wire, "HELLO", version)[:1] in (b"*", b"%")
    return ours, theirs


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_replies_are_those_of_redis(server, redis, version, name):
    def run():
        ours, theirs = wires(server, redis, version)
        with ours, theirs:
            for arguments in CONVERSATIONS[name]:
                assert say(ours, *arguments) == say(theirs, *arguments), arguments

    in_a_moment(run)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_pipelined_commands_are_answered_in_order(server, redis, version, name):
    """The whole conversation at once, so that parts of several commands are under way together."""

    def run():
        ours, theirs = wires(server, redis, version)
        with ours, theirs:
            for wire in (ours, theirs):
                wire.send(b"".join(resp.command(*arguments) for arguments in CONVERSATIONS[name]))
            for arguments in CONVERSATIONS[name]:
                assert resp.reply(ours) == resp.reply(theirs), arguments

    in_a_moment(run)


def random_command(rng):
    keys = [f"key{i}" for i in range(12)]
    key = rng.choice(keys)
    number = rng.choice(["1", "-1", "7", "x", "", "9223372036854775807", "-9223372036854775808", str(rng.randrange(-1000, 1000))])
    value = rng.choice([number, number, "text", b"\0\n\r", "v" * rng.randrange(3000)])
    several = [rng.choice(keys) for _ in range(rng.randrange(1, 20))]
    options = rng.sample(["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "1000", "100000", "0", "nope"], rng.randrange(4))
    return rng.choice(
        [
            ("GET", key), ("GET", key), ("SET", key, value), ("SET", key, value, *options), ("DEL", *several), ("EXISTS", *several), ("MGET", *several),
            ("MSET", *[word for key in several for word in (key, value)]), ("INCR", key), ("DECR", key), ("INCRBY", key, number),
            ("DECRBY", key, number), ("TTL", key), ("EXPIRE", key, rng.choice(["1000", "0", "-1", number])), ("PERSIST", key), ("STRLEN", key),
            ("SETNX", key, value), ("GETSET", key, value), ("SETEX", key, rng.choice(["1000", "0", number]), value), ("TYPE", key), ("PING",), ("NOPE", key),
            ("GET",), ("UNLINK", key), ("APPEND", key, number), ("GETDEL", key), ("GETRANGE", key, number, "5"), ("SETRANGE", key, rng.choice(["0", "3", "-1", "x"]), value),
            ("GETEX", key), ("GETEX", key, "EX", "1000"), ("EXPIRE", key, "2000", rng.choice(["NX", "XX"])),
            ("INCRBYFLOAT", f"fraction{rng.randrange(3)}", rng.choice(["1.5", "-0.25", "3e1", "x"])), ("TOUCH", *several), ("DBSIZE",),
            ("RENAME", key, rng.choice(keys)), ("RENAMENX", key, rng.choice(keys)), ("COPY", key, rng.choice(keys), *rng.sample(["REPLACE"], rng.randrange(2))),
        ]
    )


def test_a_transaction_of_many_commands(server, redis):
    """In one write, and command by command."""
    ours, theirs = wires(server, redis, 2)
    with ours, theirs:
        commands = [("MULTI",), *[("SET", f"k{i}", "v" * (i % 300)) for i in range(2000)], *[("GET", f"k{i}") for i in range(0, 2000, 7)], ("DBSIZE",), ("EXEC",)]
        for wire in (ours, theirs):
            wire.send(b"".join(resp.command(*arguments) for arguments in commands))
        for arguments in commands:
            assert resp.reply(ours) == resp.reply(theirs), arguments
        for arguments in [("MULTI",), *[("APPEND", "log", str(i)) for i in range(200)], ("GET", "log"), ("EXEC",), ("GET", "log")]:
            assert say(ours, *arguments) == say(theirs, *arguments), arguments


def test_a_transaction_without_memory_is_given_up():
    with Server("-m", 64, "-t", 1) as server, server.wire() as wire:
        commands = [("MULTI",), *[("SET", f"k{i}", "v" * 10_000) for i in range(2_000)], ("EXEC",), ("DBSIZE",)]
        wire.send(b"".join(resp.command(*arguments) for arguments in commands))
        said = [resp.reply(wire) for _ in commands]
        assert said[0] == b"+OK\r\n" and said[-2].startswith(b"-EXECABORT") and said[-1] == b":0\r\n"
        assert all(it == b"+QUEUED\r\n" or it.startswith(b"-OOM") for it in said[1:-2])


def test_long_transactions_at_once():
    """Of redis-py, each of 4 MB: many small values, and some large ones. Others come and go in the midst of one."""
    with Server("-m", 1024, "-t", 4) as server:

        def run(n):
            client = redis_py.Redis("127.0.0.1", server.port, protocol=2 + n % 2)
            values = {f"{n}-{i}": bytes([97 + n]) * size for i, size in enumerate([600] * 3_000 + [20_000] * 30 + [500_000] * 3)}
            with client.pipeline() as pipeline:
                for key, value in values.items():
                    pipeline.set(key, value)
                    pipeline.strlen(key)
                assert pipeline.execute() == [it for value in values.values() for it in (True, len(value))]
            with client.pipeline() as pipeline:
                pipeline.mget(list(values))
                assert pipeline.execute() == [list(values.values())]

        def leave(n):
            for i in range(20):
                with server.wire() as wire:
                    wire.send(resp.command("MULTI") + resp.command("SET", "lost", "v" * 200_000)[: 1 + n * i * 10_000])
                    assert resp.reply(wire) == b"+OK\r\n"

        with ThreadPoolExecutor(12) as pool:
            for done in [*pool.map(run, range(8)), *pool.map(leave, range(4))]:
                assert done is None
        with server.wire() as wire:
            assert say(wire, "EXISTS", "lost") == b":0\r\n"
        deadline = time.monotonic() + PATIENCE_S
        while server.stats("glimmer")["uploads"] != "0":
            assert time.monotonic() < deadline, "what was given up is kept"


def test_a_command_of_many_arguments(server, redis):
    ours, theirs = wires(server, redis, 2)
    keys = [f"key-number-{i:017}" for i in range(6_000)]
    with ours, theirs:
        for arguments in (("MSET", *[word for key in keys[:2_000] for word in (key, "v")]), ("EXISTS", *keys), ("MGET", *keys), ("DEL", *keys), ("DBSIZE",)):
            assert say(ours, *arguments) == say(theirs, *arguments), arguments[0]
        # A key that is too long for an item has none.
        assert say(ours, "EXISTS", *keys, "k" * 70_000) == b":0\r\n"
        assert say(ours, "MSET", *[word for key in keys for word in (key, "v")], "k" * 251, "v") == b"-ERR keys have 1 to 250 bytes\r\n"
        assert say(ours, "DBSIZE") == b":6000\r\n"


def test_random_commands_are_answered_as_by_redis(server, redis, version):
    seed = int(os.environ.get("GLIMMER_SEED", random.randrange(1 << 32)))
    print(f"GLIMMER_SEED={seed}")
    rng = random.Random(seed)
    ours, theirs = wires(server, redis, version)
    with ours, theirs:
        for _ in range(40):
            commands = [random_command(rng) for _ in range(rng.randrange(1, 60))]
            pipelined = b"".join(resp.command(*arguments) for arguments in commands)
            cut = rng.randrange(len(pipelined))
            for wire in (ours, theirs):
                wire.send(pipelined[:cut])
                wire.send(pipelined[cut:])
            for arguments in commands:
                expected = resp.reply(theirs)
                # Seconds may pass between the two servers.
                if arguments[0] == "TTL" and expected not in (b":-1\r\n", b":-2\r\n"):
                    assert abs(int(resp.reply(ours)[1:]) - int(expected[1:])) <= 2, arguments
                else:
                    assert resp.reply(ours) == expected, (seed, arguments)


@pytest.mark.parametrize(
    "line",
    [
        b"PING\r\n", b"ping\n", b"  PING  \r\n", b"\r\nPING\r\n", b'SET "a b" \'c d\'\r\n', b"GET nothing\r\n", b"MGET a b c\r\n", b"DEL a b\r\n",
        b'ECHO ""\r\n', b"NOPE a b\r\n", b"*0\r\n*-1\r\nPING\r\n", b'GET "a\r\n', b'GET "a"b\r\n', b'GET a"b\r\n', b'GET a"b"c\r\n', b"*x\r\n", b"*1\r\n:1\r\n", b"*1\r\n$-1\r\n",
        b"*1\r\n$9999999999\r\n", b"*3000000000\r\n", b"*1\r\n$1x\r\n", b"*00\r\n", b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$04\r\nPING\r\n", b"*-00\r\n",
    ],
)  # fmt: skip
def test_inline_commands_and_faults_are_answered_as_by_redis(server, redis, line):
    for connection in (server, redis):
        with connection.wire() as wire:
            say(wire, "FLUSHALL")
    replies = []
    for connection in (server, redis):
        with connection.wire() as wire:
            say(wire, "PING")
            wire.send(line)
            replies.append(resp.reply(wire))
            if b"Protocol error" in replies[-1]:
                wire.expect_closed()
            else:
                assert say(wire, "ECHO", "next") == b"$4\r\nnext\r\n"
    assert replies[0] == replies[1]


@pytest.mark.parametrize("line", [b"PING\r\n", b"ping\n", b"ECHO hello\r\n", b"EXISTS a b\r\n", b"QUIT\r\n", b"GET nothing\r\n"])
def test_a_connection_may_begin_with_an_inline_command(server, redis, line):
    replies = []
    for connection in (server, redis):
        with connection.wire() as wire:
            say(wire, "FLUSHALL")
        for cut in (1, len(line) - 1, len(line)):
            with connection.wire() as wire:
                wire.send(line[:cut])
                wire.send(line[cut:])
                replies.append(resp.reply(wire))
    assert len(set(replies)) == 1, replies


def test_memcached_keeps_its_names(server):
    with server.wire() as wire:
        wire.exchange(b"get nothing\r\n", b"END\r\n")
    with server.wire() as wire:
        wire.exchange(b"NOPE\r\n", b"ERROR\r\n")
    with server.wire() as wire:
        wire.send(b"quit\r\n")
        wire.expect_closed()


def fields(info):
    lines = [line for line in info.split("\r\n") if line and not line.startswith("#")]
    return dict(line.split(":", 1) for line in lines[1:] if ":" in line)


def test_info_has_the_fields_that_exporters_read(server):
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        for arguments in (("SET", "a", "1"), ("SET", "b", "1"), ("GET", "a"), ("GET", "none")):
            say(wire, *arguments)
        assert say(wire, "DBSIZE") == b":2\r\n"
        info = fields(say(wire, "INFO").decode())
        for name in (
            "redis_version uptime_in_seconds connected_clients maxclients used_memory maxmemory maxmemory_policy total_connections_received "
            "total_commands_processed keyspace_hits keyspace_misses evicted_keys expired_keys total_net_input_bytes used_cpu_user loading role db0"
        ).split():
            assert name in info, name
        assert info["db0"] == "keys=2,expires=0,avg_ttl=0" and int(info["connected_clients"]) >= 1
        assert int(info["maxmemory"]) >= int(info["used_memory"]) > 0
        memory = say(wire, "INFO", "memory", "nope").decode()
        assert memory.split("\r\n")[1] == "# Memory" and "keyspace_hits" not in memory
        assert say(wire, "INFO", "nope") == b"$0\r\n\r\n"
        assert "curr_items" in fields(say(wire, "INFO", "everything").decode())
        # As in Redis, `all` has no section that Redis does not have.
        names = lambda *words: [line for line in say(wire, "INFO", *words).decode().split("\r\n") if line.startswith("#")]
        assert names() == names("default") == names("ALL") == [it for it in names("everything") if it != "# Glimmer"]


def test_reads_are_counted_as_by_redis(server, redis):
    def reads(wire):
        stats = fields(say(wire, "INFO", "stats").decode())
        return int(stats["keyspace_hits"]), int(stats["keyspace_misses"])

    def counted(wire, arguments):
        before = reads(wire)
        say(wire, *arguments)
        return [after - before for after, before in zip(reads(wire), before, strict=True)]

    ours, theirs = wires(server, redis, 2)
    with ours, theirs:
        for arguments in (
            ("GET", "a"), ("SET", "a", "1"), ("GET", "a"), ("GETSET", "a", "2"), ("GETSET", "b", "1"), ("SET", "a", "3", "GET"), ("SET", "c", "1", "GET"), ("SET", "a", "4", "NX", "GET"),
            ("SET", "d", "1", "XX", "GET"), ("SETNX", "a", "1"), ("GETEX", "a"), ("GETEX", "a", "EX", "100"), ("GETEX", "none", "EX", "9"), ("MGET", "a", "none"), ("EXISTS", "a", "none", "a"),
            ("TOUCH", "a", "none"), ("TTL", "a"), ("TTL", "none"), ("STRLEN", "none"), ("TYPE", "a"), ("EXPIRE", "a", "100"), ("EXPIRE", "none", "100"), ("PERSIST", "a"), ("APPEND", "a", "x"),
            ("SETRANGE", "a", "0", "y"), ("GETRANGE", "a", "0", "1"), ("INCR", "n"), ("INCRBYFLOAT", "n", "1"), ("COPY", "a", "e"), ("COPY", "none", "e"), ("COPY", "a", "e"),
            ("RENAME", "e", "f"), ("RENAME", "none", "f"), ("RENAME", "f", "f"), ("RENAMENX", "f", "a"), ("RENAMENX", "f", "g"), ("MEMORY", "USAGE", "a"), ("MEMORY", "USAGE", "none"),
            ("OBJECT", "ENCODING", "a"), ("OBJECT", "ENCODING", "none"), ("DEL", "a", "none"), ("GETDEL", "c"), ("GETDEL", "c"),
        ):  # fmt: skip
            assert counted(ours, arguments) == counted(theirs, arguments), arguments


def test_a_client_is_told_to_keep_nothing(server):
    """What a client with a cache of its own keeps (rueidis), it is told to forget."""
    forget = b">2\r\n$10\r\ninvalidate\r\n_\r\n"
    with server.wire() as wire:
        assert say(wire, "CLIENT", "TRACKING", "ON", "OPTIN").startswith(b"-ERR client-side caching needs HELLO 3")
        assert say(wire, "CLIENT", "CACHING", "YES").startswith(b"-ERR CLIENT CACHING can be called only")
        say(wire, "HELLO", "3")
        assert say(wire, "CLIENT", "TRACKING", "ON").startswith(b"-ERR")
        assert say(wire, "CLIENT", "TRACKING", "ON", "OPTIN") == b"+OK\r\n"
        say(wire, "SET", "a", "1")
        assert say(wire, "GET", "a") == b"$1\r\n1\r\n"
        for command, reply in (
            (("GET", "a"), b"$1\r\n1\r\n"), (("MGET", "a", "none"), b"*2\r\n$1\r\n1\r\n_\r\n"), (("EXISTS", "a", "b"), b":1\r\n"), (("PING",), b"+PONG\r\n"),
        ):  # fmt: skip
            wire.send(resp.command("CLIENT", "CACHING", "YES") + resp.command(*command))
            wire.expect(b"+OK\r\n" + reply + forget)
            assert say(wire, "GET", "a") == b"$1\r\n1\r\n"
        assert say(wire, "CLIENT", "TRACKING", "OFF") == b"+OK\r\n"


def test_values_are_exchanged_and_deleted_if_they_are_equal(server):
    """As in Valkey 8.1 and 9."""
    with server.wire() as wire:
        for arguments, reply in (
            (("SET", "a", "1"), b"+OK\r\n"), (("SET", "a", "2", "IFEQ", "x"), b"$-1\r\n"), (("SET", "a", "2", "IFEQ", "1"), b"+OK\r\n"),
            (("SET", "a", "3", "IFEQ", "2", "GET", "EX", "100"), b"$1\r\n2\r\n"), (("DELIFEQ", "a", "2"), b":0\r\n"), (("DELIFEQ", "a", "3"), b":1\r\n"),
            (("DELIFEQ", "a", "3"), b":0\r\n"), (("SET", "a", "v" * 16000), b"+OK\r\n"), (("SET", "a", "w" * 16000, "IFEQ", "v" * 16000), b"+OK\r\n"),
            (("STRLEN", "a"), b":16000\r\n"), (("DELIFEQ", "a", "w" * 16000), b":1\r\n"),
        ):  # fmt: skip
            assert say(wire, *arguments) == reply, arguments


def page(wire, cursor, *options):
    wire.send(resp.command("SCAN", cursor, *options))
    assert wire.line() == b"*2\r\n"
    string = lambda said: said.split(b"\r\n", 1)[1][:-2]
    cursor, count = string(resp.reply(wire)), wire.line()
    return cursor, [string(resp.reply(wire)) for _ in range(int(count[1:]))]


def scan(wire, *options):
    keys, cursor, pages = [], b"0", 0
    while pages == 0 or cursor != b"0":
        cursor, some = page(wire, cursor, *options)
        keys += some
        pages += 1
    return keys, pages


def test_keys_are_listed(server):
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        assert say(wire, "KEYS", "*") == b"*0\r\n" and scan(wire)[0] == []
        expected = {f"key:{i}".encode() for i in range(400)}
        say(wire, "MSET", *[word for key in expected for word in (key, "v")])
        say(wire, "MSET", "other[1]", "v", "other[2]", "v", b"with\r\n", "v", "gone", "v", "over", "v")
        say(wire, "DEL", "gone")
        say(wire, "PEXPIRE", "over", "1")
        for pattern, count in (("key:*", 400), ("*", 403), ("key:?", 10), ("key:[0-4]", 5), ("other\\[1\\]", 1), ("with*", 1), ("none", 0)):
            while say(wire, "EXISTS", "over") != b":0\r\n":
                pass
            said = say(wire, "KEYS", pattern)
            assert said.startswith(b"*%d\r\n" % count), (pattern, said[:99])
            for options in ((), ("COUNT", "1"), ("COUNT", "100000")):
                if options != ("COUNT", "1") or pattern == "*":
                    found, _ = scan(wire, "MATCH", pattern, *options)
                    assert len(found) == len(set(found)) == count, (pattern, options)
        assert set(scan(wire, "MATCH", "key:*", "TYPE", "string")[0]) == expected
        assert scan(wire, "TYPE", "hash") == ([], 1)
        assert scan(wire, "COUNT", "40")[1] > 5 and scan(wire, "COUNT", "4000000000")[1] < 10
        for arguments in (("SCAN", "x"), ("SCAN", "0", "COUNT", "0"), ("SCAN", "0", "MATCH"), ("SCAN", "0", "COUNT", "x"), ("KEYS",), ("KEYS", "x" * 2000)):
            assert say(wire, *arguments).startswith(b"-ERR"), arguments
        assert page(wire, str((1 << 64) - 1)) == (b"0", []) and page(wire, str(1 << 36))[0] is not None
        # Between other commands, and in a transaction.
        for commands in ([("MULTI",), ("KEYS", "key:1"), ("GET", "key:1"), ("SCAN", "0", "MATCH", "none", "COUNT", "100000"), ("EXEC",)],):
            wire.send(b"".join(resp.command(*arguments) for arguments in commands))
            wire.expect(b"+OK\r\n" + 3 * b"+QUEUED\r\n" + b"*3\r\n*1\r\n$5\r\nkey:1\r\n$1\r\nv\r\n")
            resp.reply(wire)
            assert say(wire, "PING") == b"+PONG\r\n"


def test_an_item_keeps_its_flags_under_another_key(server):
    with server.wire() as wire, server.wire() as text:
        say(wire, "FLUSHALL")
        text.exchange(b"set a 7 0 1\r\nx\r\n", b"STORED\r\n")
        assert say(wire, "COPY", "a", "b") == b":1\r\n" and say(wire, "RENAME", "b", "c") == b"+OK\r\n"
        text.exchange(b"get a b c\r\n", b"VALUE a 7 1\r\nx\r\nVALUE c 7 1\r\nx\r\nEND\r\n")


def test_many_keys_are_shown_at_random(server):
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        keys = [f"k{i}" for i in range(64)]
        say(wire, "MSET", *[word for key in keys for word in (key, "v")])
        # A key is shown the more often the longer the gap before it. Of two keys that lie side by side one may not come in 2,000
        # draws; half of all cannot stay away.
        wire.send(resp.command("RANDOMKEY") * 2000)
        shown = {resp.reply(wire) for _ in range(2000)}
        assert shown <= {b"$%d\r\n%s\r\n" % (len(key), key.encode()) for key in keys}
        assert len(shown) >= 32


def test_items_are_renamed_by_several_clients_at_once(server):
    """Items go from key to key, and none is lost or doubled: each client has its own."""
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        wires = [server.wire() for _ in range(4)]
        for nth, each in enumerate(wires):
            names = [f"{nth}:{i}" for i in range(60)]
            commands = [("SET", names[0], str(nth) * (20_000 if nth == 0 else 10)), *[("RENAME", *pair) for pair in zip(names, names[1:])], ("GET", names[-1])]
            each.send(b"".join(resp.command(*arguments) for arguments in commands))
        for nth, each in enumerate(wires):
            with each:
                assert [resp.reply(each) for _ in range(60)] == [b"+OK\r\n"] * 60
                assert set(resp.reply(each).split(b"\r\n")[1]) == {ord(str(nth))}
        assert say(wire, "DBSIZE") == b":4\r\n"


def test_each_command_is_one_change_of_its_item(server):
    """Several clients at once, each with all of its commands in one write."""
    count = 300
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        say(wire, "MSET", *[word for i in range(count) for word in (f"token{i}", "v", f"lock{i}", "mine")])
        commands = []
        for i in range(count):
            commands += [("GETDEL", f"token{i}"), ("DELIFEQ", f"lock{i}", "mine"), ("SET", f"once{i}", "v", "NX"), ("SET", f"swap{i}", "1", "IFEQ", "0")]
            commands += [("APPEND", "log", "x"), ("INCRBYFLOAT", "sum", "0.25"), ("SETRANGE", "bytes", str(i), "y"), ("EXPIRE", f"once{i}", "100", "NX")]
        say(wire, "MSET", *[word for i in range(count) for word in (f"swap{i}", "0")])
        wires = [server.wire() for _ in range(4)]
        for each in wires:
            each.send(b"".join(resp.command(*arguments) for arguments in commands))
        replies = []
        for each in wires:
            with each:
                replies.append([resp.reply(each) for _ in commands])
        for nth, arguments in enumerate(commands):
            said = [each[nth] for each in replies]
            won = {"GETDEL": b"$1\r\nv\r\n", "DELIFEQ": b":1\r\n", "SET": b"+OK\r\n", "EXPIRE": b":1\r\n"}.get(arguments[0])
            assert won is None or said.count(won) == 1, (arguments, said)
        assert say(wire, "STRLEN", "log") == b":%d\r\n" % (4 * count) and say(wire, "GET", "sum") == b"$3\r\n%d\r\n" % count
        assert say(wire, "GET", "bytes") == b"$%d\r\n%s\r\n" % (count, b"y" * count)
        # A transaction is executed in order, by each of its clients.
        wires = [server.wire() for _ in range(4)]
        for each in wires:
            each.send(b"".join(resp.command(*it) for it in [("MULTI",), *[("INCR", "counted")] * 100, ("EXEC",)]))
        for each in wires:
            with each:
                for _ in range(101):
                    resp.reply(each)
                numbers = [int(line) for line in resp.reply(each).split(b"\r\n:")[1:-1]]
                assert numbers == sorted(numbers)
        assert say(wire, "GET", "counted") == b"$3\r\n400\r\n"


def test_keys_that_stay_are_found_while_others_come_and_go(server):
    with server.wire() as wire, server.wire() as other:
        say(wire, "FLUSHALL")
        stays = {f"stay:{i}".encode() for i in range(1000)}
        say(wire, "MSET", *[word for key in stays for word in (key, "v")])
        cursor, found, turn = b"0", set(), 0
        while turn == 0 or cursor != b"0":
            cursor, some = page(wire, cursor, "COUNT", "50")
            found |= set(some)
            turn += 1
            say(other, "MSET", *[word for i in range(50) for word in (f"go:{turn}:{i}", "v")])
            say(other, "DEL", *[f"go:{turn - 1}:{i}" for i in range(50)])
        assert stays <= found


def test_several_clients_list_all_keys_at_once(server):
    with server.wire() as wire:
        say(wire, "FLUSHALL")
        say(wire, "MSET", *[word for i in range(1000) for word in (f"key-number-{i:020}", "v")])
        wires = [server.wire() for _ in range(6)]
        for each in wires:
            each.send(resp.command("KEYS", "*") + resp.command("PING"))
        wires.pop().close()
        for each in wires:
            with each:
                assert resp.reply(each).startswith(b"*1000\r\n") and resp.reply(each) == b"+PONG\r\n"


def test_memcached_clients_share_the_port_and_the_items(server):
    with server.wire() as text, server.wire() as wire:
        text.exchange(b"set shared 7 0 5\r\nhello\r\n", b"STORED\r\n")
        assert say(wire, "GET", "shared") == b"$5\r\nhello\r\n"
        assert say(wire, "SET", "number", "5") == b"+OK\r\n"
        text.exchange(b"incr number 3\r\nget number\r\n", b"8\r\nVALUE number 0 1\r\n8\r\nEND\r\n")
        assert say(wire, "INCRBY", "number", "-9") == b":-1\r\n"


def test_what_is_too_large_is_refused_and_the_connection_goes_on(server):
    with server.wire() as wire:
        assert say(wire, "SET", "a", "kept") == b"+OK\r\n"
        for value_bytes in ((1 << 20) + 1, 4 << 20):
            assert say(wire, "SET", "a", b"v" * value_bytes).startswith(b"-ERR string exceeds maximum allowed size")
        assert say(wire, "GET", "a") == b"$4\r\nkept\r\n"
        for key in ("", "k" * 251):
            assert say(wire, "GET", key) == b"-ERR keys have 1 to 250 bytes\r\n"
            assert say(wire, "MGET", "a", key) == b"-ERR keys have 1 to 250 bytes\r\n"
        largest = b"v" * ((1 << 20) - 100)
        assert say(wire, "SET", "a", largest) == b"+OK\r\n"
        assert say(wire, "GET", "a") == b"$%d\r\n%s\r\n" % (len(largest), largest)


@pytest.mark.parametrize("version", [2, 3])
def test_redis_py(server, version):
    with redis_py.Redis(port=server.port, protocol=version, client_name="tests") as client:
        with client.pipeline() as pipeline:
            assert pipeline.mset({"t": "1", "u": "2"}).expire("t", 100).incr("u").get("t").execute() == [True, True, 3, b"1"]
        with client.pipeline() as pipeline, pytest.raises(redis_py.ResponseError, match="WATCH is not supported"):
            pipeline.watch("t")
        client.flushall()
        assert client.ping() and client.set("a", "1", ex=100) and client.ttl("a") in (99, 100)
        assert client.get("a") == b"1" and client.get("none") is None
        assert client.incr("n") == 1 and client.decrby("n", 5) == -4
        assert client.mset({"x": "1", "y": "2"}) and client.mget("x", "y", "z") == [b"1", b"2", None]
        assert client.set("x", "3", nx=True) is None and client.set("x", "3", xx=True, get=True) == b"1"
        assert client.delete("x", "y", "z") == 2 and client.exists("a", "n", "z") == 2
        assert client.expire("a", 50) and client.pttl("a") > 40_000 and client.persist("a") and client.ttl("a") == -1
        with client.pipeline(transaction=False) as pipeline:
            for i in range(500):
                pipeline.set(f"p{i}", i).get(f"p{i}")
            assert pipeline.execute() == [it for i in range(500) for it in (True, str(i).encode())]
        assert len(list(client.scan_iter("p*", count=50))) == 500 == len(client.keys("p*"))
        assert client.info()["redis_version"] and client.info()["db0"]["keys"] >= 500 and client.dbsize() >= 500
        assert client.client_id() > 0 and client.echo("x") == b"x" and client.command_count() > 40
        assert any(int(it["idle"]) == 0 for it in client.client_list()) and abs(client.time()[0] - time.time()) < 5
        assert client.getex("n", ex=100) == b"-4" and client.getdel("n") == b"-4" and client.memory_usage("a") > 0
        with pytest.raises(redis_py.ResponseError, match="unknown command"):
            client.lpush("list", "x")
        assert client.flushall() and client.get("a") is None


def test_locks_of_redis_py(server, redis):
    for port in (server.port, redis.port):
        with redis_py.Redis(port=port) as client:
            client.flushall()
            lock, other = client.lock("lock", timeout=100), client.lock("lock", timeout=100)
            assert lock.acquire(blocking=False) and not other.acquire(blocking=False)
            assert lock.extend(100) and 150 < client.ttl("lock") <= 200 and lock.extend(50, replace_ttl=True) and client.ttl("lock") <= 50
            assert lock.reacquire() and 90 < client.ttl("lock") <= 100
            assert client.persist("lock")
            for replace in (False, True):
                with pytest.raises(redis_py.exceptions.LockError):
                    lock.extend(50, replace_ttl=replace)
            assert client.ttl("lock") == -1 and lock.reacquire()
            other.local.token = b"other"
            for change in (other.release, other.reacquire, lambda: other.extend(5)):
                other.local.token = b"other"
                with pytest.raises(redis_py.exceptions.LockError):
                    change()
            lock.release()
            assert client.exists("lock") == 0
            with client.lock("lock", timeout=5):
                assert client.exists("lock") == 1
            assert client.exists("lock") == 0
            with pytest.raises(redis_py.exceptions.LockError):
                lock.release()


def test_scripts_are_known_by_their_texts(server):
    script = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'
    with redis_py.Redis(port=server.port) as client:
        digest = client.script_load(script)
        assert digest == "b70c2384248f88e6b75b9f89241a180f856ad852" and client.script_exists(digest, "0" * 40) == [True, False]
        client.set("lock", "mine")
        assert client.eval(script, 1, "lock", "other") == 0 and client.evalsha(digest, 1, "lock", "mine") == 1
        for refused in (lambda: client.eval("return 1", 0), lambda: client.script_load("return 1"), lambda: client.register_script("return 1")()):
            with pytest.raises(redis_py.ResponseError, match="docs/resp.md"):
                refused()


def redis_cli(server, *arguments, said=None):
    line = [resp.tool("redis-cli"), "-p", str(server.port), *arguments]
    return subprocess.run(line, input=said, capture_output=True, text=True, timeout=20, check=True).stdout


def test_redis_cli(server):
    assert redis_cli(server, "SET", "a", "1") == "OK\n"
    assert redis_cli(server, "-3", "GET", "a") == "1\n"
    assert redis_cli(server, "--no-raw", "MGET", "a", "b") == '1) "1"\n2) (nil)\n'
    said = "SET n 5\nINCRBY n 3\nDEL a n\nTTL n\nNOPE\nQUIT\n"
    assert redis_cli(server, said=said).split("\n")[:5] == [
        "OK", "8", "2", "-2", "ERR unknown command 'NOPE', with args beginning with: ",
    ]  # fmt: skip


def test_clients_authenticate(users):  # noqa: F811
    with Server("-B", "resp", "-Y", users, "-t", 2) as server:
        with server.wire() as wire:
            for arguments in (("GET", "a"), ("PING",), ("DEL", "a", "b"), ("MGET", "a", "b"), ("HELLO", "3"), ("FLUSHALL",)):
                assert say(wire, *arguments) == b"-NOAUTH Authentication required.\r\n", arguments
            assert say(wire, "AUTH", "foo", "wrong").startswith(b"-WRONGPASS")
            assert say(wire, "AUTH", "bar").startswith(b"-WRONGPASS")
            assert say(wire, "AUTH", "foo", "bar") == b"+OK\r\n"
            assert say(wire, "GET", "a") == b"$-1\r\n"
            # A wrong login changes nothing, and a right one says the number of the connection.
            assert say(wire, "HELLO", "3", "AUTH", "foo", "wrong").startswith(b"-WRONGPASS")
            assert say(wire, "GET", "a") == b"$-1\r\n"
            number = say(wire, "CLIENT", "ID")
            assert b"$2\r\nid\r\n" + number in say(wire, "HELLO", "2", "AUTH", "foo", "bar") and number != b":0\r\n"
        with redis_py.Redis(port=server.port, username="foo", password="bar", protocol=3) as client:
            assert client.set("a", "1") and client.get("a") == b"1"
        assert redis_cli(server, "--user", "foo", "--pass", "bar", "--no-auth-warning", "GET", "a") == "1\n"


def test_a_value_of_a_stranger_is_refused_before_it_arrives(users):  # noqa: F811
    with Server("-B", "resp", "-Y", users, "-t", 1) as server, server.wire() as wire:
        wire.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n")
        wire.expect(b"-NOAUTH Authentication required.\r\n")
        wire.send(bytes(1_000_000) + b"\r\n")
        assert say(wire, "AUTH", "foo", "bar") == b"+OK\r\n"
        assert say(wire, "GET", "a") == b"$-1\r\n"


@pytest.mark.parametrize("protocol", ["auto", "ascii", "binary", "resp"])
@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "gets", "SET"])
def test_a_web_page_sends_no_commands(protocol, method):
    body = b"set owned 0 0 1\r\n1\r\nFLUSHALL\r\nSET owned 1\r\n" + b"*3\r\n$3\r\nSET\r\n$5\r\nowned\r\n$1\r\n1\r\n"
    with Server("-B", protocol, "-t", 1) as server:
        browser = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            browser.request(method, "/", body, {"Content-Type": "text/plain"})
            browser.getresponse()
        browser.close()
        with server.wire() as wire:
            if protocol == "resp":
                assert say(wire, "GET", "owned") == b"$-1\r\n"
            elif protocol != "binary":
                wire.exchange(b"get owned\r\n", b"END\r\n")


def test_a_port_for_redis_clients_alone(users):  # noqa: F811
    """There inline commands work from the first byte on, as somebody at a terminal types them."""
    with Server("-B", "resp", "-t", 1) as server, server.wire() as wire:
        wire.send(b"set a 1\r\nget a\r\nquit\r\n")
        wire.expect(b"+OK\r\n$1\r\n1\r\n+OK\r\n")
        wire.expect_closed()


def test_watchers_and_figures_show_requests(ours):
    with Server("-t", 1) as server, server.wire() as watcher, server.wire() as wire:
        watcher.send(b"watch mutations fetchers\r\n")
        watcher.expect(b"OK\r\n")
        assert say(wire, "SET", "a", "1", "EX", "100") == b"+OK\r\n"
        assert b"type=item_get key=a status=not_found" in watcher.line()
        line = watcher.line()
        assert b"key=a status=stored cmd=set ttl=" in line and b"size=1" in line, line
        assert say(wire, "INCR", "a") == b":2\r\n"
        assert say(wire, "DEL", "a", "b") == b":1\r\n"
        stats = server.stats()
        figures = {name: stats[name] for name in ("cmd_set", "incr_hits", "delete_hits", "delete_misses")}
        assert figures == {"cmd_set": "1", "incr_hits": "1", "delete_hits": "1", "delete_misses": "1"}
