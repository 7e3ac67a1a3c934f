"""The engines: what places keys on servers. Each is started with its configuration of contrib/fleet, in which the addresses are those of
the servers at hand."""

import importlib.util
import re
import shutil
import socket
import subprocess
from pathlib import Path

from pymemcache.client.base import Client
from servers import WrongInput, await_port, free_port

HERE = Path(__file__).resolve().parent
CONFIGURATIONS = Path(__file__).resolve().parent.parent.parent / "contrib" / "fleet"
ADDRESS = re.compile(r"\b([A-Za-z0-9.-]+):(\d{2,5})\b")
# Ports of contrib/fleet: the engine's own, and those of the servers.
OWN_PORT = "11210"
# Debian keeps daemons where only root looks.
SEARCHED = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def addresses_of(text):
    """The servers that a configuration names, without comments and without the engine's own address."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*(#|--|listen:)", line)]
    return list(dict.fromkeys(f"{host}:{port}" for host, port in ADDRESS.findall("\n".join(lines))))


def check(path):
    """Fails if a server that a configuration names gives no answer."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise WrongInput(f"{path}: {error.strerror}") from None
    named = addresses_of(text)
    if not named:
        raise WrongInput(f"{path} names no server: HOST:PORT")
    for address in named:
        host, port = address.rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=2) as wire:
                wire.sendall(b"version\r\n")
                answer = wire.recv(100)
        except OSError as error:
            raise WrongInput(f"{path} names {address}, where no server answers: {error.strerror or error}") from None
        if not answer.startswith(b"VERSION "):
            raise WrongInput(f"{path} names {address}, which is no memcached: it answers {answer[:40]!r}")
    return named


def with_addresses(text, addresses):
    """A configuration with other servers: the line of the first one is repeated for each."""
    lines, out, is_done = text.splitlines(), [], False
    for line in lines:
        if not re.search(r"127\.0\.0\.1:1121[1-3]", line):
            out.append(line)
        elif not is_done:
            is_done = True
            for number, address in enumerate(addresses):
                named = re.sub(r"127\.0\.0\.1:11211", address, line)
                # The names of servers in twemproxy's file.
                out.append(re.sub(r":1 a$", f":1 {chr(ord('a') + number)}", named))
    return "\n".join(out) + "\n"


class Proxy:
    """A process between clients and servers."""

    # Each key has one server.
    places_keys = True
    # Its clients may send meta commands.
    has_meta = False
    # Requests fail while a server is away.
    shows_failures = True

    def __init__(self, folder):
        self.folder, self.port, self.process = Path(folder), free_port(), None

    def start(self, addresses):
        text = (CONFIGURATIONS / self.file).read_text()
        text = with_addresses(text, addresses).replace(f"127.0.0.1:{OWN_PORT}", f"127.0.0.1:{self.port}")
        path = self.folder / self.file
        path.write_text(text)
        check(path)
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(self.line(path), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        await_port(self.port, self.process, self.name)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def client(self):
        # A client of a proxy waits longer than the proxy does.
        return Client(("127.0.0.1", self.port), connect_timeout=1, timeout=1, no_delay=True)


class Nutcracker(Proxy):
    name, file = "twemproxy", "nutcracker.yml"

    @staticmethod
    def missing():
        return None if shutil.which("nutcracker", path=SEARCHED) else "nutcracker (apt-get install nutcracker)"

    def line(self, path):
        return [shutil.which("nutcracker", path=SEARCHED), "-c", path, "-s", str(free_port())]


class SteadyNutcracker(Nutcracker):
    name, file = "twemproxy-steady", "nutcracker-steady.yml"


class MemcachedProxy(Proxy):
    has_meta = True
    name, file = "memcached-proxy", "proxy.lua"
    # A build of memcached with --enable-proxy.
    binary = None

    @classmethod
    def missing(cls):
        binary = MemcachedProxy.binary or shutil.which("memcached")
        shown = binary and subprocess.run([binary, "-h"], capture_output=True, text=True).stdout
        return None if shown and "proxy_config" in shown else "a memcached that is built with --enable-proxy (--proxy PATH)"

    def line(self, path):
        binary = MemcachedProxy.binary or shutil.which("memcached")
        own = ["-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-t", "1"]
        return [binary, *own, "-o", f"proxy_config=routelib,proxy_arg={path}"]


class Replicas(MemcachedProxy):
    name, file = "memcached-proxy-replicas", "proxy-replicas.lua"
    places_keys = False


class Library:
    """A client library that places keys itself."""

    places_keys, has_meta, shows_failures = True, False, True

    def __init__(self, _folder):
        spec = importlib.util.spec_from_file_location(self.file, CONFIGURATIONS / f"{self.file}.py")
        self.module = importlib.util.module_from_spec(spec)
        self.addresses = None
        spec.loader.exec_module(self.module)

    @staticmethod
    def missing():
        return None

    def start(self, addresses):
        self.addresses = list(addresses)

    def stop(self):
        pass

    def client(self):
        return self.module.client(self.addresses)


class HashClient(Library):
    name, file = "pymemcache", "hashclient"


class Ketama(Library):
    name, file = "libmemcached", "ketama"


class InRuby:
    """Dalli in a process of its own, with the calls of a client in Python."""

    def __init__(self, addresses):
        line = ["ruby", HERE / "dalli.rb", CONFIGURATIONS / "dalli.rb", *addresses]
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request):
        self.process.stdin.write(request)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith(b"error "):
            raise OSError(answer.decode().strip() or "Ruby has ended")
        return answer

    def get(self, key):
        answer = self.ask(b"get %s\n" % key.encode())
        return None if answer == b"miss\n" else self.process.stdout.read(int(answer.split()[1]))

    def set(self, key, value, noreply=False):
        return self.ask(b"set %s %d\n%s" % (key.encode(), len(value), value)) == b"stored\n"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Dalli(Library):
    """Clients in Ruby, which end with the engine. A request whose server fails goes to another one at once."""

    name, file, shows_failures = "dalli", "dalli", False

    def __init__(self, _folder):
        self.addresses, self.clients = None, []

    @staticmethod
    def missing():
        there = shutil.which("ruby") and subprocess.run(["ruby", "-e", "require 'dalli'"], capture_output=True).returncode == 0
        return None if there else "Dalli (apt-get install ruby-dalli)"

    def stop(self):
        for client in self.clients:
            client.close()

    def client(self):
        self.clients.append(InRuby(self.addresses))
        return self.clients[-1]


ENGINES = {engine.name: engine for engine in (HashClient, Ketama, Dalli, Nutcracker, SteadyNutcracker, MemcachedProxy, Replicas)}
