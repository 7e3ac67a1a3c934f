"""Generated requests are answered as memcached answers them. Every run is the same unless GLIMMER_SEED is set."""

import os
from pathlib import Path

import pytest
from conftest import require_protocol
from differential import KINDS, compare
from known_differences import KNOWN

DOCUMENT = Path(__file__).parents[2] / "docs" / "memcached-differences.md"
REQUESTS = 1000
SEED = int(os.environ.get("GLIMMER_SEED", "1"))


@pytest.mark.parametrize("kind", KINDS)
def test_generated_requests(shared_server, peer, kind):
    require_protocol(shared_server, kind.removeprefix("malformed-").removesuffix("-refusals"))
    print(f"GLIMMER_SEED={SEED}")
    outcome = compare(peer, shared_server, SEED, REQUESTS, kinds=[kind])
    print(outcome)
    assert outcome.requests >= REQUESTS
    assert outcome.unknown == [], "\n".join(map(str, outcome.unknown))


def test_known_differences_are_explained():
    text = DOCUMENT.read_text()
    assert [known.name for known in KNOWN if f"`{known.name}`" not in text] == []
