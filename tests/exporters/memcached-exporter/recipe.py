"""Prometheus' memcached_exporter."""

import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from load import DELETES, HITS, MISSES, SETS, load  # noqa: E402
from recipe import NotRun, Recipe  # noqa: E402

PORT = 9150


class Tried(Recipe):
    @property
    def program(self):
        return os.environ.get("EXPORTER")

    def fetch_once(self, may_install=False):
        if not self.program:
            raise NotRun("memcached_exporter comes from no package registry: give its program, --exporter PATH")

    def version(self):
        shown = subprocess.run([self.program, "--version"], capture_output=True, text=True)
        found = re.search(r"version (\S+)", shown.stdout + shown.stderr)
        return f"memcached_exporter {found[1] if found else ''}".strip()

    def run(self, stand):
        load()
        stand.spawn(self.program, "--memcached.address=127.0.0.1:11211", f"--web.listen-address=127.0.0.1:{PORT}", port=PORT)
        text = stand.get(f"http://127.0.0.1:{PORT}/metrics").text
        figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("memcached_"))
        for name, wanted in {
            "memcached_up": 1,
            'memcached_commands_total{command="set",status="hit"}': SETS,
            'memcached_commands_total{command="get",status="hit"}': HITS,
            'memcached_commands_total{command="get",status="miss"}': MISSES,
            'memcached_commands_total{command="delete",status="hit"}': DELETES,
            "memcached_current_items": SETS - DELETES,
            "memcached_items_total": SETS,
            "memcached_items_evicted_total": 0,
            "memcached_limit_bytes": 64 << 20,
            "memcached_max_connections": stand.server.figure("max_connections"),
        }.items():
            stand.equal(name, float(figures.get(name, "nan")), float(wanted))
        for name in ("current_connections", "current_bytes", "read_bytes_total", "written_bytes_total"):
            stand.check(f"memcached_{name}", float(figures.get(f"memcached_{name}", 0)) > 0)
        for name in ("uptime_seconds", "process_user_cpu_seconds_total"):
            stand.check(f"memcached_{name}", float(figures.get(f"memcached_{name}", -1)) >= 0)
        version = stand.server.ask(b"version", b"\r\n")[0].split()[1]
        stand.check("memcached_version", f'memcached_version{{version="{version}"}}' in figures, version)
        of_slabs = [name for name in figures if name.startswith("memcached_slab_")]
        stand.check("figures of slabs", len(of_slabs) > 5, of_slabs)
        stand.server.stop()
        away = stand.get(f"http://127.0.0.1:{PORT}/metrics").text
        stand.check("away: memcached_up is 0", "\nmemcached_up 0" in away)
