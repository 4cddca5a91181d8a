"""Chains between jobs: whenever a run of one job ends as told, a run of another one is submitted.

The job whose runs end is *upstream*, the one whose runs follow is *downstream*; it says so itself: `after="load"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.dependency import Condition
from mainspring.model.invalid import invalid
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

MAX_UPSTREAM = 20  # jobs that one job follows
MAX_DEPTH = 100  # runs that follow from one another
TRIGGERED_BY, DEPTH = "triggered_by", "chain_depth"
HEADERS = (TRIGGERED_BY, DEPTH)
_TRACE = ("traceparent", "tracestate")


class NamedJob(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, init=False)
class After:
    """After which job's runs a run of this one is submitted, on which end, and which argument gets the result.

    `After("load")`, `After("load", on="failure")`, `After("load", result="rows")`.
    """

    job: str
    on: Condition = Condition.SUCCESS
    result: str | None = None

    def __init__(self, job: str | NamedJob, on: Condition | str = Condition.SUCCESS, result: str | None = None) -> None:
        name = job if isinstance(job, str) else getattr(job, "name", job)
        if not isinstance(name, str):
            raise invalid("after", job, "must be jobs: their names, or After(…)")
        try:
            condition = Condition(on)
        except ValueError:
            raise invalid("on", on, f"must be one of {', '.join(Condition)}") from None
        if result is not None and condition is not Condition.SUCCESS:
            raise InvalidInput(
                f"Runs of {quoted(name)} need not succeed, and their result is an argument: there may be none.",
                code="result-without-success",
                hint='Leave out on="…", or result.',
                field="result",
            )
        for field, value in (("job", name), ("on", condition), ("result", result)):
            object.__setattr__(self, field, value)


JobBefore = str | NamedJob | After
JobsBefore = JobBefore | Sequence[JobBefore]


def checked_after(after: object, on: object = None) -> tuple[After, ...]:
    """What `after` and `on` of a job say: a job's name, the job, an `After`, or a list of these."""
    if after is None:
        if on is not None:
            raise invalid("on", on, "goes with after")
        return ()
    given = after if isinstance(after, (list, tuple, set, frozenset)) else [after]
    found = tuple(_after(each, on) for each in given)
    names = [each.job for each in found]
    if not 1 <= len(found) <= MAX_UPSTREAM or len(set(names)) < len(names):
        raise invalid("after", names, f"must be 1 to {MAX_UPSTREAM} jobs, each once")
    return found


def _after(given: object, on: object) -> After:
    if isinstance(given, After):
        if on is not None:
            raise invalid("on", on, f"must stand in After: After({given.job!r}, on={quoted(on)})")
        return given
    return After(given, Condition.SUCCESS if on is None else on)  # type: ignore[arg-type]  # whatever was given


def cycle_through(start: str, follows: Mapping[str, Iterable[str]]) -> list[str] | None:
    """The jobs of a circle that a job is part of, from itself to itself; `follows` are the jobs after each job."""
    came_from: dict[str, str] = {}
    looking = [start]
    while looking:
        job = looking.pop()
        for following in follows.get(job, ()):
            if following == start:
                return _way_back(start, job, came_from)
            if following not in came_from:
                came_from[following] = job
                looking.append(following)
    return None


def _way_back(start: str, last: str, came_from: Mapping[str, str]) -> list[str]:
    way = [start, last]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def circular(cycle: Iterable[str]) -> InvalidInput:
    jobs = " → ".join(cycle)
    return InvalidInput(
        f"Jobs would follow each other in a circle, for ever: {jobs}.",
        code="chain-cycle",
        hint="Leave out one of the after=….",
        field="after",
        value=jobs,
    )


# ── what a run that follows is ──────────────────────────────────────────────────────────────────────────────────


def headers_after(run_id: UUID, headers: Mapping[str, str]) -> dict[str, str]:
    """What travels with a run that follows another one: which, how many came before it, and the trace."""
    trace = {name: headers[name] for name in _TRACE if name in headers}
    return {**trace, TRIGGERED_BY: str(run_id), DEPTH: str(depth_of(headers) + 1)}


def depth_of(headers: Mapping[str, str]) -> int:
    """How many runs came before this one in a chain."""
    depth = headers.get(DEPTH, "0")
    return int(depth) if depth.isdecimal() and len(depth) < 10 else 0


def triggered_by(headers: Mapping[str, str]) -> UUID | None:
    """After which run this one was submitted, if that is why."""
    try:
        return UUID(headers[TRIGGERED_BY]) if TRIGGERED_BY in headers else None
    except (ValueError, TypeError, AttributeError):
        return None  # not ours


def payload_after(argument: str | None, result: bytes | None) -> bytes:
    """The arguments of a run that follows another one."""
    if argument is None:
        return b"{}"
    return msgspec.json.encode({argument: msgspec.Raw(b"null" if result is None else result)})


# ── as people see it ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A run of `downstream` is submitted whenever one of `upstream` has ended as told."""

    upstream: str
    downstream: str
    on: Condition
    result: str | None  # the argument that gets it
    is_paused: bool
    changed_at: datetime
    changed_by: str
    reason: str
