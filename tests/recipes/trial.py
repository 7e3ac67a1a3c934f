"""Tries things with a server: the recipes of docs/recipes, and exporters.

The files of a page are laid out as they stand there, so what is tried is what the page shows. Each thing runs in a network namespace of its
own, in which its server has the address that the pages give it: 127.0.0.1:11211."""

import argparse
import os
import subprocess
import sys
import tempfile

from recipe import NotRun, Page, recipes
from stand import Stand

# No recipe takes longer, with either server.
PATIENCE_S = 300
# The pages have timeouts of a quarter of a second. On a machine that is busy for longer, a client sees a server that is away, as it should:
# what fails is tried again, and says so.
TRIES = 3


def arguments():
    parser = argparse.ArgumentParser(description="Tries things with a server.")
    parser.add_argument("--server", required=True, help="the server's program; one that is called memcached is started as such")
    parser.add_argument("--install", action="store_true", help="install missing packages of Debian, as root")
    parser.add_argument("--exporter", help="Prometheus' memcached_exporter")
    parser.add_argument("--object-cache", help="the drop-in object-cache.php of WordPress")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true", help="show what the recipe's programs print")
    parser.add_argument("names", nargs="*", help="only these")
    return parser.parse_args()


def apart(given, recipe):
    """Tries one recipe in a namespace."""
    own = [sys.executable, str(recipe.here.parent), "--server", given.server, "--inside", recipe.name]
    if given.verbose:
        own.append("--verbose")
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    line = [*unshare, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *own]
    return subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S)


def attempt(given, recipe):
    """Fetches what a recipe needs, and tries it. Whether nothing failed."""
    try:
        recipe.fetch_once(given.install)
    except NotRun as reason:
        print(f"# {recipe.name}: not run: {reason}", flush=True)
        return True
    print(f"# {recipe.name}: {recipe.version()}", flush=True)
    for again in reversed(range(TRIES)):
        tried = apart(given, recipe)
        if again and tried.returncode != 0:
            failed = [line for line in tried.stdout.splitlines() if line.startswith("not ok")]
            print(f"# tried again: {'; '.join(failed)}", flush=True)
        else:
            print(tried.stdout, end="", flush=True)
            return tried.returncode == 0


def inside(given, recipe):
    with tempfile.TemporaryDirectory(prefix="glimmer-recipe-") as folder:
        if Page.path_of(recipe.name).exists():
            Page(recipe.name).lay_out(folder)
        with Stand(given.server, folder, given.verbose) as stand:
            recipe.run(stand)
            return not stand.failed


def main(folder):
    """Tries what has a `recipe.py` in the folder."""
    given = arguments()
    if given.exporter:
        os.environ["EXPORTER"] = given.exporter
    if given.object_cache:
        os.environ["OBJECT_CACHE"] = given.object_cache
    known = recipes(folder)
    if unknown := [name for name in given.names if name not in known]:
        print(f"{unknown[0]} is none of these: {', '.join(known)}", file=sys.stderr)
        return 1
    work = inside if given.inside else attempt
    done = [work(given, known[name]) for name in given.names or known]
    return 0 if all(done) else 1

