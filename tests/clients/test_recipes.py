"""The recipes of docs/recipes that need nothing beyond the client tests; `cargo xtask conformance` tries all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import server_binary

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/recipes"))
from recipe import PAGES, Page, recipes  # noqa: E402

# A screen, in lines.
SCREEN = 64
PATIENCE_S = 300


@pytest.mark.parametrize("name", ["django", "node", "php-sessions"])
def test_recipe(name):
    line = [sys.executable, str(ROOT / "tests/recipes"), "--server", server_binary(), name]
    quiet = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    tried = subprocess.run(line, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S)
    if reason := re.search(r"not run: (.*)", tried.stdout):
        pytest.skip(reason[1])
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert tried.stdout.count("\nok ") >= 10, tried.stdout


def test_each_page_has_a_recipe_and_is_a_screen():
    index = (PAGES / "README.md").read_text()
    names = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert names == set(recipes())
    for name in names:
        page = Page(name)
        assert f"({name}.md)" in index, name
        assert page.files, f"{name} shows no file"
        # Each block of the page is one of the files that are tried.
        assert page.text.count("\n```\n") == len(page.files), name
        assert page.text.count("\n") <= SCREEN, name
