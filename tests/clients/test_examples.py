"""The programs in `examples` run as they are, and print what their page says."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import certificates
import pytest
from harness import Server, is_memcached, server_binary
from languages import GO, JARS, MODULES, PATIENCE_S, present

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = "greeting: hello\nvisits: 42\ntogether: hello 42\n"
NATIVE_RUST = Path(os.environ.get("GLIMMER_BIN", "")).parent / "examples" / "greeting"

# The command of each program without the server's address, and what has to be installed for it.
MEMCACHED_CLIENTS = {
    "python": ((sys.executable, "python/greeting.py"), ()),
    "go": (("go", "run", "-C", "go", "."), (GO,)),
    "java": (("java", "-cp", f"{JARS}/*", "java/Greeting.java"), (JARS, ("javac", "-version"))),
    "node": (("node", "node/greeting.js"), (MODULES, ("node", "--version"))),
    "php": (
        ("php", "php/greeting.php"),
        (("php", "-r", "exit(extension_loaded('memcached') ? 0 : 1);"),),
    ),
    "ruby": (("ruby", "ruby/greeting.rb"), (("ruby", "-e", "require 'dalli'"),)),
}


def printed(*command):
    finished = subprocess.run(
        [*map(str, command)],
        cwd=EXAMPLES,
        env=os.environ | {"NODE_PATH": str(MODULES)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.parametrize("language", MEMCACHED_CLIENTS)
def test_memcached_client(language):
    command, needs = MEMCACHED_CLIENTS[language]
    if missing := next((need for need in needs if not present(need)), None):
        pytest.skip(f"not installed: {missing}")
    with Server("-t", 1) as server:
        assert printed(*command, server.url) == PRINTED


@pytest.mark.parametrize("language", ["python", "go", "ruby"])
def test_memcached_client_over_tls(language, tmp_path):
    if not certificates.available():
        pytest.skip("openssl is not installed")
    command, needs = MEMCACHED_CLIENTS[language]
    if missing := next((need for need in needs if not present(need)), None):
        pytest.skip(f"not installed: {missing}")
    authority = certificates.Authority(tmp_path)
    with Server(*certificates.flags(authority.issue("localhost")), "-t", 1, context=authority.context()) as server:
        assert printed(*command, f"localhost:{server.port}", authority.pem) == PRINTED


@pytest.fixture
def native_port():
    if is_memcached(server_binary()):
        pytest.skip("memcached has no native protocol")
    with Server("-t", 1, "--native-port", -1) as server:
        ports = server.stats("native")
        yield next(int(ports[name]) for name in ports if name.startswith("port:127.0.0.1:"))


def test_native_client_in_python(native_port):
    if importlib.util.find_spec("glimmer") is None:
        pytest.skip("the wheel was not built")
    assert printed(sys.executable, "native/greeting.py", "127.0.0.1", native_port) == PRINTED


def test_native_client_in_rust(native_port):
    if not NATIVE_RUST.exists():
        pytest.skip(f"not built: {NATIVE_RUST}")
    assert printed(NATIVE_RUST, f"127.0.0.1:{native_port}") == PRINTED


def test_the_page_shows_every_program_and_what_it_prints():
    page = (EXAMPLES / "README.md").read_text()
    assert PRINTED in page
    for program in EXAMPLES.glob("*/[Gg]reeting.*"):
        if program.suffix != ".rs":
            assert f"examples/{program.relative_to(EXAMPLES)}" in page
