"""Users with rights and limits (--users), and limits of addresses, in every protocol for connections."""

import os
import signal
import time

import binary
import pytest
import resp
from clauses_text import END, STORED, store, value
from harness import PATIENCE_S, Server
from test_auth import login
from test_process import start_badly

COMMAND = b"CLIENT_ERROR this user may not use the command\r\n"
KEY = b"CLIENT_ERROR this user may not use the key\r\n"
OVER = b"SERVER_ERROR over the limit of this user or address\r\n"
NO_LIMIT = b"-ERR over the limit of this user or address\r\n"
NO_COMMAND = b"-NOPERM this user has no permissions to run this command\r\n"
NO_KEY = b"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"

USERS = """
[ops]
password = "ops"
rights = ["get", "set", "admin"]

[shop]
password = "shop"
prefix = "shop/"

[reader]
password = "reader"
rights = ["get"]

[writer]
password = "writer"
rights = ["set"]

[nobody]
password = "nobody"
rights = []
"""


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users.toml"
    path.write_text(USERS)
    return path


def enter(server, name):
    """A connection of a user whose password is the name."""
    wire = server.wire()
    wire.send(login(f"{name} {name}".encode()))
    wire.expect(STORED)
    return wire


def hang_up(server, path, text):
    path.write_text(text)
    os.kill(server.pid, signal.SIGHUP)


def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def set_of(key, data=b"1", *words):
    return b" ".join((b"set", key, b"0 0", b"%d" % len(data), *words)) + b"\r\n" + data + b"\r\n"


@pytest.mark.parametrize("threads", [1, 4])
def test_text(ours, users, threads):
    with Server("--users", users, "-t", threads, "-A") as server:
        with enter(server, "shop") as shop:
            for request, reply in [
                (set_of(b"shop/a"), STORED),
                (set_of(b"other/a"), KEY),
                (set_of(b"shop"), KEY),
                # What a client wants no answer to has none, and its value is no command.
                (set_of(b"other/a", b"flush_all", b"noreply"), b""),
                (b"get shop/a\r\n", value(b"shop/a", b"1") + END),
                (b"get other/a\r\n", KEY),
                # One foreign key, and the command is answered with one error.
                (b"get shop/a shop/b other/a shop/a\r\n", KEY),
                (b"get other/a shop/a\r\n", KEY),
                (b"get shop/a shop/b\r\n", value(b"shop/a", b"1") + END),
                (b"gat 0 shop/a other/a\r\n", KEY),
                (b"incr shop/a 1\r\n", b"2\r\n"),
                (b"incr other/a 1\r\n", KEY),
                (b"decr other/a 1 noreply\r\n", b""),
                (b"touch other/a 0\r\n", KEY),
                (b"delete other/a\r\n", KEY),
                (b"append other/a 0 0 1\r\nx\r\n", KEY),
                (b"cas other/a 0 0 1 5\r\nx\r\n", KEY),
                # Meta commands say so even if they are quiet, as memcached says all errors.
                (b"mg other/a v q\r\n", KEY),
                (b"mg shop/a v\r\n", b"VA 1\r\n2\r\n"),
                (b"ms other/a 2\r\nxx\r\n", KEY),
                (b"md other/a q\r\n", KEY),
                (b"ma other/a N0\r\n", KEY),
                (b"me other/a\r\n", KEY),
                # "other/a" and "shop/a" in base64.
                (b"mg b3RoZXIvYQ== b v\r\n", KEY),
                (b"mg c2hvcC9h b v\r\n", b"VA 1\r\n2\r\n"),
                (b"mn\r\n", b"MN\r\n"),
            ]:
                shop.send(request + b"mn\r\n")
                shop.expect(reply + b"MN\r\n")
            # All at once.
            shop.send((set_of(b"shop/a") + b"get shop/a other/a\r\nget shop/a\r\n") * 50)
            shop.expect((STORED + KEY + value(b"shop/a", b"1") + END) * 50)
            # A large value is swallowed, and takes no place in the table.
            shop.send(set_of(b"other/large", b"x" * 900_000) + b"mn\r\n")
            shop.expect(KEY + b"MN\r\n")
            # A line that is too long to be looked through ends with the error.
            shop.send(b"get " + b"shop/missing " * 30_000 + b"other/a shop/a\r\n")
            shop.expect(KEY)
            shop.expect_closed()
        with enter(server, "reader") as reader:
            reader.send(b"get shop/a\r\nset shop/a 0 0 1\r\n2\r\ngat 0 shop/a\r\nmg shop/a t h u\r\nmg shop/a T0\r\nmn\r\n")
            reader.expect(value(b"shop/a", b"1") + END + COMMAND + COMMAND + b"HD t-1 h1\r\n" + COMMAND + b"MN\r\n")
        with enter(server, "writer") as writer:
            writer.send(set_of(b"w") + b"get w\r\ntouch w 0\r\nincr w 1\r\ndelete w\r\nme w\r\n")
            writer.expect(STORED + COMMAND + b"TOUCHED\r\n" + COMMAND + b"DELETED\r\n" + COMMAND)
        with enter(server, "nobody") as nobody:
            nobody.send(b"get a\r\nset a 0 0 1\r\n1\r\nversion\r\n")
            nobody.expect(COMMAND * 2)
            assert nobody.line().startswith(b"VERSION ")


