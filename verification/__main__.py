"""`scripts/verify schedules [--quick] [--json]`."""

from __future__ import annotations

import argparse
import json
import sys

from verification.schedules import Comparison, Report, sweep

WIDTH = 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/verify", description="Proofs that take longer than tests may.")
    parser.add_argument("name", choices=["schedules"], help="our cron against other programs at every jump")
    parser.add_argument("--quick", action="store_true", help="a sample, in seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    report, told = Report(), 0
    for done, of, report in sweep(quick=options.quick):
        _tell(report.unexplained[told:])
        told = len(report.unexplained)
        _progress(done, of, report)
    _show(report)
    if options.json:
        print(json.dumps(_numbers(report)))
    sys.exit(bool(report.unexplained))


def _tell(found: list[Comparison]) -> None:
    """What nobody ruled on, at once: whoever watches need not wait for the end."""
    for each in found:
        print(f"\r\033[K{each}", file=sys.stderr, flush=True)


def _progress(done: int, of: int, report: Report) -> None:
    filled = WIDTH * done // of
    line = (
        f"{'█' * filled}{'░' * (WIDTH - filled)} {done} of {of} windows, {sum(report.compared.values()):,} comparisons"
    )
    print(f"\r{line}, {len(report.unexplained)} unexplained ", end="", file=sys.stderr, flush=True)


def _show(report: Report) -> None:
    print(f"\n{report.zones} different zones of tzdata {report.tzdata}, {report.windows:,} different windows")
    for name, count in report.compared.items():
        ruled = report.ruled[name]
        beside = f", {ruled:,} of them without the hours around a jump, by ruling" if ruled else ""
        print(f"  {name:<15} {count:>10,} comparisons{beside}")
    print(f"  unexplained     {len(report.unexplained):>10,}")


def _numbers(report: Report) -> dict[str, object]:
    return {
        "tzdata": report.tzdata,
        "zones": report.zones,
        "windows": report.windows,
        "compared": dict(report.compared),
        "ruled": dict(report.ruled),
        "unexplained": len(report.unexplained),
    }


if __name__ == "__main__":
    main()
