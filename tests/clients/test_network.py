"""Addresses that are partly in use, and clients that vanish from the network."""

import ctypes
import errno
import os
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from clauses_text import STORED, store
from harness import PATIENCE_S, Wire, command, free_port, is_memcached, output_at_end, server_binary

CLONE_NEWNET = 0x40000000
SERVER, CLIENT = "10.255.11.1", "10.255.11.2"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            return True
    except OSError:
        return False


class Running:
    """A server at the addresses in its flags."""

    def __init__(self, binary, *flags, within=()):
        line = [*within, *command(binary, *flags)]
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)

    def wait_for(self, address):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self.process.poll() is None, self.process.stderr.read()
            try:
                return socket.create_connection(address, timeout=PATIENCE_S).close()
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.01)

    def end(self):
        self.process.terminate()
        return output_at_end(self.process)[1]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.end()


def binaries():
    return [server_binary(), shutil.which("memcached")]


@pytest.mark.parametrize("which", [0, 1], ids=["ours", "memcached"])
@pytest.mark.parametrize("taken,free", [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
def test_all_interfaces_where_one_is_taken(which, taken, free):
    """As in memcached, addresses in use are skipped among those of one name."""
    binary = binaries()[which]
    if binary is None or not has_ipv6():
        pytest.skip("needs memcached and IPv6")
    port = free_port()
    with Running(binary, "-l", taken, "-p", port) as first:
        first.wait_for((taken, port))
        with Running(binary, "-p", port) as second:
            second.wait_for((free, port))
            assert first.process.poll() is None
            errors = second.end()
        if not is_memcached(binary):
            every = {"::1": "[::]", "127.0.0.1": "0.0.0.0"}
            assert f"ready on {every[free]}:{port}:" in errors
            assert f"not listening on {every[taken]}:{port}: Address already in use" in errors


@pytest.mark.parametrize("which", [0, 1], ids=["ours", "memcached"])
def test_a_name_of_which_every_address_is_taken(which):
    binary = binaries()[which]
    if binary is None or not has_ipv6():
        pytest.skip("needs memcached and IPv6")
    port = free_port()
    with Running(binary, "-l", "127.0.0.1", "-p", port) as first:
        first.wait_for(("127.0.0.1", port))
        # Two names, one of which has no free address.
        with Running(binary, "-l", "127.0.0.1,::1", "-p", port) as second:
            errors = second.process.communicate(timeout=PATIENCE_S)[1]
            assert second.process.returncode == 71, errors
            assert "Address already in use" in errors


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def hosts(ours):
    """Two network namespaces with a link between them: a server's and a client's."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    server, client = (f"glimmer-{os.getpid()}-{side}" for side in ("server", "client"))
    try:
        try:
            ip("netns", "add", server)
            ip("netns", "add", client)
            ip("link", "add", "name", "wire", "netns", server, "type", "veth", "peer", "name", "wire", "netns", client)
        except subprocess.CalledProcessError as refusal:
            pytest.skip(f"network namespaces cannot be made here: {refusal.stderr.decode().strip()}")
        for name, address in ((server, SERVER), (client, CLIENT)):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield server, client
    finally:
        for name in (server, client):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def within(namespace, call):
    """The result of `call` on a thread in that namespace. Sockets stay in the namespace of their creation."""

    def enter_and_call():
        with open(f"/run/netns/{namespace}") as file:
            assert ctypes.CDLL(None).setns(file.fileno(), CLONE_NEWNET) == 0
        return call()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(enter_and_call).result()


def connected(host, port):
    """A connection. On a busy machine a link that has just been set up carries nothing for some seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=PATIENCE_S)
        except OSError as error:
            if error.errno != errno.EHOSTUNREACH or time.monotonic() > deadline:
                raise


def wire_to(host, port):
    wire = Wire.__new__(Wire)
    wire.socket = connected(host, port)
    wire.pending = b""
    return wire


def vanish(hosts):
    """From now on every packet to the client is dropped, and nothing answers it."""
    server, client = hosts
    # The server keeps sending although no host answers ARP for the address.
    link = subprocess.run(
        ["ip", "-n", client, "-br", "link", "show", "dev", "wire"], check=True, capture_output=True, text=True
    )
    ip("-n", server, "neigh", "replace", CLIENT, "lladdr", link.stdout.split()[2], "dev", "wire", "nud", "permanent")
    ip("-n", client, "addr", "flush", "dev", "wire")


def connections(server, port):
    """The number of connections besides this one."""
    with within(server, lambda: wire_to("127.0.0.1", port)) as wire:
        wire.send(b"stats\r\n")
        figures = dict(line.split()[1:] for line in iter(wire.line, b"END\r\n"))
    return int(figures[b"curr_connections"]) - 1


def closes_connections(server, port):
    deadline = time.monotonic() + PATIENCE_S
    while connections(server, port) > 0:
        assert time.monotonic() < deadline, "connections of a vanished client stay open"
        time.sleep(0.1)


@pytest.mark.parametrize(
    "flags",
    [("--tcp-keepalive", 1, "--tcp-user-timeout", 2), ("--tcp-keepalive", 1, "--tcp-user-timeout", 0)],
    ids=["both", "keepalive"],
)
def test_silent_connections_of_a_client_that_vanished_are_closed(hosts, flags):
    server, client = hosts
    port = free_port()
    with Running(server_binary(), "-p", port, "-l", "0.0.0.0", "-t", 2, *flags, within=("ip", "netns", "exec", server)):
        wait_within(server, port)
        wires = [within(client, lambda: wire_to(SERVER, port)) for _ in range(10)]
        for wire in wires:
            wire.exchange(store(b"1"), STORED)
        assert connections(server, port) == len(wires)
        vanish(hosts)
        closes_connections(server, port)
        for wire in wires:
            wire.close()


def test_connections_of_a_client_that_vanished_with_replies_unsent_are_closed(hosts):
    server, client = hosts
    port = free_port()
    flags = ("--tcp-keepalive", 0, "--tcp-user-timeout", 2)
    with Running(server_binary(), "-p", port, "-l", "0.0.0.0", "-t", 2, *flags, within=("ip", "netns", "exec", server)):
        wait_within(server, port)
        wire = within(client, lambda: wire_to(SERVER, port))
        wire.exchange(store(bytes(1_000_000)), STORED)
        # More than the sockets on both sides hold.
        wire.send(b"get a\r\n" * 50)
        wire.receive(1)
        vanish(hosts)
        closes_connections(server, port)
        wire.close()


def wait_within(server, port):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return within(server, lambda: wire_to("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_timeouts_that_are_off_are_the_kernels_own(ours):
    """`ss` shows a keepalive timer if there is one, as it does for memcached."""
    if shutil.which("ss") is None:
        pytest.skip("needs ss of iproute2")
    for flags, has_timer in (((), True), (("--tcp-keepalive", 0), False)):
        port = free_port()
        with Running(server_binary(), "-l", "127.0.0.1", "-p", port, *flags) as server:
            server.wait_for(("127.0.0.1", port))
            with Wire(port) as wire:
                wire.exchange(store(b"1"), STORED)
                shown = subprocess.run(
                    ["ss", "-tnoH", "state", "established", "sport", "=", f":{port}"], capture_output=True, text=True
                ).stdout
                assert ("timer:(keepalive," in shown) == has_timer, shown
