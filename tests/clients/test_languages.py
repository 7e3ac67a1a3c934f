"""Clients in Go, Java, JavaScript, PHP and Ruby run their own ordinary calls, against two modes of the server and memcached."""

import pytest
from conftest import MODES, PEER, require_protocol, some
from languages import PROGRAMS

CASES = [(mode, program) for program in PROGRAMS for mode in [*some(MODES, program.name), PEER]]


@pytest.mark.parametrize(
    ("shared_server_or_peer", "program"),
    [pytest.param(mode, program, id=f"{mode}-{program.name}") for mode, program in CASES],
    indirect=["shared_server_or_peer"],
)
def test_program(server_or_peer, program):
    if missing := program.missing():
        pytest.skip(f"not installed: {missing}; `cargo xtask test --only clients` says how to have it")
    require_protocol(server_or_peer, program.protocol)
    assert program.run(server_or_peer.url) == program.checks
