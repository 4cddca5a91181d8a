"""Backfills: runs for instants of a schedule that have passed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from uuid import UUID  # noqa: TC003  msgspec reads Backfill's annotations

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.job import checked_at, checked_priority
from mainspring.model.lifecycle import ENDS, State
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from mainspring.model.operation import Operation

MOST_OCCURRENCES = 1_000_000  # in the range of one backfill
MOST_LISTED = 10_000  # in a report
SHOWN = 5  # at each end of what is too long to be listed
MOST_UNFINISHED = 10_000  # that may be asked for; all of them are looked at twice a second
LONGEST = timedelta(days=3_660)
FASTEST = 10_000.0  # runs per second

Word = TypeVar("Word", bound=StrEnum)


class BackfillWhich(StrEnum):
    """Which occurrences are meant. Those whose run is under way are left alone, always."""

    MISSING = "missing"  # that became no run of their own
    FAILED = "failed"  # whose run is dead, or ended without success
    ALL = "all"  # the missing ones, and those whose run is over, however it ended

    def takes(self, state: State | None, *, has_run: bool) -> bool:
        """Whether it means an occurrence, by its run's state; that is None if the run is no longer kept."""
        if not has_run:
            return self is not BackfillWhich.FAILED
        return self is not BackfillWhich.MISSING and state in (FAILURES if self is BackfillWhich.FAILED else OVER)


OVER = ENDS | {State.DEAD}
FAILURES = OVER - {State.SUCCEEDED}


class BackfillOrder(StrEnum):
    FORWARDS = "forwards"
    BACKWARDS = "backwards"  # the latest first


class BackfillVersion(StrEnum):
    """By which version of the schedule instants are counted and runs are made."""

    PRESENT = "present"
    THEN = "then"  # the one that was in force at the instant


class BackfillKeywords(TypedDict, total=False):
    """How a backfill is to go about its occurrences."""

    which: BackfillWhich | str
    order: BackfillOrder | str
    version: BackfillVersion | str
    priority: int | None  # instead of what the schedule says
    rate: float | None  # runs per second at most
    concurrency: int | None  # unfinished runs of the range at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What a backfill is to do, as its operation keeps it."""

    schedule: str
    schedule_id: UUID
    since: datetime
    before: datetime  # exclusive
    which: BackfillWhich = BackfillWhich.MISSING
    order: BackfillOrder = BackfillOrder.FORWARDS
    version: BackfillVersion = BackfillVersion.PRESENT
    priority: int | None = None
    rate: float | None = None
    concurrency: int | None = None

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in document.items() if value is not None}


def backfill_of(document: dict[str, Any]) -> Backfill:
    return msgspec.convert(document, Backfill)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillOccurrence:
    """An occurrence that a backfill is about."""

    nominal_at: datetime
    version: int  # of the schedule, which its run follows; one that is run again stays what it was
    run_id: UUID | None = None  # which is run again; None: it has no run yet
    run_state: State | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillPlan:
    """What a backfill is about, before any of it is done."""

    backfill: Backfill
    count: int
    occurrences: list[BackfillOccurrence]  # all of them; of more than 10,000, the first and the last five

    @property
    def is_whole(self) -> bool:
        return len(self.occurrences) == self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillReport:
    """What a backfill was about when it began, and how far it got; without an operation, nothing was done."""

    count: int  # of its occurrences
    occurrences: list[BackfillOccurrence]  # all of them; of more than 10,000, the first and the last five
    operation: Operation | None = None


# ── checked ─────────────────────────────────────────────────────────────────────────────────────────────────────


def checked_keywords(
    *,
    which: object = BackfillWhich.MISSING,
    order: object = BackfillOrder.FORWARDS,
    version: object = BackfillVersion.PRESENT,
    priority: object = None,
    rate: object = None,
    concurrency: object = None,
) -> dict[str, Any]:
    return {
        "which": _word(BackfillWhich, "which", which),
        "order": _word(BackfillOrder, "order", order),
        "version": _word(BackfillVersion, "version", version),
        "priority": None if priority is None else checked_priority(priority),
        "rate": _checked_rate(rate),
        "concurrency": _checked_concurrency(concurrency),
    }


def checked_range(since: object, before: object) -> tuple[datetime, datetime | None]:
    begin, end = checked_at(since, "since"), checked_at(before, "before")
    if begin is None:
        raise invalid("since", since, "must be a datetime", hint="Say from when on occurrences are meant.")
    if end is not None and begin >= end:
        raise invalid("since", begin.isoformat(), f"must be earlier than before, {end.isoformat()}")
    if end is not None:
        check_length(begin, end)
    return begin, end


def check_length(since: datetime, before: datetime) -> None:
    if before - since > LONGEST:
        raise refused_since(
            since,
            f"must be at most {LONGEST.days:,} days earlier than before, {before.isoformat()}",
            code="backfill-too-long",
            hint="Backfill a shorter range at a time.",
        )


def _word(kind: type[Word], field: str, value: object) -> Word:
    try:
        return kind(value)  # type: ignore[arg-type]  # whatever was given
    except ValueError:
        raise invalid(field, value, f"must be one of {', '.join(kind)}") from None


def _checked_rate(rate: object) -> float | None:
    if rate is None:
        return None
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool) and math.isfinite(rate)
    if not is_number or not 0 < rate <= FASTEST:  # type: ignore[operator]  # it is a number
        raise invalid("rate", rate, f"must be a number of runs per second, above 0 and at most {FASTEST:,.0f}")
    return float(rate)  # type: ignore[arg-type]  # it is a number


def _checked_concurrency(concurrency: object) -> int | None:
    if concurrency is None:
        return None
    if type(concurrency) is not int or not 1 <= concurrency <= MOST_UNFINISHED:
        raise invalid("concurrency", concurrency, f"must be a whole number, 1 to {MOST_UNFINISHED:,}")
    return concurrency


def refused_since(since: datetime, rule: str, *, code: str, hint: str) -> InvalidInput:
    """A range that begins where a backfill cannot."""
    value = quoted(since.isoformat())
    return InvalidInput(f"since is {value}; it {rule}.", code=code, hint=hint, field="since", value=value, rule=rule)
