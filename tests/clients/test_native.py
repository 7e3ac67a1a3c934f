"""The Python package of the native client, from its wheel."""

import errno
import os
import pydoc
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from harness import PATIENCE_S, Server, is_memcached, server_binary
from test_watch import Watcher

glimmer = pytest.importorskip("glimmer", reason="the wheel was not built")


@pytest.fixture
def server():
    if is_memcached(server_binary()):
        pytest.skip("memcached has no native protocol")
    with Server("-t", 2, "-m", 64, "--native-port", -1) as server:
        yield server


def native_port(server):
    with server.wire() as wire:
        wire.send(b"stats native\r\n")
        while (line := wire.line().strip()) != b"END":
            name, value = line.split()[1:]
            if name == b"port:127.0.0.1:0":
                port = int(value)
    return port


def test_every_operation(server):
    client = glimmer.Client("127.0.0.1", native_port(server))
    assert client.get("none") is None
    client.put("greeting", b"hello", flags=7)
    assert client.get(b"greeting") == b"hello"
    item = client.get_item("greeting")
    assert (item.value, item.flags) == (b"hello", 7)
    assert not client.add("greeting", b"again")
    assert client.replace("greeting", b"hi")
    assert not client.compare_and_swap("greeting", item.cas, b"late")
    assert client.compare_and_swap("greeting", client.get_item("greeting").cas, b"swapped")
    assert client.touch("greeting", 100)
    client.put("count", b"41")
    assert client.increment("count") == 42
    assert client.decrement("count", 50) == 0
    assert client.increment("none") is None
    assert client.get_many(["greeting", "none", b"count"]) == {"greeting": b"swapped", b"count": b"0 "}
    assert client.get_many([bytearray(b"greeting")]) == {b"greeting": b"swapped"}
    assert client.delete("greeting")
    assert not client.delete("greeting")
    large = bytes(range(256)) * 1000
    client.put("large", large)
    assert client.get("large") == large


def test_watchers_are_shown_native_requests(server):
    client = glimmer.Client("127.0.0.1", native_port(server))
    with Watcher(server, b"mutations", b"deletions", b"fetchers") as watcher:
        client.put("greeting", b"hello")
        watcher.expect(rb"item_get key=greeting status=not_found clsid=0 cfd=0 size=0")
        watcher.expect(rb"item_store key=greeting status=stored cmd=set ttl=0 clsid=1 cfd=0 size=5")
        assert client.get("greeting") == b"hello"
        watcher.expect(rb"item_get key=greeting status=found clsid=1 cfd=0 size=5")
        assert client.delete("greeting")
        watcher.expect(rb"item_get key=greeting status=found clsid=1 cfd=0 size=5")
        watcher.expect(rb"deleted key=greeting cmd=delete clsid=1 size=5")


def test_lifetimes_in_milliseconds(server):
    """Other protocols see what is left of them. None of them ends within the test."""
    client = glimmer.Client("127.0.0.1", native_port(server))
    with server.wire() as wire:

        def left(key):
            wire.send(b"mg %s t m\r\n" % key)
            return int(wire.line()[len(b"HD t") :])

        client.put("a", b"1", expiry_ms=2_592_000_500)
        assert client.add("b", b"1", expiry_ms=600_123)
        assert client.replace("b", b"2", expiry_ms=3_600_123)
        assert 2_592_000_500 - 600_000 < left(b"a") <= 2_592_000_500
        assert 3_600_123 - 600_000 < left(b"b") <= 3_600_123
        assert client.compare_and_swap("b", client.get_item("b").cas, b"3", expiry_ms=0) and left(b"b") == -1
        assert client.touch("b", expiry_ms=4_000_001) and 4_000_001 - 600_000 < left(b"b") <= 4_000_001
        assert client.touch("b", 5_000) and 5_000_000 - 600_000 < left(b"b") <= 5_000_000
        assert client.touch("b", expiry_ms=1)
        deadline = time.monotonic() + PATIENCE_S
        while client.get("b") is not None:
            assert time.monotonic() < deadline


def test_failures(server):
    client = glimmer.Client("127.0.0.1", native_port(server))
    with pytest.raises(glimmer.InvalidKey):
        client.get("k" * 251)
    with pytest.raises(glimmer.TooLarge):
        client.put("key", bytes(2 << 20))
    client.put("text", b"text")
    with pytest.raises(glimmer.NotANumber):
        client.increment("text")
    assert issubclass(glimmer.Silent, glimmer.Error)


