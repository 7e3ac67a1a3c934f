"""Runs engines over a fleet, and prints a table for each. `cargo xtask fleet` calls it."""

import argparse
import shutil
import statistics
import sys
import tempfile

from engines import ENGINES, MemcachedProxy, Proxy, check, version
from events import Trial
from servers import WrongInput

COLUMNS = ("requests", "errors", "last error", "after its end", "moved", "missed", "old", "wrong", "note")
COSTS = ("a proxy's CPU for a request", "one at a time, µs", "16 at a time, µs")


def spread(figures, shown=str):
    """The median of runs, with the least and the greatest where they differ in what is shown."""
    if not figures:
        return ""
    least, median, most = (shown(pick(figures)) for pick in (min, statistics.median_low, max))
    return median if least == most else f"{median} ({least}..{most})"


def cells(rows):
    """One event, from one run or several."""
    percent = lambda shares: spread(shares, "{:.1%}".format)
    seconds = lambda times: spread(times, "{:.1f} s".format)
    failed = [row for row in rows if row.errors]
    has_moved = rows[0].moved is not None
    missed = [row.missed for row in rows]
    notes = {row.note: None for row in rows if row.note}
    note = " or ".join(notes).format(share=percent([row.share for row in rows]))
    if any(row.later and any(row.later) for row in rows):
        errors, old = (spread(counts) for counts in zip(*(row.later for row in rows)))
        note = f"then {errors} errors, {old} old"
    return (
        rows[0].event,
        spread([row.requests for row in rows]),
        spread([row.errors for row in rows]),
        seconds([row.last_error_s for row in failed]),
        seconds([row.after_end_s for row in failed]),
        percent([row.moved for row in rows]) if has_moved else "",
        percent(missed) if not has_moved or any(missed) else "",
        spread([row.old for row in rows]),
        spread([row.wrong for row in rows]),
        note,
    )


def show(words):
    print("| " + " | ".join(words) + " |", flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="cargo xtask fleet", description="Engines over three servers, and what happens to them.")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="one of them (may be repeated)")
    parser.add_argument("--server", required=True, help="the server's program; one that is called memcached is started as such")
    parser.add_argument("--proxy", help="a memcached that is built with --enable-proxy")
    parser.add_argument("--seconds", type=float, default=5.0, help="for how long a killed server is away (default: 5)")
    parser.add_argument("--repeat", type=int, default=1, help="how often each event happens, in a fleet of its own (default: 1)")
    parser.add_argument("--check", metavar="FILE", help="only see whether the servers of this configuration answer")
    parser.add_argument("--bench", help="glimmer-bench, to measure only what a request costs proxies")
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
    if given.repeat < 1:
        raise WrongInput("--repeat is at least 1")
    MemcachedProxy.binary = given.proxy
    print(f"The servers: {version(given.server)}, with one worker each. A killed server is away for {given.seconds:g} s.")
    if given.repeat > 1:
        print(f"Median (min..max) of {given.repeat} runs; the median alone where all show the same.")
    wrong, costs = 0, []
    for name in given.engine or ENGINES:
        engine = ENGINES[name]
        missing = engine.missing()
        if engine.needs_glimmer and given.server.endswith("memcached"):
            missing = "a server that speaks its protocol"
        if given.bench and not issubclass(engine, Proxy):
            missing = "to be a proxy, whose cost shows"
        if missing:
            if given.engine:
                raise WrongInput(f"{name} needs {missing}")
            print(f"\n{name}: SKIPPED: needs {missing}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(engine, given.server, folder, given.seconds)
            if given.bench:
                runs = [trial.cost(given.bench) for _ in range(given.repeat)]
                costs.append([name, *(spread(took_us, "{:.1f}".format) for took_us in zip(*runs))])
                continue
            print(f"\n{name}: {engine.version()}\n")
            show([name, *COLUMNS])
            show(["---"] * (1 + len(COLUMNS)))
            for event in trial.all():
                rows = [event() for _ in range(given.repeat)]
                wrong += sum(row.wrong for row in rows)
                show(cells(rows))
                for row in rows:
                    if given.verbose or row.wrong:
                        for example in row.examples or []:
                            print(f"<!-- {example} -->", flush=True)
    if costs:
        print()
        for words in (COSTS, ["---"] * len(COSTS), *costs):
            show(words)
    if wrong:
        print(f"{wrong} wrong values", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WrongInput as wrong:
        print(f"fleet: {wrong}", file=sys.stderr)
        sys.exit(1)
