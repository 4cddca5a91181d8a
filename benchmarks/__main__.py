"""`scripts/bench NAME [--seconds N] [--json]`; some have wishes of their own, see --help."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from typing import Any, NamedTuple

import uvloop

from benchmarks.harness import as_json


class Benchmark(NamedTuple):
    what: str
    seconds: float
    module: str | None = None  # where it is, unless in the module of its name


BENCHMARKS = {
    "throughput": Benchmark("jobs per second, beside the bare SQL loop", 8),
    "latency": Benchmark("from submission to start, quiet and behind a million less urgent runs", 8),
    "burst": Benchmark("a quarter of a million runs at once, accepted and drained", 120),
    "backlog": Benchmark("what a claim costs with ten thousand and with two million runs in line", 5),
    "snapshot": Benchmark("throughput while somebody holds a transaction open", 60),
    "isolation": Benchmark("runs per second that each have a process of their own", 6),
    "threads": Benchmark("how long an urgent async run waits while others compute in its worker", 9.5),
    "idle": Benchmark("what an idle worker asks of the database", 30),
    "peers": Benchmark("the same work through other job queues, eight minutes", 3, "benchmarks.peers.comparison"),
    "schedules-maths": Benchmark("the next instant: cold, and in a herd", 3, "benchmarks.schedules_maths"),
    "schedules": Benchmark("edits, firing and lateness with a million schedules", 60),
    "schedulers": Benchmark("two and four schedulers, one of which is killed", 20),
    "herd": Benchmark("200,000 schedules due in the same second, at once and spread", 120),
    "admission": Benchmark("what limits cost, and how fast runs pass them", 6),
    "tenants": Benchmark("shares of tenants, and what a thousand idle ones cost", 60),
    "flow": Benchmark("graphs of runs: how fast they are accepted, and a hop from one run to the next", 120),
    "citus": Benchmark("what a run costs the servers of the Citus cluster at MAINSPRING_CITUS_URL", 120),
    "lists": Benchmark("pages of runs out of a million ready ones and ten million attempts", 20),
}
ALL = "all"
LONG = (
    "admission",
    "tenants",
    "flow",
    "peers",
    "schedules",
    "schedulers",
    "herd",
    "lists",
    "citus",
)  # not among all: they take minutes, or a cluster
WISHES = {
    "only": ("peers",),
    "jobs": ("peers",),
    "rounds": ("peers", "herd", "throughput", "citus", "admission", "flow"),
    "small": ("lists",),
    "count": ("schedules", "herd"),
    "due": ("schedules", "schedulers"),
}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped too
    listing = "\n".join(f"  {name:<15} {each.what} (--seconds {each.seconds:g})" for name, each in BENCHMARKS.items())
    listing += f"\n  {ALL:<15} one after the other, but for {', '.join(LONG)}; with --json, one object by name"
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures Mainspring on this machine.",
        epilog=f"benchmarks:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*BENCHMARKS, ALL], metavar="name", help="which benchmark")
    parser.add_argument("--seconds", type=float, help="how long a measurement takes, if not the usual time")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--only", action="append", metavar="PEER", help="peers: beside Mainspring, only this one")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="peers: so many jobs for each, not by its speed")
    parser.add_argument(
        "--rounds", type=_positive, metavar="N", help="peers, herd, throughput and others: how many rounds"
    )
    parser.add_argument("--small", action="store_true", default=None, help="lists: a quick try on little data")
    parser.add_argument(
        "--count", type=_positive, metavar="N", help="schedules, herd: so many schedules, if not 1,000,000 or 200,000"
    )
    parser.add_argument(
        "--due",
        type=_positive,
        metavar="N",
        help="schedules, schedulers: so many due per second, if not 5,000 or 1,000",
    )
    options = parser.parse_args()
    if options.name is None:
        parser.print_help()
        return
    wishes = {name: value for name in WISHES if (value := getattr(options, name)) is not None}
    for name in wishes:
        if options.name not in WISHES[name]:
            parser.error(f"--{name} is for {' and '.join(WISHES[name])}")
    names = [name for name in BENCHMARKS if name not in LONG] if options.name == ALL else [options.name]
    results = {name: measure(name, options.seconds or BENCHMARKS[name].seconds, wishes) for name in names}
    if options.json:
        print(as_json(results if options.name == ALL else results[options.name]))


def measure(name: str, seconds: float, wishes: dict[str, Any]) -> dict[str, Any]:
    """Show what a benchmark found to people; answers with what it promises to programs."""
    benchmark = importlib.import_module(BENCHMARKS[name].module or f"benchmarks.{name}")
    numbers: dict[str, Any] = uvloop.run(benchmark.run(seconds, **wishes))
    print(f"\n{name}\n{benchmark.show(numbers)}", flush=True)
    return {field: numbers[field] for field in benchmark.FIELDS}


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


if __name__ == "__main__":
    main()
