"""Every client test runs against one worker, and against four in each access mode and over each table."""

import os
import random
import shutil

import pytest
from harness import Server, is_memcached, server_binary, speaks

MODES = {
    "t1": ("-t", 1),
    "t4-erew": ("-t", 4, "--access", "erew"),
    "t4-crew": ("-t", 4, "--access", "crew"),
    "t4-crcw": ("-t", 4, "--access", "crcw"),
    "t4-crew-memc3": ("-t", 4, "--access", "crew", "--table", "memc3"),
    "t4-crcw-memc3": ("-t", 4, "--access", "crcw", "--table", "memc3"),
}
PEER = "memcached"


def some(modes, program):
    """Two of the modes, by chance: others in each run, the same in all processes of one. All of them if GLIMMER_SEED is set.

    For programs that take seconds to start, and that cannot tell the modes apart unless the server has a fault."""
    if "GLIMMER_SEED" in os.environ:
        return list(modes)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    return random.Random(f"{run} {program}").sample(list(modes), 2)


def start(mode):
    if mode == PEER:
        peer = os.environ.get("GLIMMER_MEMCACHED") or shutil.which("memcached")
        if peer is None:
            pytest.skip("memcached is not installed")
        return Server("-t", 1, binary=peer)
    flags = MODES[mode]
    if is_memcached(server_binary()):
        flags = flags[:2]
    return Server(*flags)


@pytest.fixture(scope="session", params=MODES)
def shared_server(request):
    with start(request.param) as server:
        yield server


@pytest.fixture(scope="session", params=[*MODES, PEER])
def shared_server_or_peer(request):
    with start(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def peer():
    """memcached, for comparison."""
    with start(PEER) as server:
        yield server


def emptied(server):
    with server.wire() as wire:
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
    return server


@pytest.fixture
def server(shared_server):
    """A server of each mode, empty."""
    return emptied(shared_server)


@pytest.fixture
def server_or_peer(shared_server_or_peer):
    """A server of each mode, and memcached itself, which shows that the test expects memcached's behaviour."""
    return emptied(shared_server_or_peer)


@pytest.fixture
def ours():
    """Marks tests of features that memcached lacks: skipped when memcached takes the server's place."""
    if is_memcached(server_binary()):
        pytest.skip("not a thing that memcached does")


def require_protocol(server, protocol):
    """Skips protocols that the server does not speak."""
    if not speaks(server, protocol):
        pytest.skip(f"the server does not speak the {protocol} protocol yet")
