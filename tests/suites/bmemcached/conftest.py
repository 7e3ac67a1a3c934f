"""The package does not include its own conftest.py. This one starts the servers for its tests."""

import os
import socket
import subprocess
import time

import pytest

USER, PASSWORD = "user", "secret"


def free_port(host, family):
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


IPV6_PORT = free_port("::1", socket.AF_INET6)


def start(host, port, *flags):
    server = subprocess.Popen(["memcached", "-l", host, "-p", str(port), *flags])
    for _ in range(500):
        try:
            socket.create_connection((host, port)).close()
            return server
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.02)
    server.kill()
    server.wait()
    return None


def stop(server):
    server.terminate()
    server.wait()


@pytest.fixture(scope="session", autouse=True)
def memcached_ipv6():
    server = start("::1", IPV6_PORT)
    yield
    stop(server)


@pytest.fixture(scope="session", autouse=True)
def memcached_socket():
    path = "/tmp/memcached.sock"
    server = subprocess.Popen(["memcached", "-s", path])
    while not os.path.exists(path):
        assert server.poll() is None
        time.sleep(0.02)
    yield
    stop(server)


@pytest.fixture
def memcached_sasl(tmp_path):
    """memcached takes its users from the machine's SASL library, which is not changed."""
    users = tmp_path / "users"
    users.write_text(f"{USER}:{PASSWORD}\n")
    port = free_port("127.0.0.1", socket.AF_INET)
    server = None
    if os.environ["SERVER"] == "glimmer":
        server = start("127.0.0.1", port, "-S", "-Y", str(users))
    if server is None:
        pytest.skip("the server has no users of its own")
    yield port, USER, PASSWORD
    stop(server)
