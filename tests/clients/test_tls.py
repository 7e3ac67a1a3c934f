"""TLS: what clients of other makes see, and what becomes of those that do not keep to it."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

import binary
from certificates import Authority, openssl
from harness import PATIENCE_S, Server, Wire, free_port, is_memcached, server_binary

HANDSHAKE_S = 5
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def issued(authority):
    return authority.issue("localhost")


class TlsServer(Server):
    """A server with a port that is encrypted, and one that is not, for the test's own questions."""

    def __init__(self, issued, *flags):
        self.plain = free_port()
        self.files = issued
        certificates = f"ssl_chain_cert={issued[0]},ssl_key={issued[1]}"
        super().__init__("-Z", "-o", certificates, "-l", f"notls:127.0.0.1:{self.plain}", "-v", *flags)

    def wire(self):
        return Wire(self.plain)

    def figure(self, name):
        return int(self.stats()[name])

    def await_figure(self, name, value):
        deadline = time.monotonic() + 4 * PATIENCE_S
        while (found := self.figure(name)) < value:
            assert time.monotonic() < deadline, (name, found, value)
            time.sleep(0.01)
        assert found == value, (name, found, value)


class TlsWire(Wire):
    """A connection that is encrypted."""

    def __init__(self, server, context, session=None):
        super().__init__(server.port)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost", session=session)


def context_of(authority, version=None, shows=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.pem)
    if version:
        context.minimum_version = context.maximum_version = version
    if shows:
        context.load_cert_chain(*shows)
    return context


@pytest.fixture
def context(authority):
    return context_of(authority)


@pytest.fixture(scope="module")
def server(issued):
    if is_memcached(server_binary()):
        pytest.skip("it asks for what only this server counts")
    with TlsServer(issued) as server:
        yield server


@pytest.mark.parametrize("version", VERSIONS)
def test_all_protocols_are_spoken(server, authority, version):
    context = context_of(authority, version)
    with TlsWire(server, context) as wire:
        wire.exchange(b"set tls 5 0 3\r\nabc\r\n", b"STORED\r\n")
        wire.exchange(b"mg tls v f\r\n", b"VA 3 f5\r\nabc\r\n")
        assert wire.socket.version() == version.name.replace("_", ".")
        assert wire.socket.selected_alpn_protocol() is None
    with TlsWire(server, context) as wire:
        wire.send(b"*2\r\n$3\r\nGET\r\n$3\r\ntls\r\n")
        wire.expect(b"$3\r\nabc\r\n")
    with TlsWire(server, context) as wire:
        wire.send(binary.request(binary.GET, key=b"tls"))
        assert wire.receive(24 + 4 + 3).endswith(b"\0\0\0\x05abc")


@pytest.mark.parametrize("version", VERSIONS)
def test_values_of_every_size_arrive(server, authority, version):
    with TlsWire(server, context_of(authority, version)) as wire:
        for size in (0, 1, 16_000, 16_384, 16_385, 100_000, 1_000_000):
            value = os.urandom(size)
            wire.exchange(b"set big 0 0 %d\r\n%s\r\n" % (size, value), b"STORED\r\n")
            wire.exchange(b"get big\r\n" * 2, (b"VALUE big 0 %d\r\n%s\r\nEND\r\n" % (size, value)) * 2)


def test_replies_of_a_burst_leave_in_few_records(server, authority):
    """What is sent is looked at between two connections."""
    with TlsWire(server, context_of(authority)) as wire:
        wire.exchange(b"set few 0 0 1\r\na\r\n", b"STORED\r\n")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(server.address, timeout=PATIENCE_S) as plain:
        def pump(call):
            while True:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65536))

        pump(client.do_handshake)
        client.write(b"get few\r\n" * 1_000)
        plain.sendall(outgoing.read())
        replies, received = b"", b""
        while len(replies) < 1_000 * len(b"VALUE few 0 1\r\na\r\nEND\r\n"):
            data = plain.recv(1 << 20)
            received += data
            incoming.write(data)
            try:
                while True:
                    replies += client.read(1 << 20)
            except ssl.SSLWantReadError:
                pass
    records = 0
    while received:
        received = received[5 + int.from_bytes(received[3:5], "big") :]
        records += 1
    # Two tickets, and a record for what a turn of the worker has room for.
    assert records <= 20, records