ADMINISTRATION = [
    b"flush_all",
    b"shutdown",
    b"dispatch fixed",
    b"watch",
    b"lru_crawler metadump all",
    b"lru_crawler mgdump all",
    b"lru_crawler crawl all",
    b"stats cachedump 1 1",
    b"stats items",
    b"stats hotkeys",
    b"stats users",
    b"stats reset",
    b"stats detail on",
    b"verbosity 1",
    b"cache_memlimit 64",
    b"config delete cluster",
    b"snapshot",
]


def test_administration_is_for_admins(ours, users):
    with Server("--users", users, "-t", 2, "-A") as server:
        with enter(server, "shop") as shop:
            for command in ADMINISTRATION:
                shop.send(command + b"\r\nmn\r\n")
                shop.expect(COMMAND + b"MN\r\n")
            shop.send(b"flush_all noreply\r\nmn\r\nstats\r\n")
            shop.expect(b"MN\r\n")
            lines = dict(line.split()[1:3] for line in iter(shop.line, END))
            assert lines[b"curr_items"] == b"0"
        with enter(server, "ops") as ops:
            ops.send(set_of(b"a") + b"flush_all\r\nstats items\r\n")
            ops.expect(STORED + b"OK\r\n")
            until(lambda: ops.line() == END)
            ops.send(b"lru_crawler metadump all\r\n")
            until(lambda: ops.line() == END)
            ops.send(b"shutdown\r\n")
            ops.expect_closed()
        assert server.ended() == 0


def test_binary(ours, users):
    def denied(opcode):
        return binary.refusal(opcode, binary.AUTH_ERROR)

    with Server("--users", users, "-S", "-t", 2) as server, server.wire() as wire:
        wire.send(binary.request(binary.SASL_AUTH, b"PLAIN", b"\0shop\0shop"))
        wire.expect(binary.response(binary.SASL_AUTH, value=b"Authenticated"))
        wire.send(binary.store(binary.SETQ, b"shop/a", b"1") + binary.store(binary.SET, b"other/a", b"x" * 100_000))
        wire.expect(denied(binary.SET))
        # Quiet commands are quiet about success alone.
        for request, reply in [
            (binary.store(binary.SETQ, b"other/a", b"1"), denied(binary.SETQ)),
            (binary.request(binary.GETQ, b"other/a"), denied(binary.GETQ)),
            (binary.request(binary.GET, b"other/a"), denied(binary.GET)),
            (binary.request(binary.DELETEQ, b"other/a"), denied(binary.DELETEQ)),
            (binary.request(binary.FLUSH), denied(binary.FLUSH)),
            (binary.request(binary.STAT, b"items"), denied(binary.STAT)),
            (binary.request(binary.GETQ, b"shop/missing"), b""),
        ]:
            wire.send(request + binary.request(binary.NOOP))
            wire.expect(reply + binary.response(binary.NOOP))
        # Another user on the same connection.
        wire.send(binary.request(binary.SASL_AUTH, b"PLAIN", b"\0ops\0ops") + binary.request(binary.FLUSH))
        wire.expect(binary.response(binary.SASL_AUTH, value=b"Authenticated") + binary.response(binary.FLUSH))


