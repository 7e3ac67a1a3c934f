"""What a service manager is told, the sockets that it passes on, and the unit files for it."""

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import PATIENCE_S, Server, server_binary

UNITS = Path(__file__).parents[2] / "contrib/systemd"
# The first descriptor that a service manager passes on.
FIRST = 3
# A process that does not outlive the one that started it.
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def test_systemd_hears_of_start_reload_watch_and_stop(ours, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(PATIENCE_S)

        def hear(*expected, passing=()):
            """The next message has these lines, after any number of those to pass over."""
            while (lines := manager.recv(4096).decode().splitlines()) in passing:
                pass
            assert [line.split("=")[0] for line in lines] == [line.split("=")[0] for line in expected]
            assert set(line for line in expected if not line.endswith("=")) <= set(lines), lines
            return lines

        with Server("-t", 2, environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000"}) as server:
            alive = ["WATCHDOG=1"]
            _, status = hear("READY=1", "STATUS=", passing=[alive])
            assert status.startswith("STATUS=glimmer ") and f"127.0.0.1:{server.port}" in status
            for _ in range(5):
                hear("WATCHDOG=1")
            os.kill(server.pid, signal.SIGHUP)
            hear("RELOADING=1", "MONOTONIC_USEC=", passing=[alive])
            hear("READY=1", passing=[alive])
            server.process.send_signal(signal.SIGTERM)
            hear("STOPPING=1", passing=[alive])
            assert server.ended() == 0
        assert "WARN" not in server.errors.replace("WARN running as root", ""), server.errors


def test_systemd_is_asked_for_time_to_look_at_a_memory_file(ours, tmp_path):
    path, file = str(tmp_path / "notify"), tmp_path / "items"
    Server("-e", file).stop(signal.SIGKILL)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(PATIENCE_S)
        with Server("-e", file, environment={"NOTIFY_SOCKET": path}):
            assert manager.recv(4096).startswith(b"EXTEND_TIMEOUT_USEC=")
            assert manager.recv(4096).startswith(b"READY=1")


def test_without_a_service_manager_nothing_is_told(ours):
    with Server(environment={"WATCHDOG_USEC": "200000"}) as server:
        threads = {path.read_text().strip() for path in Path(f"/proc/{server.pid}/task").glob("*/comm")}
        assert "watchdog" not in threads


def activated(sockets, *flags, names=None, **variables):
    """Starts the server as a service manager does that passes these sockets on. A variable of None is left out. The server ends with the
    test's process at the latest."""
    # Out of the way of the numbers that they are to have.
    kept = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 100) for each in sockets]

    def pass_on():
        for number, each in enumerate(kept, FIRST):
            os.dup2(each, number, inheritable=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    variables = {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": names, "LISTEN_PID": "$$", **variables}
    set_here = [f"{name}={value}" for name, value in variables.items() if value is not None]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GLIMMER_", "LISTEN_"))}
    server = subprocess.Popen(
        ["sh", "-c", f'{" ".join(set_here)} exec "$@"', "sh", server_binary(), "serve", *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=own,
        pass_fds=range(FIRST, FIRST + len(kept)),
        preexec_fn=pass_on,
    )
    for each in kept:
        os.close(each)
    return server


def output(server):
    """What a server printed that has ended, or that a signal is to end."""
    try:
        return server.communicate(timeout=PATIENCE_S)[0]
    finally:
        server.kill()


@contextmanager
def listening(*families):
    """A socket for each: of TCP, of UDP, or at a path."""
    sockets = []
    for family in families:
        if isinstance(family, Path):
            each = socket.socket(socket.AF_UNIX)
            each.bind(str(family))
        else:
            each = socket.socket(socket.AF_INET, family)
            each.bind(("127.0.0.1", 0))
        if each.type == socket.SOCK_STREAM:
            each.listen()
        sockets.append(each)
    try:
        yield sockets
    finally:
        for each in sockets:
            each.close()


def ask(address, request=b"get absent\r\n", reply=b"END\r\n"):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(PATIENCE_S)
        client.connect(address)
        client.sendall(request)
        assert client.recv(4096) == reply


def test_sockets_of_a_service_manager_take_the_place_of_addresses(ours, tmp_path):
    path = tmp_path / "socket"
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    with listening(stream, path, datagram, stream, stream) as sockets:
        tcp, unix, udp, http, other = (each.getsockname() for each in sockets)
        # An address that cannot be had is not asked for.
        flags = ["-l", "192.0.2.1", "-U", "1", "--http", "192.0.2.1:11211", "-t", "4"]
        names = "memcached::glimmer.socket:http:notls"
        server = activated(sockets, *flags, names=names)
        for address in (tcp, unix, other):
            # More than one, so that they go to several workers.
            for _ in range(8):
                ask(address)
        ask(tcp, b"set key 0 0 5\r\nvalue\r\n", b"STORED\r\n")
        with socket.socket(socket.AF_INET, datagram) as client:
            client.settimeout(PATIENCE_S)
            client.connect(udp)
            client.send(b"\0\1\0\0\0\1\0\0get key\r\n")
            assert client.recv(4096) == b"\0\1\0\0\0\1\0\0VALUE key 0 5\r\nvalue\r\nEND\r\n"
        with urllib.request.urlopen(f"http://127.0.0.1:{http[1]}/healthz", timeout=PATIENCE_S) as page:
            assert page.status == 200
        server.send_signal(signal.SIGTERM)
        printed = output(server)
        assert server.returncode == 0, printed
        ready = next(line for line in printed.splitlines() if " ready on " in line)
        for port in (tcp[1], udp[1], http[1], other[1]):
            assert f"127.0.0.1:{port}" in ready
        assert unix in ready and "192.0.2.1" not in ready


def test_the_port_of_a_socket_has_one_use(ours):
    with listening(socket.SOCK_STREAM) as sockets:
        port = sockets[0].getsockname()[1]
        server = activated(sockets, "--http", f"127.0.0.1:{port}")
        printed = output(server)
    assert server.returncode == 64
    assert printed == f"glimmer: --http and -p name the same port, {port}; choose another for one of them\n"


def test_clients_wait_while_a_service_restarts(ours):
    def exchange(client):
        client.sendall(b"version\r\n")
        assert client.recv(4096).startswith(b"VERSION ")

    with listening(socket.SOCK_STREAM) as sockets:
        address = sockets[0].getsockname()
        # While the first client stays, the server accepts no second one.
        first = activated(sockets, "-c", "1", "-o", "no_maxconns_fast")
        with socket.create_connection(address, timeout=PATIENCE_S) as served:
            exchange(served)
            with socket.create_connection(address, timeout=PATIENCE_S) as waiting:
                first.send_signal(signal.SIGTERM)
                output(first)
                assert first.returncode == 0
                second = activated(sockets)
                # The second server has it, and keeps it.
                exchange(waiting)
                exchange(waiting)
                second.send_signal(signal.SIGTERM)
                output(second)


def test_what_cannot_be_served_is_told_in_a_line(ours, tmp_path):
    with listening(socket.SOCK_STREAM) as (good,), open("/dev/null") as file:
        with socket.socket(socket.AF_INET) as deaf, socket.socketpair()[0] as connection:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as packets:
                for sockets, names, variables, expected in [
                    ([good, file], "a:b", {}, "descriptor 4 (b) is not a socket"),
                    ([deaf], None, {}, "descriptor 3 (unknown) does not listen: a socket unit needs Accept=no"),
                    ([connection], None, {}, "does not listen: a socket unit needs Accept=no"),
                    ([packets], None, {}, "descriptor 3 (unknown) is no socket of TCP, of UDP, or for connections at a path"),
                    ([packets], "http", {}, "descriptor 3 (http) is no socket of TCP"),
                    ([good], "btls", {}, "descriptor 3 (btls) is for a server with TLS (-Z)"),
                    ([good], "a:b", {}, "cannot be taken over: invalid LISTEN_FDNAMES"),
                    ([good], None, {"LISTEN_FDS": "many"}, "cannot be taken over: invalid LISTEN_FDS"),
                    ([], None, {"LISTEN_FDS": "1"}, "cannot be taken over: Bad file descriptor"),
                ]:
                    server = activated(sockets, "-p", "0", names=names, **variables)
                    printed = output(server)
                    assert server.returncode == 71 and expected in printed, (expected, printed)
                    assert printed.startswith("glimmer: LISTEN_FDS: ") and len(printed.splitlines()) == 1


def test_sockets_for_another_process_are_not_taken(ours):
    with listening(socket.SOCK_STREAM) as (passed,):
        for names, variables in ((None, {}), ("a:b", {}), ("a:b", {"LISTEN_FDS": None})):
            server = activated([passed], "-l", "127.0.0.1", "-p", "-1", names=names, LISTEN_PID=os.getpid(), **variables)
            ready = server.stdout.readline()
            server.send_signal(signal.SIGTERM)
            output(server)
            assert " ready on 127.0.0.1:" in ready and f":{passed.getsockname()[1]} " not in ready


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian: systemd)")
def test_the_units_are_sound_and_leaves_the_service_little(tmp_path):
    for name in ("glimmer.service", "glimmer.socket"):
        (tmp_path / name).write_text((UNITS / name).read_text().replace("/usr/local/bin/glimmer", "/bin/true"))
    unit = tmp_path / "glimmer.service"

    def verify():
        command = ["systemd-analyze", "verify", unit, tmp_path / "glimmer.socket"]
        verified = subprocess.run(command, capture_output=True, text=True)
        assert (verified.returncode, verified.stderr) == (0, "")

    verify()
    drop_ins = tmp_path / "glimmer.service.d"
    for drop_in in UNITS.glob("*.conf"):
        drop_ins.mkdir()
        shutil.copy(drop_in, drop_ins)
        verify()
        shutil.rmtree(drop_ins)
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_COLORS": "0"},
    )
    assert rated.returncode == 0, rated.stdout.splitlines()[-1]
