"""Has a Prometheus scrape a loaded server, and compares what it stores with what was sent.

scrape.py SERVER
"""

import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

RULES = Path(__file__).parents[2] / "contrib/prometheus/alerts.yml"
PATIENCE_S = 60
CLIENTS = 4
ROUNDS = 3000


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read(url):
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
        return reply.read().decode()


def until(what, holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} in {PATIENCE_S} s"
        time.sleep(0.1)


def answers(url):
    try:
        return bool(read(url))
    except OSError:
        return False


def load(port, client):
    """Each round stores a key, reads it, reads one that is not there, and deletes another."""
    key = b"key-%d" % client
    round = b"set %s 0 0 5\r\nvalue\r\nget %s\r\nget none\r\ndelete none\r\n" % (key, key)
    reply = b"STORED\r\nVALUE %s 0 5\r\nvalue\r\nEND\r\nEND\r\nNOT_FOUND\r\n" % key
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(ROUNDS):
            connection.sendall(round)
            got = b""
            while len(got) < len(reply):
                got += connection.recv(4096)
            assert got == reply, got


def main(server):
    port, http, prometheus = free_port(), free_port(), free_port()
    pages, api = f"http://127.0.0.1:{http}", f"http://127.0.0.1:{prometheus}"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copy(RULES, folder / "glimmer-alerts.yml")
        (folder / "prometheus.yml").write_text(
            f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [glimmer-alerts.yml]
scrape_configs:
  - job_name: glimmer
    static_configs: [{{targets: ["localhost:{http}"]}}]
"""
        )
        processes = [
            subprocess.Popen([server, "serve", "-l", "127.0.0.1", "-p", str(port), "--http", str(http), "-t", "2"]),
            subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{prometheus}", "--log.level=error"]
            ),
        ]
        try:
            until("the server is ready", lambda: answers(f"{pages}/readyz"))
            until("Prometheus is ready", lambda: answers(f"{api}/-/ready"))
            clients = [threading.Thread(target=load, args=(port, client)) for client in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            compare(api)
            print("prometheus: its answers are what the clients sent")
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(PATIENCE_S)


def compare(api):
    def query(expression):
        reply = json.loads(read(f"{api}/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        assert reply["status"] == "success", reply
        return reply["data"]["result"]

    def value(expression):
        found = query(expression)
        return float(found[0]["value"][1]) if found else None

    sent = CLIENTS * ROUNDS
    for expression, expected in {
        "glimmer_stores_total": sent,
        'glimmer_commands_total{command="get",outcome="hit"}': sent,
        'glimmer_commands_total{command="get",outcome="miss"}': sent,
        'glimmer_commands_total{command="delete",outcome="miss"}': sent,
        "sum(glimmer_worker_requests_total)": 4 * sent,
        "glimmer_connections_opened_total": CLIENTS,
        "glimmer_items": CLIENTS,
        'up{job="glimmer"}': 1,
        "glimmer_ready": 1,
    }.items():
        try:
            until(f"{expression} is {expected}", lambda: value(expression) == expected)
        except AssertionError as late:
            raise AssertionError(f"{late}; it is {value(expression)}") from None
    # The rules are evaluated: the only alert of a server that has just started.
    until("the start is noticed", lambda: query('ALERTS{alertname="GlimmerRestarted"}'))
    others = query('ALERTS{alertname!="GlimmerRestarted"}')
    assert not others, others
    kinds = json.loads(read(f"{api}/api/v1/metadata"))["data"]
    assert kinds["glimmer_stores"][0]["type"] == "counter", "it was scraped as OpenMetrics"


main(sys.argv[1])
