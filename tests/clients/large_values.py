"""How much a fresh server holds when the first value of 1,000,000 bytes leaves, as a share of `-m`, by `-t` and `-m`."""

import argparse
import socket
import subprocess
import time

VALUE = b"v" * 1_000_000
LIMITS = 64, 128, 256, 1024
PATIENCE_S = 60


def connect(port):
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def held(command, threads, limit, port):
    """The share of `-m` that is held when the first value leaves, and the number of workers if the server has fewer than it was told."""
    server = subprocess.Popen([*command, "-t", str(threads), "-m", str(limit)], stderr=subprocess.DEVNULL)
    try:
        with connect(port) as connection, connection.makefile("rb") as answers:
            for stored in range(2 * limit):
                connection.sendall(b"set large-%d 0 0 %d\r\n%s\r\n" % (stored, len(VALUE), VALUE))
                assert answers.readline() == b"STORED\r\n"
                connection.sendall(b"stats\r\n")
                figures = dict(line.split()[1:3] for line in iter(answers.readline, b"END\r\n"))
                if int(figures[b"curr_items"]) <= stored:
                    share = f"{stored * len(VALUE) / (limit << 20):.0%}"
                    workers = int(figures[b"threads"])
                    return share if workers == threads else f"{share} ({workers} workers)"
        raise SystemExit(f"no value left -m {limit}")
    finally:
        server.kill()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("glimmer", help="the program glimmer")
    parser.add_argument("memcached", help="a memcached beside it")
    parser.add_argument("--port", type=int, default=11311)
    arguments = parser.parse_args()
    listens = ["-l", "127.0.0.1", "-p", str(arguments.port), "-U", "0", "-u", "root"]
    version = subprocess.run([arguments.memcached, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    ours, theirs = [arguments.glimmer, "serve", *listens], [arguments.memcached, *listens]
    rows = [(str(threads), ours, threads) for threads in (1, 2, 4, 16, 32)]
    rows += [(f"{version}, {threads}", theirs, threads) for threads in (4, 16)]
    print(f"| `-t` | {' | '.join(f'`-m {limit}`' for limit in LIMITS)} |\n|{' --- |' * (1 + len(LIMITS))}")
    for name, command, threads in rows:
        print(f"| {name} | {' | '.join(held(command, threads, limit, arguments.port) for limit in LIMITS)} |", flush=True)


if __name__ == "__main__":
    main()