def test_openssl_connects(server, authority):
    for version in ("-tls1_2", "-tls1_3"):
        words = ["openssl", "s_client", "-connect", server.url, "-quiet", version, "-CAfile", authority.pem, "-verify_return_error"]
        done = subprocess.run(words, input=b"version\r\nquit\r\n", capture_output=True, timeout=PATIENCE_S)
        assert done.stdout.startswith(b"VERSION "), done


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_are_resumed(server, authority, version):
    context = context_of(authority, version)
    with TlsWire(server, context) as wire:
        wire.exchange(b"get a\r\n", b"END\r\n")
        assert not wire.socket.session_reused
        session = wire.socket.session
    before = server.figure("ssl_resumed_sessions")
    with TlsWire(server, context, session) as wire:
        wire.exchange(b"get a\r\n", b"END\r\n")
        assert wire.socket.session_reused
    assert server.figure("ssl_resumed_sessions") == before + 1


@pytest.mark.parametrize("mode, accepted", [(0, "any none root foreign"), (1, "any none root"), (2, "any root"), (3, "any root")])
def test_clients_show_certificates(ours, authority, issued, tmp_path, mode, accepted):
    good = authority.issue("web-1")
    foreign = Authority(tmp_path, "stranger").issue("web-2")
    root = authority.pem, authority.key
    # Another address may ask for more, or for nothing.
    with TlsServer(issued, "-o", f"ssl_verify_mode={mode},ssl_ca_cert={authority.pem}") as server:
        for version in VERSIONS:
            for kind, shows in (("any", good), ("none", None), ("root", root), ("foreign", foreign)):
                context = context_of(authority, version, shows)
                is_accepted = kind in accepted.split()
                try:
                    with TlsWire(server, context) as wire:
                        wire.exchange(b"get a\r\n", b"END\r\n")
                        assert is_accepted, (kind, version)
                        names = [value for name, value in server.stats("conns").items() if name.endswith(":tls_client")]
                        name = "root" if shows == root else "web-1"
                        assert names == ([name] if mode and shows else [])
                except (ssl.SSLError, ConnectionError, AssertionError):
                    assert not is_accepted, (kind, version)


def test_each_address_may_ask_for_something_else(ours, authority, issued):
    lax, strict = free_port(), free_port()
    flags = ["-o", f"ssl_ca_cert={authority.pem},ssl_verify_mode=2", "-l", f"btls:127.0.0.1:{lax}"]
    with TlsServer(issued, *flags, "-l", f"mtls:127.0.0.1:{strict}") as server:
        context = context_of(authority)
        first = server.port
        for port, is_accepted in ((first, False), (lax, True), (strict, False)):
            server.port = port
            try:
                with TlsWire(server, context) as wire:
                    wire.exchange(b"get a\r\n", b"END\r\n")
                assert is_accepted
            except (ssl.SSLError, ConnectionError, AssertionError):
                assert not is_accepted, port


def test_a_plain_request_to_the_encrypted_port_is_refused(server):
    watcher = server.wire()
    watcher.send(b"watch connevents\r\n")
    assert watcher.line() == b"OK\r\n"
    for said in (b"get a\r\n", b"\x80\0\0\1" + b"\0" * 20, b"*1\r\n$4\r\nPING\r\n", os.urandom(100)):
        before = server.figure("ssl_handshake_errors")
        with Wire(server.port) as wire:
            wire.send(said)
            assert b"END" not in wire.receive(1_000)
        server.await_figure("ssl_handshake_errors", before + 1)
        while b" type=conntlserr " not in (line := watcher.line()):
            assert line
        assert line.endswith(b" msg=the handshake failed\n"), line
    watcher.close()
    # One that only looks whether the port is open has done nothing wrong.
    before = server.figure("ssl_handshake_errors")
    Wire(server.port).close()
    server.await_figure("ssl_handshake_errors", before)


def test_tls_to_the_plain_port_is_refused(server, context):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.port, encrypted = server.plain, server.port
        try:
            TlsWire(server, context)
        finally:
            server.port = encrypted


def test_wrong_records_end_the_connection(server, context):
    for wrong in (b"\x17\x03\x03\x00\x20" + b"x" * 32, b"\x17\x03\x03\xff\xff", b"get a\r\n", b"\x15\x03\x03\0\2\1\0"):
        before = server.figure("ssl_proto_errors")
        wire = TlsWire(server, context)
        wire.exchange(b"get a\r\n", b"END\r\n")
        os.write(wire.socket.fileno(), wrong)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            if not wire.socket.recv(100):
                raise ConnectionError("it is closed")
        wire.close()
        server.await_figure("ssl_proto_errors", before + 1)


