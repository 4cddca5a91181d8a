"""Which runs of a job are one: a run at a time for each value of a key, one per period, or the last of a burst.

A *unique key* is an expression (`model/limit_key.py`) and what it comes to for a run's arguments, with a tab between
them. Without an expression it is all arguments, by their digest. The run that holds the key carries it, with the rule
by which it was accepted, in one of its headers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.limit_key import limit_key
from mainspring.model.payload import quoted
from mainspring.model.policy import MICROSECOND

MAX_PERIOD = timedelta(days=366)
MAX_BYTES = 500  # of a unique key; a longer one ends with a digest
PERIODS_WAITED = 10  # how many periods a debounced run waits at most, unless told
HEADER = "@unique"  # not a name that people can give a header
ALL = "*"  # instead of an expression

WITHIN, DEBOUNCE = "within", "debounce"  # rules besides those of `While`


class While(StrEnum):
    """For how long a run holds its key."""

    WAITING = "waiting"  # until a worker has it; again while it waits for another attempt
    WAITING_OR_RUNNING = "waiting_or_running"  # until it has ended, or is a dead letter


class OnConflict(StrEnum):
    """What whoever submits gets while another run holds the key."""

    RETURN = "return"  # that run
    REFUSE = "refuse"  # an error that names it


@dataclass(frozen=True, slots=True, init=False)
class Unique:
    """One run at a time for each value of a key.

    `Unique("customer")`, `Unique("{region}/{customer}")`, `Unique()`: without a key, runs with equal arguments are one.
    `while_` is `"waiting_or_running"` or `"waiting"`. With `within`, a span, a run holds its key for so long after it
    was accepted, whatever becomes of it: the first of a period wins. `on_conflict="refuse"` raises UniqueConflict
    instead of answering with the run that there is.
    """

    key: str | None = None
    while_: While | None = None  # None: `within`
    within: timedelta | None = None
    on_conflict: OnConflict = OnConflict.RETURN

    def __init__(
        self,
        key: str | None = None,
        *,
        while_: While | str | None = None,
        within: timedelta | float | None = None,
        on_conflict: OnConflict | str = OnConflict.RETURN,
    ) -> None:
        # Written out, because words and spans are given in several ways.
        if while_ is not None and within is not None:
            raise InvalidInput(
                "A run is unique while it waits or runs, or within a period; both were given.",
                code="unique-while-and-within",
                hint="Give one of while_ and within.",
                field="within",
            )
        keep = partial(object.__setattr__, self)
        keep("key", _expression(key))
        keep("within", None if within is None else _period(within, "within"))
        wanted = While.WAITING_OR_RUNNING if while_ is None else _word(While, "while_", while_)
        keep("while_", wanted if within is None else None)
        keep("on_conflict", _word(OnConflict, "on_conflict", on_conflict))

    def wish_for(self, payload: bytes) -> Wish:
        """What a run with these arguments asks for."""
        key = unique_key(ALL if self.key is None else self.key, payload)
        refuses = self.on_conflict is OnConflict.REFUSE
        if self.within is not None:
            return Wish(key, WITHIN, self.within.total_seconds(), None, refuses)
        assert self.while_ is not None
        return Wish(key, self.while_.value, None, None, refuses)


@dataclass(frozen=True, slots=True, init=False)
class Debounce:
    """The last of a burst: a run starts when none was submitted for a period, with the arguments of the last one.

    `Debounce(timedelta(seconds=30), key="document")`. Without a key, all runs of the job are one. However many come, a
    run waits for no longer than `most_wait`: ten periods unless told.
    """

    period: timedelta
    key: str | None = None
    most_wait: timedelta = timedelta(0)  # always given, see below

    def __init__(
        self, period: timedelta | float, *, key: str | None = None, most_wait: timedelta | float | None = None
    ) -> None:
        keep = partial(object.__setattr__, self)
        checked = _period(period, "period")
        waited = min(checked * PERIODS_WAITED, MAX_PERIOD) if most_wait is None else _period(most_wait, "most_wait")
        if waited < checked:
            raise invalid("most_wait", most_wait, "must be at least the period")
        keep("period", checked)
        keep("key", _expression(key))
        keep("most_wait", waited)

    def wish_for(self, payload: bytes) -> Wish:
        key = f"{ALL}\t" if self.key is None else unique_key(self.key, payload)
        return Wish(key, DEBOUNCE, self.period.total_seconds(), self.most_wait.total_seconds(), False)


class Wish(NamedTuple):
    """What a new run asks for: a unique key, and by which rule."""

    key: str
    rule: str
    seconds: float | None  # of the period
    most: float | None  # seconds that a debounced run waits
    refuses: bool  # whether whoever submits wants no earlier run

    @property
    def shown(self) -> str:
        return shown(self.key)

    def as_item(self) -> dict[str, Any]:
        """As the store takes it."""
        given = {"key": self.key, "rule": self.rule, "seconds": self.seconds, "most": self.most}
        return {name: value for name, value in given.items() if value is not None}


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────


def unique_key(source: str, payload: bytes) -> str:
    """What an expression comes to for these arguments."""
    arguments = msgspec.json.decode(payload)
    if source == ALL:  # in one order, however they were given
        return f"{ALL}\t{_digest(msgspec.json.encode(arguments, order='deterministic'))}"
    try:
        value = limit_key(source).of(arguments)
    except InvalidInput as error:
        raise _fails(source, error) from None
    return _fitting(f"{source}\t{value}")


def key_after_change(key: str, payload: bytes) -> str:
    """The unique key of a run that has one, with other arguments."""
    source, _, value = key.partition("\t")
    return key if source == ALL and not value else unique_key(source, payload)


def unique_key_in(headers: str | None) -> str | None:
    """The unique key that a run carries in its headers, as they are stored."""
    if headers is None or HEADER not in headers:
        return None
    kept: str | None = msgspec.json.decode(headers).get(HEADER)
    return None if kept is None else kept.partition(" ")[2]


def shown(key: str) -> str:
    """A key as people read it: `customer=acme`; of one that stands for all arguments or all runs, that it does."""
    source, _, value = key.partition("\t")
    if source == ALL:
        return "all arguments" if value else "all runs of the job"
    return f"{source}={value}"


def _fitting(key: str) -> str:
    """A key that an index can hold."""
    encoded = key.encode()
    if len(encoded) <= MAX_BYTES:
        return key
    source, _, value = key.partition("\t")
    return f"{source}\t{value[:20]}… {_digest(encoded)}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


# ── rules ───────────────────────────────────────────────────────────────────────────────────────────────────────

W = TypeVar("W", While, OnConflict)


def _word(kind: type[W], name: str, given: Any) -> W:
    try:
        return kind(given)
    except ValueError:
        raise invalid(name, given, f"must be one of {', '.join(kind)}") from None


def _expression(key: Any) -> str | None:
    if key is None:
        return None
    try:
        return limit_key(key).source
    except InvalidInput as error:
        rule = str(error.fields["rule"])
        raise InvalidInput(
            f"The key of unique runs is {quoted(key)}; it {rule}.",
            code="invalid-unique-key",
            hint=error.hint,
            field="key",
            value=quoted(key),
            rule=rule,
        ) from None


def _period(given: Any, name: str) -> timedelta:
    if isinstance(given, (int, float)) and not isinstance(given, bool) and 0 < given <= MAX_PERIOD.total_seconds():
        return max(MICROSECOND, timedelta(seconds=given))
    if not isinstance(given, timedelta) or not timedelta(0) < given <= MAX_PERIOD:
        raise invalid(name, given, "must be a timedelta or a number of seconds, more than 0 and at most 366 days")
    return given


def _fails(source: str, error: InvalidInput) -> InvalidInput:
    path, rule = error.fields["field"], error.fields["rule"]
    return InvalidInput(
        f"The run is unique by {source}; {path} {rule}.",
        code="unique-key-fails",
        hint="Pass such an argument, or give the job another key: unique=Unique(…).",
        field=path,
        rule=rule,
    )
