"""Django's cache and its sessions."""

import importlib.util
import sys
import tempfile

from recipe import Recipe, printed


class Tried(Recipe):
    needs = ((("python3", "-c", "import ensurepip"), "python3-venv"),)

    @property
    def python(self):
        """A Python that has Django: this one, or that of an environment of its own."""
        own = all(importlib.util.find_spec(name) for name in ("django", "pymemcache"))
        return sys.executable if own else str(self.fetched / "venv/bin/python")

    def fetch_once(self, may_install=False):
        if self.python != sys.executable:
            super().fetch_once(may_install)

    def fetch(self):
        self.call("python3", "-m", "venv", "venv")
        self.call("venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "django<6", "pymemcache")

    def version(self):
        own = "import django, pymemcache as p; print(f'Django {django.__version__}, pymemcache {p.__version__}')"
        return printed(self.python, "-c", own)

    def run(self, stand):
        with tempfile.TemporaryDirectory() as folder:
            stand.script(self.python, self.here / "check.py", env={"DATABASE": f"{folder}/database", "PYTHONPATH": str(stand.folder)})
