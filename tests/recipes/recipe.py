"""What a recipe is: a page, what has to be installed for it, and how it is tried."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGES = ROOT / "docs" / "recipes"
# What is fetched for recipes, one folder each.
FETCHED = ROOT / ".recipes"
FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class NotRun(Exception):
    """Why a recipe cannot be tried here."""


class Page:
    """A page of docs/recipes, with its files: blocks after a comment `<!-- file: NAME -->`."""

    def __init__(self, name):
        self.text = self.path_of(name).read_text()
        self.files = dict(FILE.findall(self.text))

    @staticmethod
    def path_of(name):
        return PAGES / f"{name}.md"

    def lay_out(self, folder):
        for name, text in self.files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


class Recipe:
    """A recipe. The class of each is in `recipe.py` of its folder, and is called `Tried`."""

    # What has to be there: a command that succeeds, and the packages of Debian that bring it.
    needs = ()
    # The name, and the folder with its programs.
    name, here = "", HERE

    @property
    def fetched(self):
        """The folder with what is fetched for it."""
        return FETCHED / self.name

    def missing(self):
        """What is not installed: the packages that would bring it."""
        return [package for command, packages in self.needs if not succeeds(command) for package in packages.split()]

    def fetch(self):
        """Fetches libraries from their registries into `fetched`, which is empty. By default there is nothing to fetch."""

    def version(self):
        """The version of what the recipe is about."""
        return ""

    def fetch_once(self, may_install=False):
        missing = self.missing()
        if missing and may_install and os.geteuid() == 0 and shutil.which("apt-get"):
            install(missing)
            missing = self.missing()
        if missing:
            raise NotRun(f"it needs Debian's packages {' '.join(missing)}")
        stamp, made_from = self.fetched / "made-from", (self.here / "recipe.py").read_text()
        if stamp.exists() and stamp.read_text() == made_from:
            return
        shutil.rmtree(self.fetched, ignore_errors=True)
        self.fetched.mkdir(parents=True)
        self.fetch()
        stamp.write_text(made_from)

    def run(self, stand):
        """Tries it: each `stand.check` is one result."""
        raise NotImplementedError

    def call(self, *line, **more):
        """A command of `fetch`. Its last line of complaints is why the recipe is not run."""
        finished = subprocess.run([*map(str, line)], cwd=self.fetched, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
        if finished.returncode != 0:
            said = (finished.stderr + finished.stdout).strip().splitlines() or [f"status {finished.returncode}"]
            raise NotRun(f"cannot be fetched: {said[-1]}")
        return finished.stdout

    def debian_package(self, name, folder="package"):
        """A package of this release of Debian, extracted and not installed."""
        self.call("apt-get", "download", name)
        for archive in self.fetched.glob(f"{name}_*.deb"):
            self.call("dpkg-deb", "--extract", archive, self.fetched / folder)
            archive.unlink()


def succeeds(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
    except OSError:
        return False


def install(packages):
    line = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    subprocess.run(line, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, stdin=subprocess.DEVNULL, capture_output=True)


def printed(*command):
    """What a command prints, in one line."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()


def recipes(folder=HERE):
    """All recipes of a folder, by name."""
    found = {}
    for path in sorted(folder.glob("*/recipe.py")):
        name = path.parent.name
        spec = importlib.util.spec_from_file_location(f"recipe_{name.replace('-', '_')}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[name] = module.Tried()
        found[name].name, found[name].here = name, path.parent
    return found
