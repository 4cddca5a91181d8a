"""The worker's log of attempts: a line for each that failed, and for each run that is dead or lost.

A line is written once the database has accepted what became of the attempt, so it says what history says, and says it
once, and not too often (`RunLog`). Everything else is for level debug. Runs whose worker was lost are not here: whoever
rescues them says what became of them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from mainspring.model.lifecycle import Outcome
from mainspring.model.report import escaped, one_line
from mainspring.store.columns import ATTEMPT, AttemptRecord
from mainspring.store.leases import Fate, Settlement
from mainspring.store.run_log import BAD_ENDS, RunLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.clock import Clock
    from mainspring.store.leases import Settled
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.successes import WholeLease
    from mainspring.worker.work import Work

log = structlog.get_logger()

LOOK_SECONDS = 1.0
MAX_ERROR_LENGTH = 300

_OUTCOME, _STATE = (AttemptRecord._fields.index(name) for name in ("outcome", "state"))
_FAILURES = {
    Outcome.FAILED: "an attempt failed",
    Outcome.TIMED_OUT: "an attempt timed out",
    Outcome.CRASHED: "an attempt crashed",
}


class AttemptLog:
    def __init__(self, *, clock: Clock, leases: ActiveLeases) -> None:
        self._clock = clock
        self._leases = leases
        self.lines = RunLog(clock)

    def note(self, batch: Iterable[Settled], settlement: Settlement) -> None:
        """The database has answered for these, and the worker still holds them."""
        is_debugging = log.is_enabled_for(logging.DEBUG)
        for each in batch:
            if each.record[_OUTCOME] is Outcome.SUCCEEDED and not is_debugging:
                continue  # almost always, so it is asked first
            event = _event_of(each)
            if event is None and not is_debugging:
                continue
            work = self._leases.work_of(each)
            if each.run_id in settlement.overruled or work.handler is None:
                continue
            if event is None:
                log.debug("an attempt ended", **_about(work, each))
            elif self.lines.may_write(event, work.handler.name, level := _level_of(each)):
                log.log(level, event, **_about(work, each), **_what_follows(work, each))

    def note_completed(self, completed: Iterable[WholeLease]) -> None:
        """All runs of these leases succeeded, and the worker still holds them."""
        if log.is_enabled_for(logging.DEBUG):
            self.note([each.settled() for lease in completed for each in lease.successes], Settlement())

    async def run(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            self.lines.sum_up()


def _event_of(settled: Settled) -> str | None:
    """What to call it, if it is a failure or the bad end of a run."""
    record = settled.record
    return BAD_ENDS.get(record[_STATE]) or _FAILURES.get(record[_OUTCOME])


def _level_of(settled: Settled) -> int:
    return logging.WARNING if settled.fate is Fate.RETRY else logging.ERROR


def _about(work: Work, settled: Settled) -> dict[str, Any]:
    assert work.handler is not None
    record = AttemptRecord(*settled.record)
    fields = {"job": work.handler.name, "run": str(settled.run_id), "attempt": record.attempt}
    fields["outcome"] = str(record.outcome)
    return fields if record.error is None else fields | {"error": _text_of(record.error)}


def _text_of(error: str) -> str:
    document = msgspec.json.decode(error)
    return escaped(one_line(f"{document['type']}: {document['message']}", MAX_ERROR_LENGTH))


def _what_follows(work: Work, settled: Settled) -> dict[str, Any]:
    if settled.fate is not Fate.RETRY:
        return {"attempts_left": 0}
    left = work.retry_policy.max_attempts - work.row[ATTEMPT] - settled.spent
    return {"attempts_left": left, "next_attempt_in_s": round(_pause(settled), 3)}


def _pause(settled: Settled) -> float:
    if settled.not_before is None:
        return settled.delay
    finished_at = AttemptRecord(*settled.record).finished_at
    return max(settled.delay, (settled.not_before[0] - finished_at[0]) / 1_000_000)