def test_resp(ours, users):
    with Server("--users", users, "-B", "resp", "-t", 2) as server, server.wire() as wire:
        say = lambda *words: resp.say(wire, *words)  # noqa: E731
        assert say("AUTH", "shop", "shop") == b"+OK\r\n"
        for words, reply in [
            (("SET", "shop/a", "1"), b"+OK\r\n"),
            (("SET", "other/a", "1"), NO_KEY),
            (("GET", "other/a"), NO_KEY),
            (("MGET", "shop/a", "other/a"), NO_KEY),
            (("MGET", "shop/a", "shop/b"), b"*2\r\n$1\r\n1\r\n$-1\r\n"),
            (("MSET", "shop/b", "2", "other/b", "2"), NO_KEY),
            (("EXISTS", "shop/b"), b":0\r\n"),
            (("DEL", "shop/a", "other/a"), NO_KEY),
            (("EXISTS", "shop/a"), b":1\r\n"),
            (("INCR", "shop/a"), b":2\r\n"),
            (("RENAME", "shop/a", "other/a"), NO_KEY),
            (("COPY", "other/a", "shop/a"), NO_KEY),
            (("RENAME", "shop/a", "shop/c"), b"+OK\r\n"),
            (("FLUSHALL",), NO_COMMAND),
            (("KEYS", "*"), NO_COMMAND),
            (("SCAN", "0"), NO_COMMAND),
            (("RANDOMKEY",), NO_COMMAND),
            (("CLIENT", "LIST"), NO_COMMAND),
            (("DBSIZE",), b":1\r\n"),
            (("PING",), b"+PONG\r\n"),
            (("MULTI",), b"+OK\r\n"),
            (("SET", "other/a", "1"), b"+QUEUED\r\n"),
            (("MGET", "shop/c", "other/a"), b"+QUEUED\r\n"),
            (("GET", "shop/c"), b"+QUEUED\r\n"),
            (("EXEC",), b"*3\r\n" + NO_KEY + NO_KEY + b"$1\r\n2\r\n"),
        ]:
            assert say(*words) == reply, words
        assert say("INFO").startswith(b"$")
        # A command that is too large to be looked through ends with the error.
        wire.send(resp.command("MGET", *[f"shop/{n:0200}" for n in range(4_000)], "other/a"))
        with pytest.raises((AssertionError, ConnectionError, ValueError)):
            assert NO_KEY not in resp.reply(wire)
        with server.wire() as wire:
            assert resp.say(wire, "HELLO", 3, "AUTH", "reader", "reader").startswith(b"%7\r\n")
            assert resp.say(wire, "SET", "a", "1") == NO_COMMAND
            assert resp.say(wire, "GET", "a") == b"_\r\n"
            assert resp.say(wire, "GETDEL", "a") == NO_COMMAND


def test_rights_hold_from_the_login_on(ours, users):
    """What comes with the login, in one piece, is judged as well."""
    with Server("--users", users, "-t", 4) as server:
        for _ in range(8):
            with server.wire() as wire:
                wire.send(login(b"shop shop") + set_of(b"other/a") + b"flush_all\r\n" + set_of(b"shop/a"))
                wire.expect(STORED + KEY + COMMAND + STORED)
    with Server("--users", users, "-B", "resp", "-t", 4) as server:
        for _ in range(8):
            with server.wire() as wire:
                wire.send(resp.command("AUTH", "shop", "shop") + resp.command("GET", "other/a") + resp.command("FLUSHALL"))
                wire.expect(b"+OK\r\n" + NO_KEY + NO_COMMAND)


