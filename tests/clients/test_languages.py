"""Clients in Go, Java, JavaScript, PHP and Ruby run their own ordinary calls."""

import pytest
from languages import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(server_or_peer, program):
    if missing := program.missing():
        pytest.skip(f"not installed: {missing}; `cargo xtask test --only clients` says how to have it")
    if program.protocol == "binary" and not server_or_peer.is_memcached:
        pytest.skip("the server does not speak the binary protocol yet")
    assert program.run(server_or_peer.url) == program.checks
