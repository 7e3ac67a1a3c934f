"""Three servers behind what places keys on them: a small part of `cargo xtask fleet`."""

import sys
from pathlib import Path

import pytest
from harness import server_binary

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fleet"))
from engines import CONFIGURATIONS, ENGINES, addresses_of, check  # noqa: E402
from events import Trial  # noqa: E402
from servers import Backend, WrongInput, free_port  # noqa: E402


# Those that would say nothing new, or take long: a JVM for each client.
LEFT_OUT = {"twemproxy-steady", "spymemcached"}


@pytest.mark.parametrize("name", [name for name in ENGINES if name not in LEFT_OUT])
def test_a_server_that_is_killed(name, tmp_path):
    """A killed server costs errors and misses, and no wrong value. When it is back, all is well again."""
    engine = ENGINES[name]
    missing = engine.missing()
    if missing:
        pytest.skip(f"needs {missing}")
    trial = Trial(engine, server_binary(), tmp_path, outage_s=1.0, pause_s=0.003, settled_s=0.4)
    row = trial.killed()
    assert row.wrong == 0, row.examples
    assert row.requests > 100 and row.errors < row.requests / 3, row
    assert row.errors > 0 or not engine.shows_failures, row
    if engine.places_keys:
        assert row.missed > 0, row
        resized = trial.resized(added=True)
        assert 0.1 < resized.moved < 0.4, resized
    else:
        assert row.missed == 0, row


def test_each_configuration_names_the_same_servers():
    servers = ["127.0.0.1:11211", "127.0.0.1:11212", "127.0.0.1:11213"]
    files = list(CONFIGURATIONS.iterdir())
    assert len(files) == len(ENGINES)
    for file in files:
        assert addresses_of(file.read_text()) == servers, file


def test_a_configuration_with_a_dead_server(tmp_path):
    backend = Backend(server_binary())
    dead = f"127.0.0.1:{free_port()}"
    path = tmp_path / "proxy.lua"
    try:
        path.write_text(f'backends = {{ "{backend.address}", "{dead}" }}')
        with pytest.raises(WrongInput, match=f"names {dead}, where no server answers: Connection refused"):
            check(path)
        path.write_text(f'backends = {{ "{backend.address}" }}')
        assert check(path) == [backend.address]
    finally:
        backend.end()
    path.write_text("backends = {}")
    with pytest.raises(WrongInput, match="names no server"):
        check(path)
    with pytest.raises(WrongInput, match="No such file"):
        check(tmp_path / "absent")
