"""What a service manager is told, and the unit file for it."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from harness import PATIENCE_S, Server

UNIT = Path(__file__).parents[2] / "contrib/systemd/glimmer.service"


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

        with Server("-t", 2, environment={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}) as server:
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


def test_without_a_service_manager_nothing_is_told(ours):
    with Server(environment={"WATCHDOG_USEC": "200000"}) as server:
        threads = {path.read_text().strip() for path in Path(f"/proc/{server.pid}/task").glob("*/comm")}
        assert "watchdog" not in threads


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian: systemd)")
def test_the_unit_is_sound_and_leaves_the_service_little(tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/glimmer", "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_COLORS": "0"},
    )
    assert rated.returncode == 0, rated.stdout.splitlines()[-1]
