"""The servers of a fleet: started, killed, stopped and started again at their ports."""

import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PATIENCE_S = 20


class WrongInput(Exception):
    """Something that the operator can put right; told in one line."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, process, what):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None:
            raise WrongInput(f"{what} has ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                process.kill()
                raise WrongInput(f"{what} does not listen on port {port}") from None
            time.sleep(0.01)


class Backend:
    """One server, which keeps its port from start to start."""

    def __init__(self, binary, *flags):
        self.binary, self.flags, self.port = str(binary), list(flags), free_port()
        self.process = None
        self.start()

    @property
    def is_memcached(self):
        return Path(self.binary).name == "memcached"

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self, *more):
        line = [self.binary] if self.is_memcached else [self.binary, "serve"]
        if self.is_memcached and os.geteuid() == 0:
            line += ["-u", "root"]
        line += ["-l", "127.0.0.1", "-p", str(self.port), "-t", "1", "-m", "64", *self.flags, *map(str, more)]
        if not self.is_memcached:
            line += ["--native-port", str(self.port)]
        self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(self.port, self.process, Path(self.binary).name)

    def end(self, sig=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(sig)
        self.process.wait(PATIENCE_S)

    def signal(self, sig):
        self.process.send_signal(sig)

    def ask(self, command, end=b"END\r\n"):
        """The reply to a command, as lines without the last one."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as wire:
            wire.sendall(command + b"\r\n")
            reply = b""
            while not reply.endswith(end):
                data = wire.recv(1 << 16)
                if not data:
                    raise OSError("the server has closed the connection")
                reply += data
        return reply[: -len(end)].split(b"\r\n")

    def flush(self):
        self.ask(b"flush_all", b"OK\r\n")

    def keys(self):
        """The keys that it has."""
        lines = b"\n".join(self.ask(b"lru_crawler metadump all"))
        return set(re.findall(rb"key=(\S+) ", lines))

    def figure(self, name):
        figures = dict(line.split(b" ", 2)[1:] for line in self.ask(b"stats") if line.startswith(b"STAT "))
        return int(figures[name.encode()])


class Fleet:
    """Some servers."""

    def __init__(self, binary, count, memory_files=False):
        self.folder = tempfile.mkdtemp(prefix="glimmer-fleet-", dir="/dev/shm" if memory_files else None)
        self.backends = []
        for number in range(count):
            flags = ["-e", f"{self.folder}/{number}"] if memory_files else []
            self.backends.append(Backend(binary, *flags))

    @property
    def addresses(self):
        return [backend.address for backend in self.backends]

    def holders(self, keys):
        """Which server has each key; a key that several have is with the last of them."""
        found = {}
        for number, backend in enumerate(self.backends):
            if backend.process.poll() is None:
                found.update((key, number) for key in backend.keys() & keys)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for backend in self.backends:
            backend.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class Relay:
    """A port in front of a server; what clients send arrives later by `delay_s`, in order."""

    def __init__(self, port):
        self.port, self.delay_s = port, 0.0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread(self.accept)

    @staticmethod
    def thread(work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting = queue.SimpleQueue()
            self.thread(self.receive, client, waiting)
            self.thread(self.send, waiting, server)
            self.thread(self.pass_back, server, client)

    def receive(self, client, waiting):
        while data := read(client):
            waiting.put((time.monotonic() + self.delay_s, data))
        waiting.put((0.0, b""))

    @staticmethod
    def send(waiting, server):
        while True:
            due, data = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    server.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(data)
            except OSError:
                return

    @staticmethod
    def pass_back(server, client):
        try:
            while data := read(server):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def read(wire):
    """What arrives next; nothing at the end of a connection."""
    try:
        return wire.recv(1 << 16)
    except OSError:
        return b""
