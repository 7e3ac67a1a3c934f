"""The pages of --http: metrics, health and figures as JSON."""

import json
import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from clauses_text import STORED, store
from harness import PATIENCE_S, Server, free_port, server_binary

REPOSITORY = Path(__file__).parents[2]
SAMPLE = re.compile(r"^([a-z_:]+)(?:\{(.*)\})? (\S+)$")


class Pages(Server):
    """A server with pages."""

    def __init__(self, *flags):
        self.given = flags
        super().__init__(*flags)

    def _start(self):
        # Each try takes other ports.
        self.http = free_port()
        self.flags = ("--http", self.http, *self.given)
        super()._start()

    def page(self, path, **headers):
        """The status, the headers and the content of a page."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.headers, refusal.read().decode()

    def metrics(self):
        """Every sample, by its name and labels as they are written."""
        samples = {}
        for line in self.page("/metrics")[2].splitlines():
            if not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                assert (name, labels) not in samples, line
                samples[name, labels] = float(value)
        return samples


@pytest.fixture(scope="module")
def pages():
    with Pages("-t", 2, "-U", free_port()) as server:
        yield server


def test_metrics_are_the_statistics(pages):
    with pages.wire() as wire:
        wire.exchange(store(b"1", b"a") + store(b"22", b"b"), STORED * 2)
        wire.exchange(b"get a\r\nget b\r\nget c\r\ndelete a\r\ndelete a\r\n", b"VALUE a 0 1\r\n1\r\nEND\r\nVALUE b 0 2\r\n22\r\nEND\r\nEND\r\nDELETED\r\nNOT_FOUND\r\n")
        stats, metrics = pages.stats(), pages.metrics()
    for name, (metric, labels) in {
        "get_hits": ("glimmer_commands_total", 'command="get",outcome="hit"'),
        "get_misses": ("glimmer_commands_total", 'command="get",outcome="miss"'),
        "delete_hits": ("glimmer_commands_total", 'command="delete",outcome="hit"'),
        "delete_misses": ("glimmer_commands_total", 'command="delete",outcome="miss"'),
        "cmd_set": ("glimmer_stores_total", None),
        "curr_items": ("glimmer_items", None),
        "bytes": ("glimmer_item_memory_bytes", None),
        "limit_maxbytes": ("glimmer_memory_limit_bytes", None),
        "max_connections": ("glimmer_connections_limit", None),
        "threads": ("glimmer_workers", None),
    }.items():
        assert metrics[metric, labels] == float(stats[name]), name
    assert stats["get_hits"] == "2" and stats["delete_misses"] == "1"
    for name, value in pages.stats("settings").items():
        if name not in ("verbosity", "oldest"):
            value = value.replace("\\", "\\\\").replace('"', '\\"')
            assert ("glimmer_setting_info", f'setting="{name}",value="{value}"') in metrics



def test_a_program_asks_whether_the_server_is_well(pages):
    def asked(*arguments, **variables):
        own = {name: value for name, value in os.environ.items() if not name.startswith("GLIMMER_")}
        command = [server_binary(), "health", *map(str, arguments)]
        return subprocess.run(command, env={**own, **variables}, capture_output=True, text=True, timeout=PATIENCE_S)

    for found in (asked(pages.http), asked("--live", pages.http), asked(GLIMMER_HTTP=f"0.0.0.0:{pages.http}")):
        assert (found.returncode, found.stderr) == (0, "") and found.stdout.strip()
    closed = free_port()
    for arguments, expected in [
        ((closed,), f"no answer from http://127.0.0.1:{closed}/readyz"),
        (("0",), "0 means that the server has no pages"),
        (("127.0.0.1:x",), "127.0.0.1:x: \"x\" is not a port: give what --http of serve has"),
    ]:
        found = asked(*arguments)
        assert found.returncode != 0 and expected in found.stderr, found
    pages.pause()
    try:
        found = asked("--timeout", 1, pages.http)
    finally:
        pages.go_on()
    hangs = "no answer from http://127.0.0.1:%d/readyz within 1 second: the server hangs, or the machine is overloaded"
    assert found.returncode == 1 and hangs % pages.http in found.stderr, found


def test_connections_are_counted_by_their_state(ours):
    with Pages("-t", 2) as server:
        wires = [server.wire() for _ in range(6)]
        for wire in wires:
            wire.exchange(b"mn\r\n", b"MN\r\n")
        wires[0].send(b"set a 0 0 100\r\nhalf of it")
        wires[1].send(b"watch fetchers\r\n")
        wires[1].expect(b"OK\r\n")
        expected = {"conn_read": 4, "conn_nread": 1, "conn_watch": 1}
        deadline = time.monotonic() + PATIENCE_S
        while True:
            samples = server.metrics()
            labels = {state: f'listener="tcp:{server.port}",state="{state}"' for state in expected}
            counted = {state: samples.get(("glimmer_connections_by_state", label)) for state, label in labels.items()}
            if counted == expected:
                break
            assert time.monotonic() < deadline, counted
            time.sleep(0.2)
        for wire in wires:
            wire.close()


def test_connections_are_counted_by_the_reason_for_which_they_were_closed(pages):
    def closed(reason):
        return pages.metrics()["glimmer_connections_closed_total", f'reason="{reason}"']

    before = closed("error")
    with pages.wire() as wire:
        wire.send(b"x" * 100_000)
        wire.expect_closed()
    assert closed("error") == before + 1


def test_logins_are_counted_by_their_outcome(tmp_path):
    users = tmp_path / "users.toml"
    users.write_text('[foo]\npassword = "bar"\nrights = ["get"]\nconnections = 1\n')
    with Pages("--users", users) as server, server.wire() as wire, server.wire() as second:

        def logins():
            samples = server.metrics()
            return [samples["glimmer_logins_total", f'outcome="{outcome}"'] for outcome in ("admitted", "refused", "full")]

        for request, reply, expected in [
            (store(b"foo wrong", b"auth"), b"CLIENT_ERROR authentication failure\r\n", [0, 1, 0]),
            # Input that is no login counts as none.
            (b"get foo\r\n", b"CLIENT_ERROR unauthenticated\r\n", [0, 1, 0]),
            (store(b"foo bar", b"auth"), STORED, [1, 1, 0]),
        ]:
            wire.send(request)
            wire.expect(reply)
            assert logins() == expected
        second.send(store(b"foo bar", b"auth"))
        second.expect(b"SERVER_ERROR too many connections of this user\r\n")
        assert logins() == [1, 1, 1]


def test_a_scraper_chooses_the_format(pages):
    _, headers, text = pages.page("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE glimmer_stores_total counter\n" in text
    _, headers, text = pages.page("/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert "# TYPE glimmer_stores counter\n" in text and text.endswith("# EOF\n")


def test_health_and_readiness(pages):
    assert pages.page("/healthz")[::2] == (200, "ok\n")
    deadline = time.monotonic() + PATIENCE_S
    while pages.page("/readyz")[::2] != (200, "ready\n"):
        assert time.monotonic() < deadline
    assert pages.page("/elsewhere")[0] == 404


def test_figures_as_json(pages):
    figures = json.loads(pages.page("/api/stats")[2])
    assert figures["stats"]["settings"]["num_threads"] == "2"
    assert figures["metrics"]["glimmer_workers"] == [{"labels": {}, "value": 2.0}]
    assert isinstance(figures["stats"]["hotkeys"], list)


def test_a_foreign_site_cannot_read_the_pages_of_this_machine(pages):
    assert pages.page("/metrics", Host="attacker.example")[0] == 403
    assert pages.page("/metrics", Host=f"localhost:{pages.http}")[0] == 200


def test_an_address_in_use_is_refused_in_one_line(pages):
    with pytest.raises(RuntimeError) as refusal:
        Server("--http", pages.http)
    text = str(refusal.value).split("did not start: ")[1].strip()
    assert text.count("\n") == 0 and f"--http 127.0.0.1:{pages.http}: " in text, text
    assert text.count("in use") == 1, text


def test_prometheus_finds_no_fault(pages):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    check = subprocess.run([promtool, "check", "metrics"], input=pages.page("/metrics")[2], capture_output=True, text=True)
    assert (check.returncode, check.stdout + check.stderr) == (0, "")
    for arguments in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        check = subprocess.run([promtool, *arguments], cwd=REPOSITORY / "contrib/prometheus", capture_output=True, text=True)
        assert check.returncode == 0, check.stdout + check.stderr


def test_a_server_that_stops_is_not_ready():
    length = 32_000_000
    with Pages("-t", 1, "-m", 256, "-I", "64m") as server:
        with server.wire() as wire:
            wire.exchange(store(b"x" * length, b"large"), STORED)
            # Its reply is longer than the sockets' buffers: the server waits for this client at its end.
            wire.send(b"get large\r\n")
            wire.receive(1)
            assert server.page("/readyz")[0] == 200
            server.process.terminate()
            deadline = time.monotonic() + PATIENCE_S
            while server.page("/readyz")[::2] != (503, "not ready: the server is stopping\n"):
                assert time.monotonic() < deadline
            assert server.page("/healthz")[0] == 200
            wire.receive(length)
        assert server.ended() == 0
