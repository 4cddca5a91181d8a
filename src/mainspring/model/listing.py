"""Lists of runs: which ones, in which order, and where the next page begins.

The order is newest first. A run that has not ended stands at the instant in its id, when it was submitted; one that
has ended, at the instant that was recorded. Neither changes, so pages are stable: runs that come later stand above
the first page, and no run is on two of them.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from mainspring.clock import EPOCH
from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.job import LATEST
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from mainspring.model.filter import RunFilter
    from mainspring.model.lifecycle import State

MOST_PER_PAGE = 1_000
LAST_ID = UUID(int=(1 << 128) - 1)

# ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────


class Position(NamedTuple):
    """Where a run stands in the order: greater is newer."""

    at: int  # microseconds since 1970
    run_id: UUID

    @property
    def before_id(self) -> UUID:
        """Runs that have not ended stand below this position if their ids are smaller than this."""
        millisecond, rest = divmod(self.at, 1_000)
        if rest:
            return _first_id(millisecond + 1)
        return max(_first_id(millisecond), min(self.run_id, _first_id(millisecond + 1)))

    @property
    def instant(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.at)


def position_of_id(run_id: UUID) -> Position:
    return Position((run_id.int >> 80) * 1_000, run_id)


def position_at(at: datetime, run_id: UUID = LAST_ID) -> Position:
    return Position(micros(at), run_id)


def micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def first_id_at(at: datetime) -> UUID:
    """The smallest id that a run submitted at this instant, or later, can have."""
    return _first_id(-(-micros(at) // 1_000))


def _first_id(millisecond: int) -> UUID:
    return UUID(int=max(0, min(millisecond << 80, LAST_ID.int)))


# ── cursors ─────────────────────────────────────────────────────────────────────────────────────────────────────


def cursor_of(position: Position, wanted: RunFilter) -> str:
    """A position as people carry it from page to page. It belongs to the filter it was made for."""
    packed = position.at.to_bytes(8, "big", signed=True) + position.run_id.bytes + wanted.digest
    return base64.urlsafe_b64encode(packed).decode()


def parse_cursor(text: str | None, wanted: RunFilter) -> Position | None:
    if text is None:
        return None
    try:
        packed = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        packed = b""
    if len(packed) != 32:
        raise _not_a_cursor(text, "is not one that a list returned", "Begin again without it.")
    if packed[24:] != wanted.digest:
        raise _not_a_cursor(text, "belongs to a list with another filter", "Give the same filter, or begin again.")
    at = int.from_bytes(packed[:8], "big", signed=True)
    if not 0 <= at <= micros(LATEST):
        raise _not_a_cursor(text, "is not one that a list returned", "Begin again without it.")
    return Position(at, UUID(bytes=packed[8:24]))


def _not_a_cursor(text: str, rule: str, hint: str) -> InvalidInput:
    return InvalidInput(
        f"The cursor {quoted(text)} {rule}.",
        code="invalid-cursor",
        hint=hint,
        field="cursor",
        value=quoted(text),
        rule=rule,
    )


def checked_limit(limit: object, name: str = "limit") -> int:
    """How many are asked for at once."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_PER_PAGE:
        raise invalid(name, limit, f"must be a whole number from 1 to {MOST_PER_PAGE:,}")
    return limit


# ── what is listed ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as lists show it: without its payload, its result and its attempts."""

    id: UUID
    job: str
    job_version: int
    queue: str
    state: State
    priority: int
    attempts_spent: int
    fence: int
    tags: list[str]
    due_at: datetime
    submitted_at: datetime
    submitted_by: str | None
    at: datetime  # where it stands in the list: when it ended or failed, else when it was submitted
    since_at: datetime | None  # in this state since then, where that is known
    held_for: str | None = None
    is_cancelling: bool = False
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some runs, and where the next page begins: None if this is the last one."""

    runs: list[RunSummary] = field(default_factory=list)
    cursor: str | None = None