def test_a_hang_up_changes_what_open_connections_may_do(ours, users):
    with Server("--users", users, "-t", 2) as server, enter(server, "shop") as shop, enter(server, "ops") as ops:
        shop.send(set_of(b"shop/a"))
        shop.expect(STORED)

        def answer(wire, request):
            wire.send(request)
            return wire.line()

        hang_up(server, users, USERS.replace('prefix = "shop/"', 'prefix = "store/"'))
        until(lambda: answer(shop, set_of(b"shop/a")) == KEY)
        assert answer(shop, set_of(b"store/a")) == STORED
        # What cannot be read changes nothing.
        hang_up(server, users, "[shop]\npassword = 'x'\nrights = ['all']\n")
        hang_up(server, users, USERS.split("[shop]")[0])
        # A user that is gone may do nothing.
        until(lambda: answer(shop, set_of(b"store/a")) == COMMAND)
        assert answer(ops, b"flush_all\r\n") == b"OK\r\n"
        with server.wire() as wire:
            wire.send(login(b"shop shop"))
            wire.expect(b"CLIENT_ERROR authentication failure\r\n")
        # Its connection is closed with the answer.
        shop.expect_closed()
        # Its name comes again, and whoever had it has to log in for it.
        hang_up(server, users, USERS)
        until(lambda: logs_in(server))
        with enter(server, "shop") as shop:
            hang_up(server, users, USERS.split("[shop]")[0])
            until(lambda: not logs_in(server))
            hang_up(server, users, USERS)
            until(lambda: logs_in(server))
            shop.send(set_of(b"shop/a"))
            shop.expect(COMMAND)
            shop.expect_closed()
        # Who watches and may not any more is shown nothing.
        with enter(server, "ops") as watcher:
            watcher.send(b"watch mutations\r\n")
            watcher.expect(b"OK\r\n")
            hang_up(server, users, USERS.replace('"set", "admin"', '"set"'))
            until(lambda: answer(ops, b"verbosity 0\r\n") == COMMAND)
            until(lambda: answer(ops, b"version\r\n") and watcher_is_closed(watcher))


def logs_in(server):
    with server.wire() as wire:
        wire.send(login(b"shop shop"))
        return wire.line() == STORED


def watcher_is_closed(watcher):
    watcher.socket.settimeout(0.05)
    try:
        return watcher.line() == b""
    except TimeoutError:
        return False


LIMITED = """
[ops]
password = "ops"
rights = ["get", "set", "admin"]

[good]
password = "good"

[busy]
password = "busy"
requests = 200

[heavy]
password = "heavy"
bytes = "1m"

[few]
password = "few"
connections = 2
"""


@pytest.fixture
def limited(tmp_path):
    path = tmp_path / "limited.toml"
    path.write_text(LIMITED)
    return path


def figures(server, *argument):
    """Statistics, as an admin sees them."""
    with enter(server, "ops") as wire:
        wire.send(" ".join(("stats", *argument)).encode() + b"\r\n")
        return dict(line.decode().split()[1:3] for line in iter(wire.line, END))


def test_a_user_has_as_many_connections_as_it_may(ours, limited):
    with Server("--users", limited, "-t", 2) as server:
        with enter(server, "few"), enter(server, "few") as second:
            with server.wire() as third:
                third.send(login(b"few few") + b"get a\r\n")
                third.expect(b"SERVER_ERROR too many connections of this user\r\n")
                third.expect_closed()
            with enter(server, "good") as other:
                other.exchange(b"", b"")
            second.exchange(b"", b"")
            second.send(b"quit\r\n")
            second.expect_closed()
            # The place of a connection that is closed is free at once.
            until(lambda: try_to_enter(server, "few"))


def try_to_enter(server, name):
    with server.wire() as wire:
        wire.send(login(f"{name} {name}".encode()))
        return wire.line() == STORED


