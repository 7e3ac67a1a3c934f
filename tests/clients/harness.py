"""Starts servers and exchanges bytes with them."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

# No step takes this long; a test that waits longer has failed.
PATIENCE_S = 20

# Protocols of the server under test. memcached speaks all of them.
SPOKEN = {"text", "meta", "binary"}


def server_binary():
    """The server under test. xtask sets it; it may be any other server, including memcached."""
    binary = os.environ.get("GLIMMER_BIN")
    if binary is None:
        raise RuntimeError("GLIMMER_BIN is not set: run these tests with `cargo xtask test --only clients`")
    return binary


def is_memcached(binary):
    return Path(binary).name == "memcached"


def version(server):
    """The version of a server, as numbers."""
    with server.wire() as wire:
        wire.send(b"version\r\n")
        return tuple(int(part) for part in wire.line().split()[1].split(b"-")[0].split(b"."))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(binary, *flags, port=None):
    """The command line that starts `binary` as a server."""
    line = [binary] if is_memcached(binary) else [binary, "serve"]
    if is_memcached(binary) and os.geteuid() == 0:
        line += ["-u", "nobody"]
    if port is not None:
        line += ["-l", "127.0.0.1", "-p", str(port)]
    return line + [str(flag) for flag in flags]


def speaks(server, protocol):
    return server.is_memcached or protocol in SPOKEN


class Server:
    """A running server. Use it as a context manager: leaving it stops it and requires a clean exit. With a `context`, connections of the
    harness are encrypted; the flags make the server encrypt."""

    def __init__(self, *flags, binary=None, environment=None, context=None):
        self.context = context
        self.binary = binary or server_binary()
        self.flags = flags
        # What the tests are told by variables is no setting of the server.
        own = {name: value for name, value in os.environ.items() if not name.startswith("GLIMMER_")}
        self.environment = {**own, **(environment or {})}
        # Another process may take a free port before the server listens on it.
        for attempts_left in (2, 1, 0):
            try:
                self._start()
                return
            except RuntimeError as refusal:
                if attempts_left == 0 or "in use" not in str(refusal):
                    raise

    def _start(self):
        self.port = free_port()
        self.process = subprocess.Popen(
            command(self.binary, *self.flags, port=self.port),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self.pid = self.process.pid
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.binary} {self.flags} did not start: {self.process.stderr.read()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.process.kill()
                    raise
                time.sleep(0.01)

    @property
    def is_memcached(self):
        return is_memcached(self.binary)

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def url(self):
        return f"127.0.0.1:{self.port}"

    def wire(self):
        return Wire(self.port, self.context, self.pid)

    def stats(self, *argument):
        """Statistics as a dictionary of strings."""
        with self.wire() as wire:
            wire.send(" ".join(("stats", *argument)).encode() + b"\r\n")
            figures = {}
            while (line := wire.line()) != b"END\r\n":
                kind, name, value = line.rstrip(b"\r\n").split(b" ", 2)
                assert kind == b"STAT", line
                figures[name.decode()] = value.decode()
            return figures

    def pause(self):
        """Stops the process. Its threads stop one after the other; this returns when all of them stand still."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self):
        """Has a process go on that was paused."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self, sig=signal.SIGTERM):
        """Asks the server to stop; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.ended()

    def ended(self):
        """Waits for the end of a server that was asked to stop. Does not ask again, which would end it at once. Returns its exit code."""
        self.output, self.errors = output_at_end(self.process)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        code = self.stop()
        if exception == (None, None, None):
            assert code == 0, f"exit code {code}: {self.errors}"


def output_at_end(process):
    """What a process that was asked to end has written. One that does not end is killed, and its threads are told."""
    try:
        return process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        threads = threads_of(process.pid)
        process.kill()
        _, errors = process.communicate()
        raise AssertionError(f"no end after {PATIENCE_S} s; its threads: {threads}; it wrote {errors!r}") from None


def threads_of(pid):
    """Name, state, place in the kernel and CPU ticks in half a second of each thread of a process."""

    def look():
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
        return {task: (task / "stat").read_text().rsplit(")", 1)[1].split() for task in tasks}

    before = look()
    time.sleep(0.5)
    told = []
    for task, stat in look().items():
        ticks = sum(int(stat[field]) - int(before.get(task, stat)[field]) for field in (11, 12))
        told.append((*((task / name).read_text().strip() for name in ("comm", "wchan")), stat[0], ticks))
    return told


class Wire:
    """One connection, byte by byte; over TLS with a context."""

    def __init__(self, port, context=None, pid=None):
        self.pid = pid
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.pending = b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, count):
        """Receives exactly `count` bytes, or fewer if the server closes."""
        while len(self.pending) < count:
            data = self.socket.recv(max(65536, count - len(self.pending)))
            if not data:
                break
            self.pending += data
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def line(self):
        """Receives one line with its end, or the rest if the server closes."""
        while b"\n" not in self.pending:
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                if self.socket.gettimeout() < PATIENCE_S:
                    raise
                raise TimeoutError(f"expected a line, received only {shorten(self.pending)}" + self.other_end()) from None
            if not data:
                data, self.pending = self.pending, b""
                return data
            self.pending += data
        end = self.pending.index(b"\n") + 1
        data, self.pending = self.pending[:end], self.pending[end:]
        return data

    def expect(self, reply):
        """Checks that the next bytes are exactly these."""
        try:
            received = self.receive(len(reply))
        except TimeoutError:
            wrong = f"expected {shorten(reply)}, received only {shorten(self.pending)}"
            raise AssertionError(wrong + self.other_end()) from None
        assert received == reply, f"expected {shorten(reply)}, received {shorten(received)}"

    def other_end(self):
        """What the server and its kernel have of this connection, for the message of a failure."""
        if self.pid is None:
            return ""
        peer = f":{self.socket.getsockname()[1]:04X}"
        # Local and remote address, state, unsent and unread bytes, inode: 0 if it was not accepted.
        rows = [line.split() for line in open("/proc/net/tcp")]
        told = [[*row[1:5], row[9]] for row in rows if row[2].endswith(peer)]
        return f"; its socket at the server: {told}; threads: {threads_of(self.pid)}"

    def exchange(self, request, reply):
        """Checks that the reply consists of exactly these bytes: the reply to a second request follows at once."""
        self.send(request + b"get never-stored\r\n")
        self.expect(reply + b"END\r\n")
        assert self.pending == b"", f"unexpected {shorten(self.pending)}"

    def expect_closed(self):
        """Checks that the server has closed the connection without sending anything else."""
        try:
            received = self.receive(1)
        except ConnectionResetError:
            received = b""
        assert received == b"", f"expected the end, received {shorten(received)}"

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def in_a_moment(converse):
    """Runs what expects that no second passes meanwhile. Where it fails because the machine stood still for a while, it runs again."""
    for attempts_left in (2, 1, 0):
        begin = time.monotonic()
        try:
            return converse()
        except AssertionError:
            if attempts_left == 0 or time.monotonic() - begin < 0.4:
                raise


def shorten(data):
    return repr(data) if len(data) <= 300 else f"{data[:200]!r}...({len(data)} bytes)...{data[-80:]!r}"
