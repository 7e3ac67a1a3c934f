"""libmemcached's own conformance tests of the text protocol."""

import re
import shutil
import subprocess

import pytest

# Tests that may fail, each with the reason. None does.
KNOWN_FAILURES = {}


def test_memccapable(server_or_peer):
    if shutil.which("memccapable") is None:
        pytest.skip("memccapable is not installed (Debian: libmemcached-tools)")
    run = subprocess.run(
        ["memccapable", "-h", "127.0.0.1", "-p", str(server_or_peer.port), "-a", "-t", "20"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    results = dict(re.findall(r"^(ascii [a-z ]+?)\s+\[?(pass|FAIL)", run.stdout, re.MULTILINE))
    assert len(results) >= 27, run.stdout + run.stderr
    failed = {name for name, result in results.items() if result != "pass"}
    assert failed == set(KNOWN_FAILURES), run.stdout + run.stderr
