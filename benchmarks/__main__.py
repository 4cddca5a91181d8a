"""`scripts/bench NAME [--seconds N] [--json]`."""

from __future__ import annotations

import argparse
import importlib

import uvloop

from benchmarks.harness import as_json

BENCHMARKS = {
    "throughput": ("jobs per second, beside the bare SQL loop", 8.0),
}


def main() -> None:
    listing = "\n".join(f"  {name:<12} {what}" for name, (what, _) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures Mainspring on this machine.",
        epilog=f"benchmarks:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHMARKS, help="which benchmark")
    parser.add_argument("--seconds", type=float, help="how long each measurement takes")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    benchmark = importlib.import_module(f"benchmarks.{options.name}")
    numbers = uvloop.run(benchmark.run(options.seconds or BENCHMARKS[options.name][1]))
    print(f"\n{options.name}")
    print(benchmark.show(numbers))
    if options.json:
        print(as_json(numbers))


if __name__ == "__main__":
    main()
