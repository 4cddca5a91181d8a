"""Decisions about schedules of one lane, gathered for the database to carry out."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.schedule.deciding import CatchUp, CatchUpRule, SkipReason
from mainspring.schedule.document import schedule_of
from mainspring.schedule.schedule import Occurrence
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.store.schedule_firing import Firing, Skip

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.run import NewRun
    from mainspring.schedule.deciding import Decision
    from mainspring.schedule.schedule import Schedule

SPECS_KEPT = 10_000


class Cursor(NamedTuple):
    """Where a schedule stands: the first instant that nobody has decided."""

    schedule_id: UUID
    revision: int
    nominal_at: datetime
    due_at: datetime
    tzdata: str = TZDATA_VERSION  # the release that computed it
    calendars_revision: int | None = None  # of its schedule's calendars when it was computed; None if it uses none

    @property
    def occurrence(self) -> Occurrence:
        return Occurrence(self.nominal_at, self.due_at, TZDATA_VERSION)


@lru_cache(maxsize=SPECS_KEPT)
def schedule_from(spec: str) -> Schedule:
    """A schedule from its row. Many share one text, and what is worked out from it.

    Of stored calendars it knows the names: see `scheduler/calendars.py`.
    """
    return schedule_of(msgspec.json.decode(spec))


def schedule_if_readable(spec: str) -> Schedule | None:
    """None if it cannot be read here: a newer program has stored it, or its zone is gone."""
    try:
        return schedule_from(spec)
    except Exception:  # whatever it is: who has such a schedule must be able to look at it, mend it and delete it
        return None


@lru_cache(maxsize=1_000)
def catch_up_from(rule: str, seconds: float) -> CatchUp:
    return CatchUp(rule=CatchUpRule(rule), window=timedelta(seconds=seconds))


class Batch:
    """Decisions about schedules of one lane, as the database takes them."""

    def __init__(self, run_ids: list[UUID], *, packs: bool) -> None:
        self.packs = packs  # all workers know the short form of which occurrence a run is for
        self._run_ids = run_ids
        self._places: dict[NewRun, int] = {}
        self.firings: list[Firing] = []
        self.skips: list[tuple[UUID, Skip]] = []
        self.may_cancel = False  # whether what fires may cancel earlier runs
        self.overlapping = 0  # so many instants that were to fire were skipped for an earlier run

    @property
    def templates(self) -> list[NewRun]:
        return list(self._places)

    @property
    def without_run(self) -> int:
        """How many schedules go on to their next instant and make no run."""
        return sum(each.fired is None for each in self.firings) + self.overlapping

    def add(self, cursor: Cursor, decision: Decision, previous: Occurrence | None, template: NewRun) -> None:
        fired, following = decision.fired, decision.following
        run_id = None if fired is None else self._run_ids.pop()
        self.firings.append(
            Firing(
                schedule_id=cursor.schedule_id,
                revision=cursor.revision,
                expected=cursor.nominal_at,
                fired=None if fired is None else fired.nominal_at,
                due=None if fired is None else fired.due_at,
                previous=None if previous is None else previous.nominal_at,
                run_id=run_id,
                template=None if fired is None else self._places.setdefault(template, len(self._places)),
                following=None if following is None else following.nominal_at,
                following_due=None if following is None else following.due_at,
            )
        )
        for first_at, last_at, reason in decision.skipped:
            into = run_id if reason is SkipReason.COLLAPSED else None
            self.skips.append((cursor.schedule_id, Skip(first_at, last_at, reason.value, into)))
