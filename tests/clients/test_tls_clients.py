"""Client libraries over TLS. Where memcached was built with TLS, the same tests run against it."""

import os
import ssl
import subprocess

import bmemcached
import certificates
import pytest
import redis
from conftest import MODES, PEER
from harness import PATIENCE_S, Server, is_memcached, server_binary
from languages import PROGRAMS_WITH_TLS
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheUnexpectedCloseError
from test_auth import users  # noqa: F401, a fixture

LARGE = bytes(range(256)) * 3900


def peer_with_tls():
    """memcached, if one with TLS is named. 1.6.45 will do; 1.6.18, which Debian has, leaves requests unread that arrive together."""
    peer = os.environ.get("GLIMMER_MEMCACHED")
    if peer is None or b"--enable-ssl" not in subprocess.run([peer, "-h"], capture_output=True).stdout:
        pytest.skip("there is no memcached with TLS; GLIMMER_MEMCACHED names one")
    return peer


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    if not certificates.available():
        pytest.skip("openssl is not installed")
    return certificates.Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def issued(authority):
    return authority.issue("localhost")


@pytest.fixture(scope="session", params=["t1", "t4-erew", "t4-crcw", PEER])
def shared(request, authority, issued):
    binary = peer_with_tls() if request.param == PEER else server_binary()
    flags = MODES[request.param] if not is_memcached(binary) else ("-t", 1)
    with Server(*certificates.flags(issued), *flags, binary=binary, context=authority.context()) as server:
        yield server


@pytest.fixture
def server(shared):
    with shared.wire() as wire:
        wire.exchange(b"flush_all\r\n", b"OK\r\n")
    return shared


@pytest.fixture
def context(authority):
    return authority.context()


def pymemcache_of(server, context):
    return Client(("localhost", server.port), timeout=20, no_delay=True, tls_context=context)


def test_pymemcache(server, context):
    client = pymemcache_of(server, context)
    assert client.set("key", b"value", noreply=False) is True
    assert client.get("key") == b"value" and client.get("absent") is None
    value, unique = client.gets("key")
    assert client.cas("key", b"other", unique, noreply=False) is True
    assert client.append("key", b"!", noreply=False) is True
    assert client.get("key") == b"other!"
    client.set("n", b"41")
    assert client.incr("n", 1) == 42
    items = {f"k{n}": b"%d" % n for n in range(1000)}
    assert client.set_many(items, noreply=False) == []
    assert client.get_many(items) == items
    client.set("large", LARGE)
    assert client.get("large") == LARGE
    assert client.delete("key", noreply=False) is True and client.get("key") is None
    assert b"version" in client.stats()
    client.close()


def test_pymemcache_with_a_pool_and_with_a_ring(server, context):
    address = ("localhost", server.port)
    pool = PooledClient(address, timeout=20, max_pool_size=4, tls_context=context)
    ring = HashClient([address], timeout=20, use_pooling=True, tls_context=context)
    for client in (pool, ring):
        client.set("key", LARGE, noreply=False)
        assert client.get("key") == LARGE
        assert client.get_many(["key", "absent"]) == {"key": LARGE}
        client.close()


def test_many_requests_are_answered_in_order(server):
    with server.wire() as wire:
        wire.send(b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (n, n, b"x" * n) for n in range(500)))
        wire.expect(b"STORED\r\n" * 500)
        wire.send(b"".join(b"get k%d\r\n" % n for n in range(500)))
        wire.expect(b"".join(b"VALUE k%d 0 %d\r\n%s\r\nEND\r\n" % (n, n, b"x" * n) for n in range(500)))


