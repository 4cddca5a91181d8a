"""Policies: what happens when an attempt fails. Pure arithmetic; the store adds the delay to the database's clock."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from uuid import UUID

MAX_ATTEMPTS = 1_000
MAX_NAMED_ERRORS = 50
NO_TIME, MAX_BACK_OFF = timedelta(0), timedelta(days=30)
DEFAULT_FACTOR = 2.0
MICROSECOND = timedelta(microseconds=1)

_ERROR_NAME = re.compile(r"[^\W\d][\w.<>]{0,199}")


class BackOff(StrEnum):
    """How pauses grow from one failed attempt to the next."""

    CONSTANT = "constant"  # always `first_delay`
    LINEAR = "linear"  # `first_delay` longer each time
    EXPONENTIAL = "exponential"  # `factor` times as long each time


class Jitter(StrEnum):
    """How much chance there is in a pause, so that what failed together does not come back together."""

    NONE = "none"
    FULL = "full"  # anything from nothing to the whole pause
    EQUAL = "equal"  # at least half of the pause


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class RetryPolicy:
    """How often, when and after which errors a failed attempt is followed by another.

    Pauses begin with `first_delay`, grow by `back_off` and are never longer than `cap`; `jitter` shortens them.
    `retry_on` and `never_on` name errors, and with them all that are derived from them: only the first are worth
    another attempt (all, if none is named), the second never are.
    """

    max_attempts: int
    first_delay: timedelta
    factor: float
    cap: timedelta
    back_off: BackOff = BackOff.EXPONENTIAL
    jitter: Jitter = Jitter.NONE
    retry_on: tuple[str, ...] = ()
    never_on: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        max_attempts: int = 5,
        first_delay: timedelta = timedelta(seconds=1),
        factor: float = DEFAULT_FACTOR,
        cap: timedelta = timedelta(hours=1),
        back_off: BackOff | str = BackOff.EXPONENTIAL,
        jitter: Jitter | str = Jitter.NONE,
        retry_on: Iterable[type[BaseException] | str] = (),
        never_on: Iterable[type[BaseException] | str] = (),
    ) -> None:
        # Written out, because errors are given as classes and kept by name: nothing stored is ever imported.
        keep = partial(object.__setattr__, self)
        keep("max_attempts", max_attempts)
        keep("first_delay", first_delay)
        keep("factor", factor)
        keep("cap", cap)
        keep("back_off", _chosen("back_off", back_off, BackOff))
        keep("jitter", _chosen("jitter", jitter, Jitter))
        keep("retry_on", _names("retry_on", retry_on))
        keep("never_on", _names("never_on", never_on))
        self.__post_init__()

    def __post_init__(self) -> None:
        _check_range("max_attempts", self.max_attempts, int, 1, MAX_ATTEMPTS, f"a whole number, 1 to {MAX_ATTEMPTS}")
        _check_range("factor", self.factor, (int, float), 1, 100, "a number, 1 to 100")
        _check_range("first_delay", self.first_delay, timedelta, NO_TIME, MAX_BACK_OFF, "a timedelta, 0 to 30 days")
        _check_range("cap", self.cap, timedelta, self.first_delay, MAX_BACK_OFF, "a timedelta, first_delay to 30 days")
        if self.back_off is not BackOff.EXPONENTIAL and self.factor != DEFAULT_FACTOR:
            raise _invalid("factor", self.factor, f"left out: {self.back_off.value} back-off does not multiply")

    def may_retry(self, attempts_spent: int) -> bool:
        return attempts_spent < self.max_attempts

    def is_worth_retrying(self, error: BaseException) -> bool:
        """Whether this kind of error may be gone the next time, by what the policy names."""
        if not self.retry_on and not self.never_on:
            return True
        names = {error_name(kind) for kind in type(error).__mro__}
        return names.isdisjoint(self.never_on) and (not self.retry_on or not names.isdisjoint(self.retry_on))

    def delay_after(self, attempts_spent: int, run_id: UUID) -> timedelta:
        """How long this run waits after so many failed attempts (at least one): always the same, chance included."""
        longest = self.longest_delay_after(attempts_spent)
        if self.jitter is Jitter.NONE:
            return longest
        # In whole microseconds: rounding must not leave the bounds.
        micros = longest // MICROSECOND
        spread = micros if self.jitter is Jitter.FULL else micros // 2
        return (micros - (spread * _chance(run_id, attempts_spent) >> 64)) * MICROSECOND

    def longest_delay_after(self, attempts_spent: int) -> timedelta:
        """How long a run waits after so many failed attempts, jitter aside."""
        if self.back_off is BackOff.CONSTANT:
            return self.first_delay
        if self.back_off is BackOff.LINEAR:
            return min(self.first_delay * attempts_spent, self.cap)
        cap = self.cap.total_seconds()
        seconds = self.first_delay.total_seconds()
        for _ in range(attempts_spent - 1):
            seconds *= self.factor
            if seconds >= cap:
                return self.cap
        return timedelta(seconds=min(seconds, cap))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What one run has instead of its job's policies; None leaves the job's."""

    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    run_timeout: timedelta | None = None

    def as_json(self) -> str | None:
        """As the run keeps it; nothing, if nothing is overridden."""
        given = {name: value for name, value in msgspec.to_builtins(self).items() if value is not None}
        return msgspec.json.encode(given, order="sorted").decode() if given else None


NO_OVERRIDES = Overrides()


def error_name(kind: type) -> str:
    """The name by which policies know an error: `ValueError`, `httpx.ConnectError`."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _chance(run_id: UUID, attempts_spent: int) -> int:
    """64 bits that look like chance and can be had again: tests and explanations get what the worker got."""
    digest = hashlib.blake2b(run_id.bytes + attempts_spent.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _chosen(field: str, value: object, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(value)  # type: ignore[arg-type]  # whatever was given
    except ValueError:
        raise _invalid(field, value, f"one of {', '.join(kind)}") from None


def _names(field: str, given: object) -> tuple[str, ...]:
    if isinstance(given, (str, type)) or not isinstance(given, Iterable):
        raise _invalid(field, given, "a tuple of exception classes, like (ConnectionError,)")
    names = tuple(dict.fromkeys(_name(field, each) for each in given))
    if len(names) > MAX_NAMED_ERRORS:
        raise _invalid(field, f"{len(names)} errors", f"at most {MAX_NAMED_ERRORS} errors")
    return names


def _name(field: str, given: object) -> str:
    name = error_name(given) if isinstance(given, type) and issubclass(given, BaseException) else given
    if not isinstance(name, str) or not _ERROR_NAME.fullmatch(name):
        raise _invalid(field, given, "exception classes, or their names, like 'httpx.ConnectError'")
    return name


def _check_range(field: str, value: Any, kind: type | tuple[type, ...], least: Any, most: Any, rule: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
        raise _invalid(field, value, rule)


def _invalid(field: str, value: object, rule: str) -> InvalidInput:
    shown = str(value) if isinstance(value, timedelta) else quoted(value)
    return InvalidInput(
        f"retry.{field} is {shown}; it must be {rule}.",
        code="invalid-retry-policy",
        field=f"retry.{field}",
        value=shown,
        rule=rule,
    )
