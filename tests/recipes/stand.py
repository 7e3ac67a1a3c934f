"""Where a recipe is tried: a folder with the page's files, the server, and the programs beside it."""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ADDRESS = ("127.0.0.1", 11211)
# No step takes this long; one that does has failed.
PATIENCE_S = 60


class Server:
    """The server at the address that the pages give it."""

    def __init__(self, program):
        self.program, self.process = program, None

    def start(self):
        is_memcached = Path(self.program).name == "memcached"
        line = [self.program] if is_memcached else [self.program, "serve"]
        if is_memcached and os.geteuid() == 0:
            line += ["-u", "root"]
        line += ["-l", ADDRESS[0], "-p", str(ADDRESS[1]), "-t", "1", "-m", "64"]
        self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(ADDRESS[1], self.process)

    def stop(self):
        """Kills it: what it had is lost, and nobody answers at its address."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()

    def pause(self):
        """Lets it hang: connections are accepted by the kernel, and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)
        # Its threads stop when the first of them has been told.
        threads = Path(f"/proc/{self.process.pid}/task")
        until("the server stops", lambda: all(state_of(thread) == "T" for thread in threads.iterdir()))

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def ask(self, command, end=b"END\r\n"):
        """The reply to a command, as lines without the last one."""
        with socket.create_connection(ADDRESS, timeout=PATIENCE_S) as wire:
            wire.sendall(command + b"\r\n")
            reply = b""
            while not reply.endswith(end):
                data = wire.recv(1 << 16)
                if not data:
                    raise OSError("the server has closed the connection")
                reply += data
        return reply[: -len(end)].decode().splitlines()

    def lifetime(self, key):
        """Seconds that an item has left, -1 if it has no end, and None without the item."""
        words = self.ask(f"mg {key} t".encode(), b"\r\n")[0].split()
        return int(words[1][1:]) if words[0] == "HD" else None

    def has(self, key):
        return self.lifetime(key) is not None

    def figure(self, name):
        figures = dict(line.split(" ", 2)[1:] for line in self.ask(b"stats"))
        return int(figures[name])

    def flush(self):
        self.ask(b"flush_all", b"OK\r\n")


class Stand:
    """Everything that one recipe is tried with. Leaving it ends all programs."""

    def __init__(self, program, folder, is_verbose=False):
        self.server, self.folder, self.is_verbose = Server(program), Path(folder), is_verbose
        self.programs, self.failed = [], 0

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, kind, error, _trace):
        for program in self.programs:
            # Workers that it has started are of its group, and outlive it otherwise.
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            program.wait()
        self.server.stop()
        if kind is not None and issubclass(kind, Exception):
            self.check(f"the rest, which ended with {kind.__name__}: {error}".splitlines()[0], False)
            return True
        return False

    def check(self, name, held, detail=""):
        """Reports one result, with what was seen instead."""
        self.failed += not held
        seen = "" if held or detail == "" else f" # {detail!r}"[:400]
        print(f"{'ok' if held else 'not ok'} {name}{seen}", flush=True)
        return held

    def equal(self, name, seen, wanted):
        return self.check(name, seen == wanted, seen)

    def spawn(self, *line, port=None, **more):
        """Starts a program in the folder, and waits until it listens."""
        out = None if self.is_verbose else subprocess.DEVNULL
        more = {"cwd": self.folder, "stdout": out, "stderr": out} | more
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | more.pop("env", {})
        process = subprocess.Popen([*map(str, line)], stdin=subprocess.DEVNULL, env=environment, start_new_session=True, **more)
        self.programs.append(process)
        if port is not None:
            await_port(port, process)
        return process

    def script(self, *line, env=None):
        """Runs a program that reports its own results: lines `ok NAME` and `not ok NAME`. A line `server VERB` has the server stopped,
        started, paused or going on, and is answered with a line on its stdin."""
        err = None if self.is_verbose else subprocess.PIPE
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | (env or {})
        process = subprocess.Popen(
            [*map(str, line)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            start_new_session=True,
        )
        self.programs.append(process)
        verbs = {"stop": self.server.stop, "start": self.server.start, "pause": self.server.pause, "go on": self.server.go_on}
        for text in process.stdout:
            text = text.rstrip("\n")
            if text.startswith("server "):
                verbs[text.removeprefix("server ")]()
                process.stdin.write("done\n")
                process.stdin.flush()
            elif text.startswith(("ok ", "not ok ")):
                word, name = text.split("ok ", 1)
                self.check(name, word == "")
            elif self.is_verbose:
                print(f"# {text}", flush=True)
        said = "" if self.is_verbose else process.stderr.read()
        if process.wait(PATIENCE_S) != 0:
            self.check(f"{Path(str(line[-1])).name} ends well", False, (said.strip().splitlines() or [""])[-1])

    def get(self, url, **headers):
        """The status and the text of a page, with its headers."""
        request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as reply:
                return Reply(reply.status, reply.read(), reply.headers)
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.read(), error.headers)


class Reply:
    """What a service answers."""

    def __init__(self, status, body, headers):
        self.status, self.body, self.headers = status, body, headers

    @property
    def text(self):
        return self.body.decode(errors="replace")

    @property
    def cookie(self):
        """The first cookie, without its attributes."""
        return (self.headers.get("Set-Cookie") or "").split(";")[0]


def await_port(port, process):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} has ended with status {process.returncode}")
        try:
            socket.create_connection((ADDRESS[0], port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{process.args[0]} does not listen on port {port}") from None
            time.sleep(0.02)


def state_of(thread):
    """The letter that the kernel has for the state of a thread."""
    return (thread / "stat").read_text().rsplit(")", 1)[1].split()[0]


def until(what, holds):
    """Waits until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.02)