def test_bytes_that_arrive_one_by_one(server):
    with server.wire() as wire:
        for byte in b"set a 0 0 3\r\nabc\r\nget a\r\n":
            wire.send(bytes([byte]))
        wire.expect(b"STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
def test_bmemcached(server, authority, version):
    context = authority.context()
    context.minimum_version = context.maximum_version = version
    client = bmemcached.Client(f"localhost:{server.port}", tls_context=context, compression=None)
    assert client.set("key", "value") and client.get("key") == "value"
    assert client.add("key", "other") is False
    client.set_multi({f"k{n}": str(n) for n in range(200)})
    assert client.get_multi([f"k{n}" for n in range(200)]) == {f"k{n}": str(n) for n in range(200)}
    assert client.set("large", LARGE.decode("latin-1")) and client.get("large") == LARGE.decode("latin-1")
    assert client.delete("key") and client.get("key") is None
    assert client.incr("n", 1) == 0 and client.incr("n", 5) == 5
    client.disconnect_all()


def test_bmemcached_logs_in(authority, issued, users, ours):  # noqa: F811
    with Server(*certificates.flags(issued), "-S", "-Y", users, context=authority.context()) as server:
        for password, admitted in (("bar", True), ("wrong", False)):
            client = bmemcached.Client(f"localhost:{server.port}", "foo", password, tls_context=authority.context())
            try:
                assert (client.set("key", "value") and client.get("key") == "value") is admitted
            except bmemcached.exceptions.MemcachedException:
                assert not admitted
            client.disconnect_all()


def test_redis_py(server, authority):
    if server.is_memcached:
        pytest.skip("memcached has no RESP")
    client = redis.Redis("localhost", server.port, ssl=True, ssl_ca_certs=str(authority.pem), socket_timeout=PATIENCE_S)
    assert client.ping() and client.set("key", "value", ex=100)
    assert client.get("key") == b"value" and 0 < client.ttl("key") <= 100
    with client.pipeline(transaction=False) as pipeline:
        for n in range(1000):
            pipeline.set(f"k{n}", n)
        for n in range(1000):
            pipeline.get(f"k{n}")
        assert pipeline.execute() == [True] * 1000 + [b"%d" % n for n in range(1000)]
    assert client.mget(["k1", "absent", "k999"]) == [b"1", None, b"999"]
    client.set("large", LARGE)
    assert client.get("large") == LARGE
    client.close()


@pytest.mark.parametrize("program", PROGRAMS_WITH_TLS, ids=lambda program: program.name)
def test_program(server, authority, program):
    if missing := program.missing():
        pytest.skip(f"not installed: {missing}; `cargo xtask test --only clients` says how to have it")
    assert program.run(f"localhost:{server.port}", authority.pem) == program.checks - program.plain_only


def s_client(server, authority, *flags, data=b"version\r\nquit\r\n"):
    """What `openssl s_client` prints that sends these bytes."""
    line = ["openssl", "s_client", "-connect", f"localhost:{server.port}", "-CAfile", authority.pem, "-verify_return_error", "-ign_eof"]
    run = subprocess.run([*line, *flags], input=data, capture_output=True, timeout=PATIENCE_S)
    return run.returncode, (run.stdout + run.stderr).decode()


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_s_client_of_each_version(server, authority, version):
    code, text = s_client(server, authority, version, "-quiet", data=b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n")
    assert "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n" in text, text
    assert code == 0, text


def test_s_client_resumes_a_session(server, authority, tmp_path):
    session = tmp_path / "session"
    assert s_client(server, authority, "-tls1_2", "-sess_out", session)[0] == 0
    code, text = s_client(server, authority, "-tls1_2", "-sess_in", session)
    assert code == 0 and "VERSION " in text, text
    # memcached resumes only if it is told to (`ssl_session_cache`).
    assert server.is_memcached or "Reused, TLSv1.2" in text, text


def test_a_client_that_trusts_another_authority_does_not_connect(server, tmp_path):
    other = certificates.Authority(tmp_path, "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        pymemcache_of(server, other.context()).get("key")
    code, text = s_client(server, other)
    assert code != 0 and "verify error" in text, text


def test_a_server_may_want_certificates_of_its_clients(authority, issued, tmp_path):
    known = authority.issue("client")
    foreign = certificates.Authority(tmp_path, "other").issue("stranger")
    flags = certificates.flags(issued, "ssl_verify_mode=2", f"ssl_ca_cert={authority.pem}")
    with Server(*flags, "-t", 1, context=authority.context(known)) as server:
        client = pymemcache_of(server, authority.context(known))
        assert client.set("key", b"value", noreply=False) and client.get("key") == b"value"
        client.close()
        for context in (authority.context(), authority.context(foreign)):
            client = pymemcache_of(server, context)
            # In TLS 1.3 the refusal comes after the client's end of the handshake.
            with pytest.raises((OSError, MemcacheUnexpectedCloseError)):
                client.get("key")
            client.close()
        code, text = s_client(server, authority, "-cert", known[0], "-key", known[1])
        assert code == 0 and "VERSION " in text, text

