"""How exactly a server ends lifetimes in milliseconds, as far as a client can tell.

Each trial stores an item and reads it until it is gone. A read that was sent after the item's end and found it shows that the server
was late. A miss that arrived before the end shows that it was early. Both are certain, however slow client and network are: what they
delay makes the error look smaller, and never larger.
"""

import argparse
import random
import socket
import time


def ask(connection, request):
    """Sends a request whose answer is one line. Returns the line, and when it was sent and answered."""
    sent = time.monotonic()
    connection.sendall(request)
    line = receive_line(connection)
    return line, sent, time.monotonic()


def receive_line(connection):
    line = b""
    while not line.endswith(b"\r\n"):
        more = connection.recv(4096)
        if not more:
            raise ConnectionError("the server closed the connection")
        line += more
    return line


def trial(connection, number, lifetime_ms):
    """Milliseconds by which an item was certainly seen too long, and gone too soon."""
    key = b"lifetimes:%d" % number
    line, stored_from, stored_until = ask(connection, b"ms %s 1 T%d m\r\nx\r\n" % (key, lifetime_ms))
    if line != b"HD\r\n":
        raise SystemExit(f"the server has no lifetimes in milliseconds: {line}")
    earliest, latest = (moment + lifetime_ms / 1000 for moment in (stored_from, stored_until))
    time.sleep(max(0, earliest - time.monotonic() - 0.005))
    late = 0
    while True:
        line, sent, answered = ask(connection, b"mg %s\r\n" % key)
        if line == b"EN\r\n":
            return late * 1000, max(0, earliest - answered) * 1000
        late = max(late, sent - latest)


def measure(address, seconds, seed):
    """The errors of as many trials as fit into this time."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    with socket.create_connection(address, timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        errors = []
        while time.monotonic() < end:
            errors.append(trial(connection, len(errors), rng.randrange(1, 50)))
    return errors


def report(errors):
    """Lines for people."""
    yield f"{len(errors)} items"
    for name, column in (("late", 0), ("early", 1)):
        sizes = sorted(error[column] for error in errors)
        shown = [("50%", sizes[len(sizes) // 2]), ("99%", sizes[len(sizes) * 99 // 100]), ("most", sizes[-1])]
        yield f"{name} by " + ", ".join(f"{size:.2f} ms ({part})" for part, size in shown)


def main():
    arguments = argparse.ArgumentParser(description="Measures how exactly a server ends lifetimes in milliseconds.")
    arguments.add_argument("server", help="HOST:PORT")
    arguments.add_argument("--seconds", type=float, default=10)
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = arguments.parse_args()
    host, _, port = given.server.rpartition(":")
    print(f"seed {given.seed}")
    print(*report(measure((host, int(port)), given.seconds, given.seed)), sep="\n")


if __name__ == "__main__":
    main()