def test_keys_that_fail_take_nothing_from_the_others(server):
    with Server("-t", 1, "-m", 64, "--native-port", -1) as other:
        members = [("127.0.0.1", one.port, native_port(one), 1) for one in (server, other)]
        client = glimmer.Client.connect_to_all(members, "rendezvous")
        keys = [f"key {number}" for number in range(100)]
        for key in keys:
            client.put(key, key.encode())
        assert client.get_many(keys) == {key: key.encode() for key in keys}
    with pytest.raises(glimmer.Refused) as raised:
        client.get_many([*keys, "none" * 100])
    found, failed = raised.value.found, raised.value.failed
    assert found == {key: key.encode() for key in keys if key not in failed} and found
    assert isinstance(failed.pop("none" * 100), glimmer.InvalidKey)
    assert failed and set(failed) == set(keys) - set(found)
    assert {type(failure) for failure in failed.values()} == {glimmer.Refused}
    with pytest.raises(glimmer.InvalidKey) as raised:
        client.get("")
    assert raised.value.found is None and raised.value.failed is None


def test_a_socket_that_fails_is_a_failure_like_others(server):
    port = native_port(server)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(glimmer.Error) as raised:
            glimmer.Client("127.0.0.1", port)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert type(raised.value) is glimmer.SocketError and isinstance(raised.value, OSError)
    assert raised.value.errno == errno.EMFILE and "Too many open files" in str(raised.value)


@contextmanager
def signals(handler):
    """This thread runs the handler once, in a while."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_busy(client):
    """Whether a call of another thread has its turn."""
    try:
        with signals(signal.default_int_handler):
            repr(client)
    except KeyboardInterrupt:
        return True
    return False


def test_a_signal_handler_ends_a_call_that_waits(server):
    port = native_port(server)
    client = glimmer.Client("127.0.0.1", port, deadline=PATIENCE_S)
    client.put("key", b"value")
    server.pause()
    for call in (
        lambda: client.get("key"),
        lambda: client.get_many(["key"] * 1000),
        lambda: client.put("key", b"new"),
        lambda: glimmer.Client("127.0.0.1", port, deadline=PATIENCE_S),
    ):
        with pytest.raises(KeyboardInterrupt), signals(signal.default_int_handler):
            call()
    for use in (lambda: client.get("key"), client.close):
        with pytest.raises(RuntimeError, match="the client whose call it interrupts"), signals(lambda *_: use()):
            client.get("key")
    with signals(lambda *_: server.go_on() or repr(client)):
        assert client.get("key") in (b"value", b"new")
    assert client.get("none") is None


def test_a_signal_handler_ends_a_call_that_waits_for_its_turn(server):
    client = glimmer.Client("127.0.0.1", native_port(server), deadline=3 * PATIENCE_S)
    client.put("key", b"value")
    server.pause()
    found = []
    thread = threading.Thread(target=lambda: found.append(client.get("key")))
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while not is_busy(client):
        assert time.monotonic() < deadline, "the other call does not begin"
    for call in (lambda: client.get("key"), lambda: repr(client), client.close):
        with pytest.raises(KeyboardInterrupt), signals(signal.default_int_handler):
            call()
        assert thread.is_alive() and not found, "the other call still waits"
    server.go_on()
    thread.join()
    assert found == [b"value"] == [client.get("key")]


ENDS = """
import os, sys, threading, glimmer

waits, asks = (glimmer.Client("127.0.0.1", int(sys.argv[1]), deadline=deadline) for deadline in (3600, 1))


class Last:
    def __del__(self):
        try:
            asks.get("key")
        except glimmer.Silent:
            os.write(1, b"silent")


