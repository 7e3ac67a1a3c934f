"""Authentication in the text protocol (-Y), as memcached does it."""

import os
import signal
import time

import pytest
from harness import PATIENCE_S, Server
from test_process import start_badly
from clauses_text import END, STORED, store, value


def login(credentials):
    return b"set any 1 2 %d\r\n%s\r\n" % (len(credentials), credentials)


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    path.write_text("foo:bar\nbaaaz:quux")
    return path


def test_nothing_before_the_password(ours, users):
    with Server("-Y", users, "-t", 2) as server, server.wire() as wire:
        for request, reply in [
            (store(b"hi"), b"CLIENT_ERROR bad authentication token format\r\n"),
            (b"get foo\r\n", b"CLIENT_ERROR unauthenticated\r\n"),
            (b"flush_all\r\n", b"CLIENT_ERROR unauthenticated\r\n"),
            (b"set foo 0 0 2147483646\r\n", b"CLIENT_ERROR auth token too long\r\n"),
            (b"set foo 0 0 7\r\nfoo barxx", b"CLIENT_ERROR bad command line termination\r\n"),
            (login(b"foo baz"), b"CLIENT_ERROR authentication failure\r\n"),
            (login(b"foo quux"), b"CLIENT_ERROR authentication failure\r\n"),
            (login(b"foo"), b"CLIENT_ERROR bad authentication token format\r\n"),
        ]:
            wire.send(request)
            wire.expect(reply)
        wire.send(login(b"foo bar") + store(b"hi") + b"get a\r\n")
        wire.expect(STORED + STORED + value(b"a", b"hi") + END)
        with server.wire() as other:
            other.send(login(b"baaaz quux"))
            other.expect(STORED)
            # Statistics are updated at the end of a worker's turn, which may be after the reply.
            deadline = time.monotonic() + PATIENCE_S
            while True:
                other.send(b"stats\r\n")
                stats = dict(line.split()[1:] for line in iter(other.line, END))
                if (stats[b"auth_cmds"], stats[b"auth_errors"]) == (b"4", b"2"):
                    break
                assert time.monotonic() < deadline, stats


def test_byte_by_byte(ours, users):
    with Server("-Y", users) as server, server.wire() as wire:
        for byte in login(b"foo bar") + b"get a\r\n":
            wire.send(bytes([byte]))
        wire.expect(STORED + END)


def test_a_line_too_short_to_be_one_is_not_answered(ours, users):
    with Server("-Y", users) as server, server.wire() as wire:
        wire.send(b"mn\r\n")
        wire.expect_closed()


def test_a_hang_up_reads_the_users_again(ours, users):
    with Server("-Y", users) as server:
        users.write_text("new:one\n")
        os.kill(server.pid, signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with server.wire() as wire:
                wire.send(login(b"new one"))
                if wire.line() == STORED:
                    break
                assert time.monotonic() < deadline
        with server.wire() as wire:
            wire.send(login(b"foo bar"))
            wire.expect(b"CLIENT_ERROR authentication failure\r\n")


@pytest.mark.parametrize("content,named", [("no colon\n", "malformed"), ("", "0 users"), (None, "cannot read")])
def test_a_file_that_is_none(ours, tmp_path, content, named):
    path = tmp_path / "users"
    if content is not None:
        path.write_text(content)
    code, lines = start_badly("-Y", str(path))
    assert (code, len(lines)) == (1, 1)
    assert named in lines[0]


WRONG = b"CLIENT_ERROR authentication failure\r\n"
# Delay of the answer to a wrong login in seconds, minus a tolerance for clocks.
DELAY_S = 0.9


def promptly(attempt):
    """Tries until an attempt took less time than the delay of a wrong login, however busy the machine is. Returns its result."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while True:
        begun = time.monotonic()
        result = attempt()
        if time.monotonic() - begun < DELAY_S:
            return result
        assert time.monotonic() < deadline


def test_a_wrong_login_waits_and_nobody_else_does(ours, users):
    with Server("-Y", users, "-t", 1) as server, server.wire() as other:
        other.send(login(b"foo bar"))
        other.expect(STORED)

        def attempt():
            with server.wire() as wire:
                wire.send(login(b"foo wrong") + login(b"foo bar"))
                for _ in range(10):
                    other.exchange(store(b"1"), STORED)
                wire.socket.setblocking(False)
                try:
                    return wire.socket.recv(1)
                except BlockingIOError:
                    return None

        assert promptly(attempt) is None
        with server.wire() as wire:
            wire.send(login(b"foo wrong") + login(b"foo bar") + b"get none\r\n")
            wire.expect(WRONG + STORED + END)


def test_a_client_that_does_not_wait_keeps_its_place(ours, users):
    with Server("-Y", users, "-t", 1) as server, server.wire() as other:
        other.send(login(b"foo bar"))
        other.expect(STORED)

        def connections():
            other.send(b"stats\r\n")
            figures = dict(line.split()[1:] for line in iter(other.line, END))
            return int(figures[b"curr_connections"]), int(figures[b"auth_errors"])

        before = connections()[1]

        def attempt():
            with server.wire() as wire:
                wire.send(login(b"foo wrong"))
            deadline = time.monotonic() + PATIENCE_S
            while (now := connections())[1] == before:
                assert time.monotonic() < deadline, "the wrong login is not counted"
            return now[0]

        assert promptly(attempt) > 1
        deadline = time.monotonic() + PATIENCE_S
        while connections()[0] > 1:
            assert time.monotonic() < deadline


def test_wrong_logins_end_the_connection(ours, users):
    server = Server("-Y", users, "-t", 1)
    with server.wire() as wire:
        wire.send(login(b"foo wrong") * 10)
        wire.expect(WRONG * 4)
        wire.expect_closed()
    assert server.stop() == 0
    assert "refused: wrong user or password" in server.errors


def test_a_server_that_stops_does_not_wait_for_wrong_logins(ours, users):
    with Server("-Y", users, "-t", 1) as server, server.wire() as other:
        other.send(login(b"foo bar"))
        other.expect(STORED)
        wire = server.wire()
        wire.send(login(b"foo wrong"))
        deadline = time.monotonic() + PATIENCE_S
        while b"STAT auth_errors 1\r\n" not in (lines := figures_of(other)):
            assert time.monotonic() < deadline, lines
        assert server.stop() == 0
        wire.expect(WRONG)
        wire.expect_closed()
        wire.close()


def figures_of(wire):
    wire.send(b"stats\r\n")
    return list(iter(wire.line, END))
