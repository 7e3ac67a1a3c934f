"""Munin's plugin for memcached."""

import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from load import DELETES, HITS, MISSES, SETS, load  # noqa: E402
from recipe import Recipe, printed  # noqa: E402

PLUGIN = "/usr/share/munin/plugins/memcached_"


class Tried(Recipe):
    needs = (
        (("test", "-e", PLUGIN), "munin-plugins-core munin-plugins-extra"),
        (("perl", "-MCache::Memcached", "-e", "1"), "libcache-memcached-perl"),
    )

    def version(self):
        return "Munin " + printed("dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", "munin-plugins-core")

    def figures(self, stand, graph, mode=()):
        """What the plugin prints for a graph."""
        link = stand.folder / f"memcached_{graph}"
        if not link.exists():
            link.symlink_to(PLUGIN)
        environment = {"PATH": "/usr/bin:/bin", "MUNIN_LIBDIR": "/usr/share/munin", "host": "127.0.0.1", "port": "11211"}
        ran = subprocess.run([link, *mode], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return ran.stdout + ran.stderr

    def run(self, stand):
        load()
        for graph in ("bytes", "counters", "rates"):
            shown = self.figures(stand, graph, ("config",))
            stand.check(f"{graph}: its description", "graph_title" in shown, shown)
        values = self.values(stand, "rates")
        for name, wanted in {"cache_hits": HITS, "cache_misses": MISSES, "cmd_set": SETS, "cmd_get": HITS + MISSES}.items():
            stand.equal(f"rates: {name}", values.get(f"memcache_{name}"), wanted)
        values = self.values(stand, "counters")
        stand.equal("counters: items", values.get("memcache_curr_items"), SETS - DELETES)
        stand.check("counters: bytes", values.get("memcache_bytes_allocated", 0) >= 100_000, values)
        values = self.values(stand, "bytes")
        stand.check("bytes: read", values.get("memcache_bytes_read", 0) > 1000 * SETS, values)
        stand.check("bytes: written", values.get("memcache_bytes_written", 0) > 1000 * HITS, values)

    def values(self, stand, graph):
        shown = self.figures(stand, graph)
        return {name: int(value) for name, value in re.findall(r"^(\w+)\.value (\d+)$", shown, re.MULTILINE)}
