"""`scripts/bench NAME [--seconds N] [--json]`."""

from __future__ import annotations

import argparse
import importlib
from typing import NamedTuple

import uvloop

from benchmarks.harness import Numbers, as_json


class Benchmark(NamedTuple):
    what: str
    seconds: float


BENCHMARKS = {
    "throughput": Benchmark("jobs per second, beside the bare SQL loop", 8),
    "latency": Benchmark("from submission to start, quiet and behind a million less urgent runs", 8),
    "burst": Benchmark("a quarter of a million runs at once, accepted and drained", 120),
    "backlog": Benchmark("what a claim costs with ten thousand and with two million runs in line", 5),
    "snapshot": Benchmark("throughput while somebody holds a transaction open", 60),
    "idle": Benchmark("what an idle worker asks of the database", 30),
}
ALL = "all"


def main() -> None:
    listing = "\n".join(f"  {name:<12} {each.what} (--seconds {each.seconds:g})" for name, each in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures Mainspring on this machine.",
        epilog=f"benchmarks:\n{listing}\n  {ALL:<12} one after the other; with --json, one object by name",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=[*BENCHMARKS, ALL], metavar="name", help="which benchmark")
    parser.add_argument("--seconds", type=float, help="how long a measurement takes, if not the usual time")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    if options.name is None:
        parser.print_help()
        return
    names = list(BENCHMARKS) if options.name == ALL else [options.name]
    results = {name: measure(name, options.seconds or BENCHMARKS[name].seconds) for name in names}
    if options.json:
        print(as_json(results if options.name == ALL else results[options.name]))


def measure(name: str, seconds: float) -> Numbers:
    """Show what a benchmark found to people; answers with what it promises to programs."""
    benchmark = importlib.import_module(f"benchmarks.{name}")
    numbers: Numbers = uvloop.run(benchmark.run(seconds))
    print(f"\n{name}\n{benchmark.show(numbers)}", flush=True)
    return {field: numbers[field] for field in benchmark.FIELDS}


if __name__ == "__main__":
    main()
