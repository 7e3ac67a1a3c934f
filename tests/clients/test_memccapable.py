"""libmemcached's own conformance tests of the text and the binary protocol."""

import re
import shutil
import subprocess

import pytest
from conftest import require_protocol

# Memcached 1.6.45 fails these two, which expect the reply of 1.6.18 to a malformed `delete`; 1.6.18 passes all.
NEWER_WORDS = {"ascii delete", "ascii delete noreply"}
TESTS = {"text": ("-a", "ascii", 27), "binary": ("-b", "binary", 27)}


@pytest.mark.parametrize("protocol", TESTS)
def test_memccapable(server_or_peer, protocol):
    require_protocol(server_or_peer, protocol)
    if shutil.which("memccapable") is None:
        pytest.skip("memccapable is not installed (Debian: libmemcached-tools)")
    flag, prefix, count = TESTS[protocol]
    run = subprocess.run(
        ["memccapable", "-h", "127.0.0.1", "-p", str(server_or_peer.port), flag, "-t", "20"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    # Failures are reported on stderr, and the next name follows on the same line.
    results = dict(re.findall(rf"({prefix} [a-z]+(?: [a-z]+)*) +(\[pass\])?", run.stdout))
    assert len(results) >= count, run.stdout + run.stderr
    failed = {name for name, passed in results.items() if not passed}
    assert failed in (set(), NEWER_WORDS), run.stdout + run.stderr