def test_connections_end_in_order(server, context):
    before = server.figure("ssl_proto_errors")
    # The client says that it sends no more: it is answered, and told that nothing more comes.
    with TlsWire(server, context) as wire:
        wire.send(b"get a\r\n")
        wire.expect(b"END\r\n")
        wire.socket.unwrap()
    # It ends without a word, or with half a record, or with a reset.
    wire = TlsWire(server, context)
    wire.exchange(b"get a\r\n", b"END\r\n")
    os.close(wire.socket.detach())
    assert server.figure("ssl_proto_errors") == before
    wire = TlsWire(server, context)
    os.write(wire.socket.fileno(), b"\x17\x03\x03\x01\x00half")
    os.close(wire.socket.detach())
    server.await_figure("ssl_proto_errors", before + 1)
    wire = TlsWire(server, context)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    os.close(wire.socket.detach())
    with TlsWire(server, context) as wire:
        wire.exchange(b"get a\r\n", b"END\r\n")
        # The server closes, and says so.
        wire.send(b"quit\r\n")
        wire.expect_closed()
    server.await_figure("ssl_proto_errors", before + 1)


def test_a_client_that_hangs_up_with_its_last_handshake_message_is_answered(server, authority):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context_of(authority, ssl.TLSVersion.TLSv1_3).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(server.address, timeout=PATIENCE_S) as plain:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        # The end of the handshake, what follows and the end leave together.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        client.write(b"set last 0 0 6000 noreply\r\n" + b"x" * 6_000 + b"\r\nmg last s\r\n")
        plain.sendall(outgoing.read())
        plain.shutdown(socket.SHUT_WR)
        while data := plain.recv(65536):
            incoming.write(data)
        assert client.read(100) == b"HD s6000\r\n"


def test_a_client_that_hangs_up_during_its_handshake_has_failed(server):
    errors, timeouts = server.figure("ssl_handshake_errors"), server.figure("ssl_handshake_timeouts")
    for nth in range(1, 4):
        with Wire(server.port) as wire:
            wire.send(b"\x16\x03\x01\x02\x00\x01")
        server.await_figure("ssl_handshake_errors", errors + nth)
    assert server.figure("ssl_handshake_timeouts") == timeouts


