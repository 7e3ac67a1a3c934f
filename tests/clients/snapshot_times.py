"""How long a server takes to write a snapshot, at a command and at its stop, and to load it, and what clients notice meanwhile.

The server has one worker, and items with keys of 16 bytes and values of 100. The times are those that an operator sees: until
`glimmer snapshot` ends, until the process has ended after SIGTERM, and from its start until it says that it is ready.

For the latencies, 20 connections send 10,000 requests a second, alone and beside `glimmer snapshot`. The server's threads run
on one core and the client on another.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import tempfile
import time

CHUNK = 10_000
VALUE = b"v" * 100
PATIENCE_S = 600
SERVER_CORE, CLIENT_CORE = {0}, {1}


def start(arguments, path):
    """A server with this snapshot, and the seconds until it served."""
    command = [arguments.server, "serve", "-l", "127.0.0.1", "-p", str(arguments.port), "-t", "1", "-m", "2048", "-u", "root"]
    begin = time.monotonic()
    pin = lambda: os.sched_setaffinity(0, SERVER_CORE)
    server = subprocess.Popen([*command, "--snapshot", path], stderr=subprocess.PIPE, text=True, preexec_fn=pin)
    lines = []
    for line in server.stderr:
        lines.append(line)
        if " ready on " in line:
            return server, time.monotonic() - begin
    raise SystemExit("".join(lines))


def connect(arguments):
    return socket.create_connection(("127.0.0.1", arguments.port), timeout=PATIENCE_S)


def fill(arguments):
    """Stores the items."""
    with connect(arguments) as connection, connection.makefile("rb") as answers:
        for first in range(0, arguments.items, CHUNK):
            numbers = range(first, min(first + CHUNK, arguments.items))
            stores = b"".join(b"ms key-%012d 100 q\r\n%s\r\n" % (number, VALUE) for number in numbers)
            connection.sendall(stores + b"mn\r\n")
            assert answers.readline() == b"MN\r\n"


def items(arguments):
    with connect(arguments) as connection, connection.makefile("rb") as answers:
        connection.sendall(b"stats\r\n")
        for line in answers:
            if line.startswith(b"STAT curr_items "):
                return int(line.split()[2])


def timed(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def latency(arguments, folder, *more):
    """The median and the 99th percentile of requests, in microseconds."""
    report = pathlib.Path(folder, "load.json")
    load = [pathlib.Path(arguments.server).with_name("glimmer-bench"), "load", f"127.0.0.1:{arguments.port}", "--keys", "100000"]
    load += ["--rate", "10k", "--connections", "20", "--seconds", "2", "--json", report, *more]
    pin = lambda: os.sched_setaffinity(0, CLIENT_CORE)
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pin)
    measured = json.loads(report.read_text())["result"]["latency"]
    return measured["p50_us"], measured["p99_us"]


def latencies(arguments, folder, tell):
    """Pairs of latencies, alone and beside a snapshot."""
    latency(arguments, folder)
    pairs = []
    for _ in range(arguments.pairs):
        alone = latency(arguments, folder, "--no-fill")
        writing = subprocess.Popen(tell, stdout=subprocess.DEVNULL)
        beside = latency(arguments, folder, "--no-fill")
        assert writing.poll() is None, "the snapshot ended before the measurement: give more --items"
        assert writing.wait(PATIENCE_S) == 0
        pairs.append((alone, beside))
    return pairs


def measure(arguments, folder):
    """Seconds of a command, of a stop and of a start, the bytes of the file, and the latencies."""
    path = pathlib.Path(folder, "glimmer.snapshot")
    path.unlink(missing_ok=True)
    server, _ = start(arguments, path)
    try:
        fill(arguments)
        tell = [arguments.server, "snapshot", "--server", f"127.0.0.1:{arguments.port}"]
        told = timed(lambda: subprocess.run(tell, check=True, stdout=subprocess.DEVNULL))
        pairs = latencies(arguments, folder, tell)
        server.send_signal(signal.SIGTERM)
        stopped = timed(lambda: server.wait(PATIENCE_S))
        server, loaded = start(arguments, path)
        assert items(arguments) >= arguments.items
        return stopped, told, loaded, path.stat().st_size, pairs
    finally:
        server.kill()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="the program glimmer, a release build")
    parser.add_argument("--port", type=int, default=11311)
    parser.add_argument("--items", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=3, help="of loads alone and beside a snapshot, in each run")
    parser.add_argument("--folder", action="append", help="where the file is written; may be repeated [default: /dev/shm, .]")
    arguments = parser.parse_args()
    folders = arguments.folder or ["/dev/shm", "."]
    columns = []
    for folder in folders:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            columns.append(list(zip(*(measure(arguments, place) for _ in range(arguments.repeat)))))
    print(f"{arguments.items} items; a file of {columns[0][3][0] / 1e6:.0f} MB; median (min..max) of {arguments.repeat} runs.\n")
    print(f"| snapshot | {' | '.join(folders)} |\n| --- |{' --- |' * len(folders)}")
    rows = "written when the server stops", "written by `glimmer snapshot`, without other requests", "loaded"
    for row, name in enumerate(rows):
        cells = (f"{statistics.median(times):.1f} s ({min(times):.1f}..{max(times):.1f})" for times in (column[row] for column in columns))
        print(f"| {name} | {' | '.join(cells)} |")
    for place, percentile in enumerate(("half", "99%")):
        for which, when in enumerate(("without a snapshot", "while one is written")):
            found = [sorted(pair[which][place] for run in column[4] for pair in run) for column in columns]
            cells = (f"{statistics.median(times):.0f} µs ({times[0]:.0f}..{times[-1]:.0f})" for times in found)
            print(f"| {percentile} of requests are answered within, {when} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
