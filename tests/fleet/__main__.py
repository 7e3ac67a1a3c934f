"""Runs engines over a fleet, and prints a table for each. `cargo xtask fleet` calls it."""

import argparse
import shutil
import sys
import tempfile

from engines import ENGINES, MemcachedProxy, Proxy, check
from events import Trial
from servers import WrongInput

COLUMNS = ("event", "requests", "errors", "last error", "after its end", "moved", "missed", "old", "wrong", "note")


def cells(row):
    percent = lambda share: "" if share is None else f"{share:.1%}"
    return (
        row.event,
        str(row.requests),
        str(row.errors),
        f"{row.last_error_s:.1f} s" if row.errors else "",
        f"{row.after_end_s:.1f} s" if row.errors else "",
        percent(row.moved),
        percent(row.missed) if row.moved is None or row.missed else "",
        str(row.old),
        str(row.wrong),
        row.note,
    )


def show(words):
    print("| " + " | ".join(words) + " |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="cargo xtask fleet", description="Engines over three servers, and what happens to them.")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="one of them (may be repeated)")
    parser.add_argument("--server", required=True, help="the server's program; one that is called memcached is started as such")
    parser.add_argument("--proxy", help="a memcached that is built with --enable-proxy")
    parser.add_argument("--seconds", type=float, default=5.0, help="for how long a killed server is away (default: 5)")
    parser.add_argument("--check", metavar="FILE", help="only see whether the servers of this configuration answer")
    parser.add_argument("--bench", help="glimmer-bench, to measure what a request costs a proxy")
    parser.add_argument("--verbose", action="store_true", help="show the first errors of each event")
    return parser.parse_args()


def main():
    given = arguments()
    if given.check:
        print(f"{given.check}: {len(check(given.check))} servers answer")
        return 0
    if not 0.5 <= given.seconds <= 60:
        raise WrongInput("--seconds is from 0.5 to 60")
    for program in filter(None, (given.server, given.proxy, given.bench)):
        if shutil.which(program) is None:
            raise WrongInput(f"{program} is no program")
    MemcachedProxy.binary = given.proxy
    wrong = 0
    for name in given.engine or ENGINES:
        engine = ENGINES[name]
        missing = engine.missing()
        if engine.needs_glimmer and given.server.endswith("memcached"):
            missing = "a server that speaks its protocol"
        if missing:
            if given.engine:
                raise WrongInput(f"{name} needs {missing}")
            print(f"\n{name}: SKIPPED: needs {missing}")
            continue
        print(f"\n{name}:\n")
        show(COLUMNS)
        show(["---"] * len(COLUMNS))
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(engine, given.server, folder, given.seconds)
            for event in trial.all():
                row = event()
                wrong += row.wrong
                show(cells(row))
                if given.verbose or row.wrong:
                    for example in row.examples or []:
                        print(f"<!-- {example} -->", flush=True)
            if given.bench and issubclass(engine, Proxy):
                one, many = trial.cost(given.bench)
                print(f"\nCPU for each request: {one:.1f} µs, and {many:.1f} µs with 16 at a time", flush=True)
    if wrong:
        print(f"{wrong} wrong values", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WrongInput as wrong:
        print(f"fleet: {wrong}", file=sys.stderr)
        sys.exit(1)
