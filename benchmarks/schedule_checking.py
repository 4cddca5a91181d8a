"""Compares what schedules should have done, calculated without any code of theirs, with the ledger and the runs."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.harness import Numbers, percentile
from benchmarks.schedule_filling import MINUTE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from benchmarks.harness import Looker

Instant = tuple[str, datetime]  # of which schedule, and when

LEDGER = """
select schedule.name, occurrence.nominal_at
from occurrence join schedule on schedule.lane = occurrence.lane and schedule.id = occurrence.schedule_id
where occurrence.nominal_at >= $1 and occurrence.nominal_at < $2 and schedule.name like $3 || '-%'"""
# Attempts at runs of some schedules and instants, as the runs' own headers say. All workers are ours, so that these are
# packed (`model/occurrence.py`); names of benchmarks have no spaces.
OF_INSTANTS = """
from (select attempt.*, split_part(headers ->> '@occurrence', ' ', 4) as name,
             to_timestamp(split_part(headers ->> '@occurrence', ' ', 2)::double precision) as nominal_at
      from attempt where due_at >= $1 and started_at is not null and headers ? '@occurrence') as attempt
where name like $3 || '-%' and nominal_at >= $1 and nominal_at < $2"""
RUNS = f"select name, nominal_at, due_at, started_at {OF_INSTANTS}"


class Started(NamedTuple):
    """One attempt at a run of a schedule."""

    name: str
    nominal_at: datetime
    due_at: datetime
    started_at: datetime


def expected_of_minutely(prefix: str, per_second: int, begin: datetime, end: datetime) -> Iterator[Instant]:
    """All instants of `schedule_filling.minutely`: the schedule with number n runs at second n of each minute."""
    for elapsed in range(int((end - begin).total_seconds())):
        at = begin + timedelta(seconds=elapsed)
        for number in range(at.second, MINUTE * per_second, MINUTE):
            yield f"{prefix}-{number}", at


async def recorded(looker: Looker, prefix: str, begin: datetime, end: datetime) -> tuple[list[Instant], list[Started]]:
    """What the ledger says, and which attempts there were."""
    ledger = [(row["name"], row["nominal_at"]) for row in await looker.fetch(LEDGER, begin, end, prefix)]
    return ledger, [Started(*row) for row in await looker.fetch(RUNS, begin, end, prefix)]


def faults(expected: Collection[Instant], ledger: Collection[Instant], started: Sequence[Started]) -> Numbers:
    """What is missing (no row in the ledger, or no run that has started), what is there beyond that, or too early."""
    wanted, written = Counter(expected), Counter(ledger)
    ran = Counter((each.name, each.nominal_at) for each in started)
    return {
        "missing": len((wanted - written) | (wanted - ran)),
        "extra": len((written - wanted) | (ran - wanted)),
        "early": sum(each.started_at < each.due_at for each in started),
    }


def lateness_ms(started: Sequence[Started]) -> list[float]:
    """From the instant at which each run was due to the start of its handler."""
    return [(each.started_at - each.due_at) / timedelta(milliseconds=1) for each in started]


def percentiles(values: list[float], name: str) -> Numbers:
    return {f"{name}_p{share}_ms": percentile(values, share / 100) for share in (50, 95, 99)}
