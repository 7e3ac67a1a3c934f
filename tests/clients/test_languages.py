"""Clients in Go, Java, JavaScript, PHP and Ruby run their own ordinary calls."""

import pytest
from conftest import require_protocol
from languages import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(server_or_peer, program):
    if missing := program.missing():
        pytest.skip(f"not installed: {missing}; `cargo xtask test --only clients` says how to have it")
    require_protocol(server_or_peer, program.protocol)
    assert program.run(server_or_peer.url) == program.checks