sys.modules["last"] = Last()
print("connected", flush=True)
input()
threading.Thread(target=waits.get, args=("key",), daemon=True).start()
"""


def test_calls_wait_while_the_interpreter_ends(server):
    """One of them in the main thread, when modules are torn down, the other one in a daemon."""
    port = str(native_port(server))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", ENDS, port], text=True, **pipes) as program:
        try:
            assert program.stdout.readline() == "connected\n"
            server.pause()
            output, errors = program.communicate("\n", timeout=PATIENCE_S)
        finally:
            program.kill()
            server.go_on()
    assert (output, errors, program.returncode) == ("silent", "", 0)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda client: client.put("k", b"v", expiry=-1), ValueError, "expiry is a number from 0 to 4294967295, not -1"),
        (lambda client: client.put("k", b"v", flags=1 << 32), ValueError, "flags is a number from 0 to 4294967295"),
        (lambda client: client.put("k", b"v", expiry=1, expiry_ms=1), ValueError, "expiry and expiry_ms exclude each other"),
        (lambda client: client.touch("k", expiry_ms=1 << 32), ValueError, "expiry_ms is a number from 0 to 4294967295"),
        (lambda client: client.touch("k"), TypeError, "touch needs expiry or expiry_ms"),
        (lambda client: client.touch("k", "1"), TypeError, "expiry is an int, not str"),
        (lambda client: client.increment("k", -5), ValueError, "delta is a number from 0"),
        (lambda client: client.put("k", "text"), TypeError, "a value is bytes, not str"),
        (lambda client: client.get(7), TypeError, "a key is bytes or str, not int"),
        (lambda client: client.get_many(["k", None]), TypeError, "a key is bytes or str, not NoneType"),
        (lambda _: glimmer.Client("127.0.0.1", 99999), ValueError, "native_port is a number from 1 to 65535, not 99999"),
        (lambda _: glimmer.Client("127.0.0.1", 1, deadline=-1), ValueError, "deadline is a finite number of seconds, 0 or more, not -1"),
        (lambda _: glimmer.Client("127.0.0.1", 1, retry=float("inf")), ValueError, "a finite number of seconds, 0 or more, not inf"),
        (lambda _: glimmer.Client.connect_to_all([("h", 0, 1, 1)]), ValueError, "a member's port is a number from 1"),
        (lambda _: glimmer.Client.connect_to_all([("h", 1)]), TypeError, "a tuple (host, port, native_port, weight), not a tuple of 2"),
        (lambda _: glimmer.Client.connect_to_all(["h"]), TypeError, "a tuple (host, port, native_port, weight), not str"),
        (lambda _: glimmer.Client.connect_to_all([(b"h", 1, 1, 1)]), TypeError, "a member's host is a str, not bytes"),
        (lambda _: glimmer.Client.connect_to_all([]), glimmer.NoAddress, "the list of servers has no address: it is empty"),
        (lambda _: glimmer.Client.connect_to_all([], "by dice"), ValueError, "not 'by dice'"),
    ],
)
def test_an_argument_that_means_nothing_is_named(server, call, error, words):
    client = glimmer.Client("127.0.0.1", native_port(server))
    with pytest.raises(error) as raised:
        call(client)
    assert words in str(raised.value)


def test_a_closed_port_and_an_unknown_host_are_told_at_once_and_by_name():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    with pytest.raises(glimmer.Refused, match=f"127.0.0.1:{port}"):
        glimmer.Client("127.0.0.1", port, deadline=PATIENCE_S)
    with pytest.raises(glimmer.NoAddress, match="no-such-host.invalid"):
        glimmer.Client("no-such-host.invalid", port)


def test_a_client_says_what_it_is_and_can_be_closed(server):
    port = native_port(server)
    with glimmer.Client("127.0.0.1", port) as client:
        client.put("greeting", bytearray(b"hello"), flags=7)
        assert repr(client) == f"<glimmer.Client 127.0.0.1:{port}>"
        item = client.get_item("greeting")
        assert repr(item) == f"Item(value=b'hello', flags=7, cas={item.cas})"
    assert repr(client) == f"<glimmer.Client 127.0.0.1:{port}, closed>"
    with pytest.raises(glimmer.Closed):
        client.get("greeting")
    client.close()
    with pytest.raises(KeyError), glimmer.Client("127.0.0.1", port) as client:
        raise KeyError
    with pytest.raises(glimmer.Closed):
        client.get("greeting")
    several = glimmer.Client.connect_to_all([("127.0.0.1", server.port, port, 1)], "rendezvous")
    assert repr(several) == f"<glimmer.Client 127.0.0.1:{port} by rendezvous>"


def test_everything_is_documented():
    assert re.fullmatch(r"\d+\.\d+\.\d+", glimmer.__version__)
    assert "native protocol" in glimmer.__doc__
    public = [getattr(glimmer, name) for name in dir(glimmer) if not name.startswith("_")]
    classes = [one for one in public if isinstance(one, type)]
    methods = [getattr(glimmer.Client, name) for name in dir(glimmer.Client) if not name.startswith("_")]
    assert len(classes) > 10 and len(methods) > 10
    for one in [*classes, *methods]:
        assert one.__doc__, one
    assert "deadline" in pydoc.render_doc(glimmer.Client)


def test_a_bug_in_the_library_is_an_exception(server):
    client, other = (glimmer.Client("127.0.0.1", native_port(server)) for _ in range(2))
    if not hasattr(client, "_planted_panic"):
        pytest.skip("the wheel has no planted panic; `cargo xtask test --only clients` builds one that has")
    for call in [client._planted_panic, lambda: client.get("key")]:
        with pytest.raises(glimmer.InternalError):
            call()
    other.put("key", b"value")
    client.close()
    assert other.get("key") == b"value"


def test_a_server_that_is_silent_is_not_waited_for(server):
    with Server("-t", 1, "-m", 64, "--native-port", -1) as other:
        members = [("127.0.0.1", one.port, native_port(one), 1) for one in (server, other)]
        settings = {"deadline": 2, "away_after": 1, "retry": 3600}
        stays = glimmer.Client.connect_to_all(members, **settings)
        ejects = glimmer.Client.connect_to_all(members, eject=True, **settings)
        keys = [f"key {number}" for number in range(100)]
        for key in keys:
            stays.put(key, b"value")
        # It exists but is silent: its port is open.
        other.pause()
        lost = []
        for key in keys:
            try:
                stays.get(key)
            except (glimmer.Silent, glimmer.Away) as error:
                lost.append(type(error))
        assert lost[0] is glimmer.Silent and len(lost) > 10
        assert set(lost[1:]) == {glimmer.Away}
        with pytest.raises(glimmer.Silent):
            for key in keys:
                ejects.put(key, b"elsewhere")
        for key in keys:
            ejects.put(key, b"elsewhere")
            assert ejects.get(key) == b"elsewhere"
        other.go_on()


class LyingServer(threading.Thread):
    """Answers each read with the first fragment of a message of 4 GiB."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def run(self):
        directory = struct.pack("<QQIHHBBBBIIH", 0, 0, 1 << 20, 1, 1, 1, 2, 0, 0, 3600, 1024, self.port)
        fragment = struct.pack("<IIQ", 0xFFFFFFFF, 0, 7) + b"x" * 1352
        while True:
            request, client = self.socket.recvfrom(2048)
            is_question = request[2] == 0x02
            head = request[:2] + bytes([0x82 if is_question else 0x83, 1, 1, 0, 0, 0]) + request[8:16]
            self.socket.sendto(head + (directory if is_question else fragment), client)


