"""What the server logs, and that it serves whatever becomes of its log."""

import json
import os
import subprocess

from clauses_text import STORED, store
from harness import Server


def lines(server):
    """The lines that a server in JSON has logged, after its end."""
    assert server.stop() == 0
    return [json.loads(line) for line in server.errors.splitlines()]


def test_commands_are_logged_for_auditors_whatever_level_clients_set():
    with Server("-v", "--log-format", "json") as server:
        with server.wire() as wire:
            wire.exchange(b"verbosity 0\r\nflush_all\r\nstats reset\r\n", b"OK\r\nOK\r\nRESET\r\n")
            wire.exchange(b"cache_memlimit 8\r\nshutdown\r\n", b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\nSERVER_ERROR: shutdown not enabled\r\n")
            client = "tcp:%s:%d" % wire.socket.getsockname()
        server.stats()
        logged = lines(server)
    # A client may be faster than the line that says that the server is ready.
    [ready] = [line for line in logged if " ready on " in line["message"]]
    assert ready["level"] == "INFO"
    assert all(line["timestamp"].endswith("Z") for line in logged)
    audited = [line for line in logged if line["target"] == "audit::command"]
    assert [line["command"] for line in audited] == ["verbosity", "flush_all", "stats_reset", "cache_memlimit", "shutdown"]
    assert {line["client"] for line in audited} == {client}
    assert audited[-1]["message"] == "audit: command not permitted"


def test_the_same_line_does_not_fill_the_log():
    with Server("-v") as server:
        with server.wire() as wire:
            wire.exchange(b"flush_all\r\n" * 100, b"OK\r\n" * 100)
        assert server.stop() == 0
        # The window may end meanwhile.
        assert server.errors.count("audit: command") in (32, 64)


def test_logins_are_logged_without_passwords(tmp_path):
    users = tmp_path / "users"
    users.write_text("bob:secret\n")
    users.chmod(0o600)
    with Server("-v", "--log-format", "json", "-Y", users) as server:
        with server.wire() as wire:
            wire.send(store(b"b\nob wrong", b"auth"))
            wire.expect(b"CLIENT_ERROR authentication failure\r\n")
            wire.exchange(store(b"bob secret", b"auth"), STORED)
        logged = lines(server)
        logins = [(line["message"], line["user"]) for line in logged if line["target"].startswith("audit")]
        assert logins == [("audit: login refused", "b%0Aob"), ("audit: logged in", "bob")]
        assert "secret" not in server.errors and "wrong" not in server.errors.replace("wrong user", "")


class Unlogged(Server):
    """A server whose log nobody takes: its disk is full, or its reader is gone."""

    def __init__(self, stderr):
        self.stderr = stderr
        super().__init__("-vv")

    def _start(self):
        popen = subprocess.Popen
        try:
            subprocess.Popen = lambda *arguments, **options: popen(*arguments, **{**options, "stderr": self.stderr})
            super()._start()
        finally:
            subprocess.Popen = popen


def serves(server):
    with server.wire() as wire:
        for _ in range(20):
            wire.exchange(b"flush_all\r\n" + store(b"1", b"a"), b"OK\r\n" + STORED)
        assert int(server.stats("glimmer")["log_lines_lost"]) > 0


def test_a_full_disk_stops_nothing():
    with open("/dev/full", "wb") as full, Unlogged(full) as server:
        serves(server)


def test_a_closed_pipe_stops_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    with Unlogged(writer) as server:
        os.close(writer)
        serves(server)
