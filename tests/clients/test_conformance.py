"""The protocols, clause by clause, against every server of the test run."""

import binary
import pytest
from clauses_binary import BINARY
from clauses_meta import META_READS
from clauses_meta_writes import META_WRITES
from conformance import converse
from conftest import emptied, require_protocol
from harness import in_a_moment, version


def require(server, protocol, row):
    require_protocol(server, protocol)
    if version(server) < row.since:
        pytest.skip(f"new in memcached {'.'.join(map(str, row.since))}")


@pytest.mark.parametrize("row", META_READS + META_WRITES, ids=lambda row: row.name)
def test_meta(server_or_peer, row):
    require(server_or_peer, "meta", row)

    def run():
        with emptied(server_or_peer).wire() as wire:
            converse(wire, row, barrier=(b"mn\r\n", b"MN\r\n"), anything=rb"\d+")

    in_a_moment(run)


@pytest.mark.parametrize("row", BINARY, ids=lambda row: row.name)
def test_binary(server_or_peer, row):
    require(server_or_peer, "binary", row)
    barrier = 0xB0B0B0B0
    with server_or_peer.wire() as wire:
        converse(
            wire,
            row,
            barrier=(binary.request(binary.NOOP, opaque=barrier), binary.response(binary.NOOP, opaque=barrier)),
            anything=b".{8}",
        )