def test_what_exceeds_a_limit_waits(ours, limited):
    """20 requests are there at once, and 200 follow in each second: nothing is refused, and nobody else waits."""
    with Server("--users", limited, "-t", 2) as server, enter(server, "busy") as busy, enter(server, "good") as good:
        for _ in range(60):
            busy.exchange(b"", b"")
        with enter(server, "heavy") as heavy:
            for _ in range(3):
                heavy.exchange(set_of(b"a", b"x" * 100_000), STORED)
        for _ in range(100):
            good.exchange(b"", b"")
        # The login is one of them.
        until(lambda: figures(server, "users")["good:requests"] == "101")
        users = figures(server, "users")
        assert users["busy:requests_limit"] == "200" and users["heavy:bytes_limit"] == str(1 << 20)
        assert int(users["busy:throttled"]) > 0 and int(users["heavy:throttled"]) > 0
        assert users["good:throttled"] == "0" and users["busy:over_limit"] == "0"
        assert users["busy:requests"] == "61" and int(users["heavy:bytes"]) > 300_000
        assert int(figures(server, "glimmer")["throttled"]) == int(users["busy:throttled"]) + int(users["heavy:throttled"])


def test_what_has_waited_for_too_long_is_refused(ours, limited):
    with Server("--users", limited, "-t", 1) as server, enter(server, "busy") as busy, enter(server, "good") as good:
        # Those of later turns have waited for a second.
        busy.send(b"get a\r\n" * 1_000)
        answers = [busy.line() for _ in range(1_000)]
        assert set(answers) == {END, OVER}, set(answers)
        # Statistics are refused as well.
        busy.send((b"get a\r\n" * 255 + b"stats\r\n") * 3)
        answers = []
        while sum(line in (END, OVER) for line in answers) < 3 * 256:
            answers.append(busy.line())
        assert OVER in answers and len([it for it in answers if it.startswith(b"STAT pid ")]) < 3

        # Once the account is even, it is served again.
        def is_served():
            busy.send(b"mn\r\n")
            return busy.line() == b"MN\r\n"

        until(is_served)
        good.exchange(b"mn\r\n", b"MN\r\n")


def test_addresses_are_limited_with_and_without_users(ours, users):
    def ask(wire, *argument):
        wire.send(" ".join(("stats", *argument)).encode() + b"\r\n")
        return dict(line.decode().split()[1:3] for line in iter(wire.line, END))

    def admitted(server):
        """A connection. The address may still count one that has just ended."""
        while True:
            wire = server.wire()
            wire.send(b"mn\r\n")
            if wire.line() == b"MN\r\n":
                return wire
            wire.close()

    with Server("--address-connections", 2, "--address-requests", 100) as server:
        with admitted(server) as first:
            until(lambda: ask(first)["curr_connections"] == "1")
            with admitted(server) as second:
                before = int(ask(first, "glimmer")["address_connections_refused"])
                assert try_to_say(server, b"") in (b"SERVER_ERROR too many connections from this address\r\n", b"")
                for _ in range(20):
                    second.exchange(b"", b"")
            until(lambda: int(ask(first, "glimmer")["throttled"]) > 0)
            stats = ask(first, "glimmer")
            assert (int(stats["address_connections_refused"]), stats["addresses_counted"]) == (before + 1, "1")
    with Server("--users", users, "--address-connections", 1) as server:
        until(lambda: try_to_enter(server, "shop"))


def try_to_say(server, request):
    with server.wire() as wire:
        wire.send(request)
        return wire.line()


def test_a_command_that_has_begun_ends_with_its_sum(ours, limited):
    """256 keys are executed in one turn, and the turn after it has waited for too long."""
    with Server("--users", limited, "-B", "resp", "-t", 1) as server, server.wire() as wire:
        assert resp.say(wire, "AUTH", "busy", "busy") == b"+OK\r\n"
        commands = [("EXISTS", *[f"k{n}" for n in range(300)]), ("GET", "k"), ("DBSIZE",), ("QUIT",)]
        wire.send(b"".join(resp.command(*command) for command in commands))
        assert [resp.reply(wire) for _ in range(4)] == [b":0\r\n", NO_LIMIT, NO_LIMIT, b"+OK\r\n"]
