"""collectd's plugin for memcached."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from load import DELETES, HITS, MISSES, SETS, load  # noqa: E402
from recipe import Recipe, printed  # noqa: E402
from stand import until  # noqa: E402

PLUGINS = "/usr/lib/collectd"
CONFIGURATION = """
Hostname "host"
Interval 1
BaseDir "{folder}"
PIDFile "{folder}/pid"
TypesDB "/usr/share/collectd/types.db"
LoadPlugin memcached
LoadPlugin csv
<Plugin memcached>
  <Instance "shop">
    Address "127.0.0.1"
    Port "11211"
  </Instance>
</Plugin>
<Plugin csv>
  DataDir "{folder}/data"
  StoreRates false
</Plugin>
"""


class Tried(Recipe):
    needs = ((("test", "-e", f"{PLUGINS}/memcached.so"), "collectd-core"),)

    def version(self):
        return "collectd " + printed("dpkg-query", "--show", "--showformat", "${source:Upstream-Version}", "collectd-core")

    def run(self, stand):
        load()
        (stand.folder / "collectd.conf").write_text(CONFIGURATION.format(folder=stand.folder))
        stand.spawn("/usr/sbin/collectd", "-f", "-C", stand.folder / "collectd.conf")
        data = stand.folder / "data/host/memcached-shop"
        self.seen = {}

        def is_complete():
            self.seen = {path.name.rsplit("-", 3)[0]: last(path) for path in data.glob("*")}
            return all(name in self.seen and self.seen[name] for name in wanted)

        wanted = {
            "memcached_command-set": [SETS],
            "memcached_command-get": [HITS + MISSES],
            "memcached_ops-hits": [HITS],
            "memcached_ops-misses": [MISSES],
            "memcached_ops-evictions": [0],
            "memcached_items-current": [SETS - DELETES],
        }
        until("collectd has written every figure", is_complete)
        for name, figures in wanted.items():
            stand.equal(name, self.seen[name], [float(figure) for figure in figures])
        for name in ("df-cache", "memcached_octets", "ps_cputime", "ps_count"):
            stand.check(name, bool(self.seen.get(name) or [part for part in self.seen if part.startswith(name)]), sorted(self.seen))


def last(path):
    """The figures of the last line of a file, after the time."""
    lines = path.read_text().strip().splitlines()[1:]
    return [float(cell) for cell in lines[-1].split(",")[1:]] if lines else []