def test_a_server_that_lies_about_a_length_is_not_believed():
    lying = LyingServer()
    lying.start()
    client = glimmer.Client("127.0.0.1", lying.port)
    with pytest.raises(glimmer.Error) as raised:
        client.get("key")
    assert type(raised.value) is glimmer.Error, "it does not wait for the rest"


def test_threads_share_a_client(server):
    client = glimmer.Client.connect_to_all([("127.0.0.1", server.port, native_port(server), 1)], "ketama")
    client.put("count", b"0")

    def count():
        for _ in range(50):
            client.increment("count")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("count") == b"200"


def test_processes_that_fork_are_clients_of_their_own(server):
    port = native_port(server)
    client = glimmer.Client("127.0.0.1", port)
    client.put("count", b"0")

    def change(name):
        for _ in range(20):
            client.increment("count")
        client.put(f"{name} by the client from before", b"value")
        glimmer.Client("127.0.0.1", port).put(f"{name} by one of its own", b"value")

    names = [f"child {number}" for number in range(3)]
    children = []
    for name in names:
        child = os.fork()
        if child == 0:
            failed = 1
            try:
                change(name)
                failed = 0
            finally:
                os._exit(failed)
        children.append(child)
    change("parent")
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.get("count") == b"80"
    keys = [f"{name} by {client}" for name in [*names, "parent"] for client in ("the client from before", "one of its own")]
    assert client.get_many(keys) == dict.fromkeys(keys, b"value")


def test_keys_are_where_libmemcached_has_them(server):
    pylibmc = pytest.importorskip("pylibmc", reason="no wheel of pylibmc for this Python")
    with Server("-t", 1, "-m", 64, "--native-port", -1) as other:
        servers = [server, other]
        for name, weights in [("ketama", [1, 1]), ("ketama_weighted", [1, 1]), ("ketama_weighted", [3, 1])]:
            theirs = pylibmc.Client(
                [f"127.0.0.1:{server.port}:{weight}" for server, weight in zip(servers, weights)], behaviors={name: True}
            )
            members = [("127.0.0.1", server.port, native_port(server), weight) for server, weight in zip(servers, weights)]
            ours = glimmer.Client.connect_to_all(members, name)
            for number in range(200):
                key = f"{('key', 'straße')[number % 2]}:{name}:{weights[0]}:{number}"
                ours.put(key, key.encode())
                assert theirs.get(key) == key.encode()
            theirs.disconnect_all()
