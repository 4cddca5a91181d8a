"""How many runs may wait for their first start: caps as they are declared and set, and what whoever submits is told.

A *gate* of a cap is the cap with one value of its key, as that of a limit is: `7`, `7:acme`. The gates of a run are one
per line.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import BacklogFull, InvalidInput
from mainspring.model.concurrency import EVERYBODY, NO_KEY, LimitScope
from mainspring.model.ids import lane_of_key
from mainspring.model.invalid import invalid
from mainspring.model.limit_key import limit_key
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

MAX_BACKLOG = 1_000_000
MAX_CAPS_PER_JOB = 5
NEAR = 0.8  # of a cap: from here on whoever submits is told


class WhenFull(StrEnum):
    """What happens to what comes too much."""

    REFUSE = "refuse"  # BacklogFull is raised
    DROP_OLDEST = "drop_oldest"  # the run that waits longest is cancelled
    REPLACE = "replace"  # the run that was accepted last is cancelled


@dataclass(frozen=True, slots=True, init=False)
class Backlog:
    """At most so many runs wait for their first start.

    `Backlog(1_000)`, `Backlog(100, key="customer")`, `Backlog(1, key="screen", when_full="replace")`. With a key, each
    of its values has a cap of its own. What comes too much is refused, or with `when_full="drop_oldest"` takes the
    place of the run that waits longest, with `"replace"` that of the run that was accepted last.
    """

    most: int
    key: str | None = None
    when_full: WhenFull = WhenFull.REFUSE

    def __init__(self, most: int, *, key: str | None = None, when_full: WhenFull | str = WhenFull.REFUSE) -> None:
        # Written out, because words are given as text.
        keep = partial(object.__setattr__, self)
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MAX_BACKLOG:
            raise invalid("backlog", most, f"must be a whole number from 1 to {MAX_BACKLOG:,}")
        keep("most", most)
        keep("key", None if key is None else _expression(key))
        keep("when_full", _policy(when_full))


def checked_backlogs(backlogs: object) -> tuple[Backlog, ...]:
    """One cap or several, each with a key of its own."""
    given = () if backlogs is None else (backlogs,) if isinstance(backlogs, Backlog) else backlogs
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, Backlog) for each in given):
        raise invalid("backlog", backlogs, "must be a Backlog, or a list of some")
    if len(given) > MAX_CAPS_PER_JOB:
        raise invalid("backlog", f"{len(given)} caps", f"must be at most {MAX_CAPS_PER_JOB}")
    if len({each.key for each in given}) < len(given):
        raise invalid("backlog", list(given), "must name each key once")
    return tuple(given)


class CapRule(NamedTuple):
    """A cap that runs are under. What it says is read when they are accepted."""

    id: int
    scope: LimitScope
    name: str  # of the job or queue; empty for a tenant
    key: str  # empty: all together

    def counts(self, arguments: Any) -> bool:
        """Whether a run with these arguments has what tells runs apart."""
        try:
            self.gate_for(arguments)
        except InvalidInput:
            return False
        return True

    def gate_for(self, arguments: Any) -> str:
        """Where a run with these arguments is counted."""
        if self.key == NO_KEY:
            return str(self.id)
        try:
            return f"{self.id}:{limit_key(self.key).of(arguments)}"
        except InvalidInput as error:
            raise _fails(self.key, error) from None


def backlog_gates_of(
    caps: Sequence[CapRule], payload: bytes, *, is_complete: bool = True, is_accepted: bool = False
) -> str | None:
    """Where a run is counted, one gate per line; None if nowhere.

    Of a run that awaits arguments (not `is_complete`) no key is known: it counts where there is none. One that comes in
    any case (`is_accepted`) is not refused for what it lacks: it counts where it has the key.
    """
    counting = caps if is_complete else [cap for cap in caps if cap.key == NO_KEY]
    if not counting:
        return None
    arguments = msgspec.json.decode(payload) if any(cap.key for cap in counting) else None
    if is_accepted:
        counting = [cap for cap in counting if cap.counts(arguments)]
    return "\n".join(cap.gate_for(arguments) for cap in counting) or None


def home_of_backlog(gate: str, lanes: int) -> int:
    """The lane in which runs of a gate are counted; their own may be any."""
    return lane_of_key(EVERYBODY, gate, lanes)


# ── what whoever submits is told ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogNotice:
    """A backlog that is nearly full, or full."""

    cap: str  # whose: job send by customer
    value: str | None  # of its key
    waiting: int
    most: int

    @property
    def utilization(self) -> float:
        """Of the cap that is used up: 1.0 when it is full."""
        return self.waiting / self.most

    @property
    def is_near(self) -> bool:
        return self.utilization > NEAR

    @property
    def backlog(self) -> str:
        """Which one: job send by customer=acme."""
        return self.cap if self.value is None else f"{self.cap}={self.value}"

    def __str__(self) -> str:
        return f"{self.backlog}: {self.waiting:,} of at most {self.most:,} runs wait"


def fullest(gates: str | None, notices: Mapping[str, BacklogNotice]) -> BacklogNotice | None:
    """Of the backlogs that a run is in, the one nearest to its cap, if any is near."""
    if gates is None:
        return None
    found = [notices[gate] for gate in gates.split("\n") if gate in notices]
    return max(found, key=lambda notice: notice.utilization, default=None)


class FullBacklog(NamedTuple):
    """A backlog that has no room for all that was to be accepted."""

    notice: BacklogNotice
    wanted: int
    fits: int  # so many of them would be accepted
    makes_room: bool = False  # others give way, but not to more than the cap says at once

    def error(self) -> BacklogFull:
        notice = self.notice
        more = "" if self.wanted == 1 else f", and {self.wanted:,} more were submitted: none of them was accepted"
        return BacklogFull(
            f"The backlog of {notice.backlog} is full: {notice.waiting:,} of at most {notice.most:,} runs wait{more}.",
            hint="Submit again when some of them have started, or raise the cap: mainspring backlog set.",
            field="backlog",
            cap=notice.cap,
            value=notice.value,
            waiting=notice.waiting,
            most=notice.most,
        )


# ── what people see ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogStatus:
    """A backlog cap as people see it: what it says, who set it, and how many wait under it."""

    scope: LimitScope
    name: str
    key: str | None
    most: int
    when_full: WhenFull
    waiting: int
    counts_are_exact: bool
    is_declared: bool  # in an application's code
    is_as_declared: bool
    changed_at: datetime
    changed_by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogValue:
    """One value of a cap's key: how many runs wait, and which of them was accepted first."""

    value: str | None
    waiting: int
    oldest: UUID


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _policy(given: Any) -> WhenFull:
    try:
        return WhenFull(given)
    except ValueError:
        raise invalid("when_full", given, f"must be one of {', '.join(WhenFull)}") from None


def _expression(key: Any) -> str:
    try:
        return limit_key(key).source
    except InvalidInput as error:
        rule = str(error.fields["rule"])
        raise InvalidInput(
            f"The key of a backlog cap is {quoted(key)}; it {rule}.",
            code="invalid-backlog-key",
            hint=error.hint,
            field="key",
            value=quoted(key),
            rule=rule,
        ) from None


def _fails(source: str, error: InvalidInput) -> InvalidInput:
    path, rule = error.fields["field"], error.fields["rule"]
    return InvalidInput(
        f"The run counts by {source} in a backlog with a cap; {path} {rule}.",
        code="backlog-key-fails",
        hint="Pass such an argument, or give the cap another key: mainspring backlog list.",
        field=path,
        rule=rule,
    )
