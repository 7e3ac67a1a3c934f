"""Client programs in other languages: how each is started, what it needs, and which checks it must report."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
# Where `cargo xtask` puts what it builds and fetches for them.
BUILT = HERE.parent.parent / ".clients"
PATIENCE_S = 120

COMMON = {
    "set and get",
    "add and replace",
    "delete",
    "incr and decr",
    "touch",
    "expiry",
    "large values",
    "many keys",
    "flush",
}
FULL = COMMON | {"multi-get", "append and prepend", "cas"}


@dataclass(frozen=True)
class Program:
    """A client library in its language, speaking one protocol."""

    library: str
    protocol: str
    line: tuple
    checks: frozenset
    needs: tuple
    environment: dict = field(default_factory=dict)
    # Checks that it leaves out over TLS.
    plain_only: frozenset = frozenset()

    @property
    def name(self):
        return f"{self.library}-{self.protocol}"

    def missing(self):
        """What `cargo xtask test --only clients` should have installed, or None."""
        return next((need for need in self.needs if not present(need)), None)

    def run(self, address, authority=None):
        """Runs the program to its end; it checks every answer itself. Over TLS, if it is given the certificate of the server's authority.
        Returns the checks that it reports."""
        tls = {} if authority is None else {"TLS_AUTHORITY": str(authority)}
        finished = subprocess.run(
            [*map(str, self.line), address, self.protocol],
            env=os.environ | self.environment | tls,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return {line.removeprefix("ok ") for line in finished.stdout.splitlines() if line.startswith("ok ")}


def present(need):
    """A file that was built, or a command that succeeds."""
    if isinstance(need, Path):
        return need.exists()
    try:
        return subprocess.run(need, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
    except OSError:
        return False


GO = BUILT / "go" / "client"
JARS = BUILT / "java" / "jars"
MODULES = BUILT / "node" / "node_modules"


def gomemcache():
    return Program("gomemcache", "text", (GO,), FULL | {"many connections"}, (GO,))


def spymemcached(protocol):
    return Program(
        "spymemcached",
        protocol,
        ("java", "-cp", f"{JARS}/*", HERE / "java" / "Main.java"),
        FULL | {"many connections", "stats and version"},
        (JARS, ("javac", "-version")),
    )


def memjs():
    return Program(
        "memjs",
        "binary",
        ("node", HERE / "node" / "main.js"),
        COMMON | {"append", "many connections", "stats"},
        (MODULES, ("node", "--version")),
        {"NODE_PATH": str(MODULES)},
    )


def dalli():
    return Program(
        "dalli",
        "binary",
        ("ruby", HERE / "ruby" / "main.rb"),
        FULL | {"many connections", "stats and version"},
        (("ruby", "-e", "require 'dalli'"),),
        plain_only=frozenset({"multi-get"}),
    )


def php_memcached(protocol):
    extra = {"incr with a first value"} if protocol == "binary" else set()
    return Program(
        "php-memcached",
        protocol,
        ("php", HERE / "php" / "main.php"),
        FULL | {"buffered writes", "stats and version"} | extra,
        (("php", "-r", "exit(extension_loaded('memcached') ? 0 : 1);"),),
    )


PROGRAMS = [
    gomemcache(),
    spymemcached("text"),
    spymemcached("binary"),
    memjs(),
    dalli(),
    php_memcached("text"),
    php_memcached("binary"),
]

# The others have no TLS: spymemcached, memjs, and libmemcached under PHP's extension.
PROGRAMS_WITH_TLS = [gomemcache(), dalli()]