def test_a_client_is_told_why_its_handshake_fails(server):
    """The certificate is for ECDSA. The server has said something before it finds out."""
    words = ["openssl", "s_client", "-connect", server.url, "-tls1_3", "-sigalgs", "RSA+SHA256"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
    assert b"alert handshake failure" in done.stderr, done


def test_silent_clients_keep_nobody_out(ours, issued, context):
    """They have sent most of a record, which the server keeps, until almost all memory for TLS is taken."""
    with TlsServer(issued, "-m", "16", "-I", "512k", "-c", "300", "-t", "2") as server, TlsWire(server, context) as idle:
        silent = []
        for size, count in ((16_000, 150), (4_000, 30), (1_000, 30)):
            for _ in range(count):
                try:
                    silent.append(wire := TlsWire(server, context))
                    os.write(wire.socket.fileno(), b"\x17\x03\x03" + size.to_bytes(2) + b"x" * (size - 5))
                except (ssl.SSLError, ConnectionError):
                    pass
        deadline, served = time.monotonic() + 2 * PATIENCE_S, 0
        while served < 10:
            assert time.monotonic() < deadline, server.stats()
            try:
                with TlsWire(server, context) as wire:
                    wire.exchange(b"get a\r\n", b"END\r\n")
                    served += 1
            except (ssl.SSLError, ConnectionError, AssertionError):
                served = 0
                time.sleep(0.05)
        assert server.figure("ssl_memory_kicks") > 0
        idle.exchange(b"get a\r\n", b"END\r\n")
        for wire in silent:
            wire.close()


def test_a_handshake_that_never_ends_is_ended(server):
    before = server.figure("ssl_handshake_timeouts")
    silent, halfway = Wire(server.port), Wire(server.port)
    halfway.send(b"\x16\x03\x01\x02\x00\x01")
    server.await_figure("ssl_handshake_timeouts", before + 2)
    for wire in (silent, halfway):
        wire.expect_closed()


def test_certificates_are_renewed_under_load(ours, authority, tmp_path):
    """A thousand times, by command, while clients come, go and ask. Nobody notices."""
    folder = Authority(tmp_path, "other")
    first, second = authority.issue("first"), authority.issue("second", "rsa")
    issued = tmp_path / "chain.pem", tmp_path / "key.pem"

    def install(pair):
        for source, target in zip(pair, issued):
            target.write_bytes(source.read_bytes())

    install(first)
    with TlsServer(issued) as server:
        context = context_of(authority)
        failures, stop = [], threading.Event()

        def ask():
            try:
                wire = TlsWire(server, context)
                while not stop.is_set():
                    with TlsWire(server, context) as other:
                        for asked in (wire, other):
                            asked.exchange(b"set a 0 0 1\r\nb\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nb\r\nEND\r\n")
                wire.close()
            except Exception as failure:
                failures.append(failure)

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        with server.wire() as wire:
            for time_ in range(1_000):
                if time_ % 100 == 0:
                    install(second if time_ % 200 else first)
                wire.exchange(b"refresh_certs\r\n", b"OK\r\n")
            assert server.figure("ssl_cert_refreshes") == 1_000
            # What is wrong is said in one line, and the old certificate stays.
            issued[1].write_bytes(folder.key.read_bytes())
            wire.send(b"refresh_certs\r\n")
            assert b"SERVER_ERROR -o ssl_key=" in (said := wire.line()) and b"is not the key" in said, said
        os.kill(server.pid, signal.SIGHUP)
        server.await_figure("ssl_cert_refresh_errors", 2)
        install(second)
        os.kill(server.pid, signal.SIGHUP)
        server.await_figure("ssl_cert_refreshes", 1_001)
        assert server.figure("time_since_server_cert_refresh") <= PATIENCE_S
        stop.set()
        for asker in askers:
            asker.join()
        assert not failures, failures
        assert server.figure("ssl_handshake_errors") == 0
        with TlsWire(server, context) as wire:
            names = dict(part[0] for part in wire.socket.getpeercert()["subject"])
            assert names["commonName"] == "second"


def test_certificates_are_found_from_the_background(ours, issued, tmp_path):
    """With -d, the process goes to another folder. It renews what a relative path named at its start."""
    for source, name in zip(issued, ("chain.pem", "key.pem")):
        (tmp_path / name).write_bytes(source.read_bytes())
    port, pid_file = free_port(), tmp_path / "pid"
    flags = ["-d", "-P", pid_file, "-Z", "-o", "ssl_chain_cert=chain.pem,ssl_key=key.pem", "-l", f"notls:127.0.0.1:{port}"]
    subprocess.run([server_binary(), "serve", *flags], timeout=PATIENCE_S, cwd=tmp_path, check=True)
    try:
        with Wire(port) as wire:
            wire.exchange(b"refresh_certs\r\n", b"OK\r\n")
    finally:
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


def test_wrong_files_prevent_the_start(ours, authority, issued, tmp_path):
    chain, key = issued
    foreign = Authority(tmp_path, "stranger").issue("foreign")
    unreadable = tmp_path / "none.pem"
    der = tmp_path / "der.pem"
    openssl("x509", "-in", chain, "-outform", "der", "-out", der)
    expired = tmp_path / "expired.pem"
    openssl("x509", "-req", "-in", authority.folder / "localhost.csr", "-signkey", key, "-days", "-1", "-out", expired)
    for files, said in (
        ((unreadable, key), f"-o ssl_chain_cert={unreadable}: cannot be read"),
        ((der, key), f"-o ssl_chain_cert={der}: holds no certificate as PEM text"),
        ((expired, key), f"-o ssl_chain_cert={expired}: the certificate has expired on"),
        ((chain, foreign[1]), f"-o ssl_key={foreign[1]}: is not the key of the certificate"),
        ((chain, unreadable), f"-o ssl_key={unreadable}: cannot be read"),
    ):
        flags = ["serve", "-p", str(free_port()), "-Z", "-o", f"ssl_chain_cert={files[0]},ssl_key={files[1]}"]
        done = subprocess.run([server_binary(), *flags], capture_output=True, text=True, timeout=PATIENCE_S)
        lines = done.stderr.splitlines()
        assert done.returncode == 64 and len(lines) == 1 and said in lines[0], (done, said)
    for flags in (["-U", "0"], ["--native-port", str(free_port())]):
        words = ["serve", "-p", str(free_port()), "-Z", "-o", f"ssl_chain_cert={chain},ssl_key={unreadable}", *flags]
        done = subprocess.run([server_binary(), *words], capture_output=True, text=True, timeout=PATIENCE_S)
        expected = "-o ssl_key" if flags[1] == "0" else "-Z encrypts TCP only"
        assert done.returncode == 64 and expected in done.stderr, done
