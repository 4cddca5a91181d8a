"""Every error Mainspring raises.

    MainspringError
    ├── InvalidInput (ValueError)          a value breaks a rule: field, value, rule
    │   ├── InvalidArguments               the arguments of a job do not fit its signature
    │   │   └── UnfitArguments             those that a run was stored with do not fit the code that shall run it
    │   ├── InvalidResult                  what a job returned does not fit its annotation
    │   │   └── InvalidAnswers             a chunk handler did not answer each of its runs
    │   ├── InvalidSchedule                when a job shall run cannot be read, or never comes
    │   ├── FilterTooWide                  too many runs would have to be looked at
    │   └── ValueNotStorable               PostgreSQL cannot keep a value that was given
    ├── NotFound (LookupError)
    │   ├── JobNotFound · QueueNotFound · RunNotFound · WorkerNotFound · OperationNotFound · ScheduleNotFound
    │   │   · CalendarNotFound · LimitNotFound · BacklogCapNotFound · BreakerNotFound · FlowNotFound · ChainNotFound
    │   │   · TenantNotFound
    ├── Conflict                           someone got there first
    │   ├── RunAlreadyStarted · RunAlreadyEnded · RunNotDead · RunNotEnded
    │   ├── RevisionConflict · IdempotencyConflict · UniqueConflict · KeyBusy · LeaseLost
    │   ├── BacklogFull                    as many runs wait as may
    │   ├── ScheduleExists · ScheduleVersionConflict
    │   ├── CalendarExists · CalendarVersionConflict · CalendarInUse · TenantExists
    ├── OutcomeUnknown                     COMMIT was sent and its answer was lost
    ├── RunNotSucceeded                    what `handle.result()` raises instead of returning
    │   ├── RunFailed · RunCancelled · RunExpired · RunLost
    ├── AttemptTimedOut (TimeoutError)     why an attempt was stopped; retry policies know it as a TimeoutError
    ├── ResultTimeout (TimeoutError)
    ├── NotIdle (TimeoutError)             `run_until_idle` of the test kit ran out of patience
    ├── NotFinished                        a transactional handler returned without finishing its run
    ├── ProcessCrashed                     the process of an isolated run ended without a result
    ├── OutOfMemory (MemoryError)          an isolated run reached its memory limit
    ├── BadFrame                           an isolated run said something that is not in the protocol
    ├── CommandFailed                      a command ended with an exit code other than 0
    ├── ExtraMissing (ImportError)         what was asked for needs a package that is not installed
    └── StoreError                         the database
        ├── DatabaseUnreachable (ConnectionError)
        │   └── NodeUnreachable            one node of a Citus cluster: what is on the others goes on
        ├── DatabaseBusy                   locks, deadlocks, time limits: nothing happened, try again
        ├── DatabaseUnsuitable             too old, read-only, wrong settings, missing permission
        │   ├── PermissionMissing          the role may not do what is needed
        │   └── ForeignDatabase            a connection to another installation of Mainspring
        ├── PartitionMissing               history has no partition for today
        ├── RowExists                      a unique constraint was there first
        ├── SchemaMismatch                 program and schema do not serve each other
        └── EmbeddedServerError            the private PostgreSQL could not be made, started or shared

Each has a stable `code` (the same word in Python, HTTP and CLI), a message that names the thing and the cause,
and, where we know the remedy, a `hint`. `fields` carries the data behind the message.
"""

from __future__ import annotations

import difflib
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class MainspringError(Exception):
    """The base of everything Mainspring raises."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.fields = fields
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class InvalidInput(MainspringError, ValueError):
    """A value breaks a rule. `fields` has the field, the value (shortened) and the rule."""

    code = "invalid-input"


class InvalidArguments(InvalidInput):
    code = "invalid-arguments"


class UnfitArguments(InvalidArguments):
    """What a run was submitted or scheduled with does not fit its handler, which has changed since."""

    code = "unfit-arguments"


class InvalidResult(InvalidInput):
    """What a handler returned does not fit its return annotation."""

    code = "invalid-result"


class InvalidAnswers(InvalidResult):
    """What a chunk handler returned is not one answer for each of its runs."""

    code = "invalid-answers"


class InvalidSchedule(InvalidInput):
    """A schedule that cannot be read, or never fires. `fields` point at the character and say what is allowed there."""

    code = "invalid-schedule"


class FilterTooWide(InvalidInput):
    code = "filter-too-wide"


class ValueNotStorable(InvalidInput):
    """PostgreSQL cannot keep a value that was given: too large, or not representable there."""

    code = "value-not-storable"


class NotFound(MainspringError, LookupError):
    """Something that was named is not there."""

    code = "not-found"


class JobNotFound(NotFound):
    code = "job-not-found"


class ScheduleNotFound(NotFound):
    code = "schedule-not-found"


class CalendarNotFound(NotFound):
    code = "calendar-not-found"


class LimitNotFound(NotFound):
    code = "limit-not-found"


class BreakerNotFound(NotFound):
    code = "breaker-not-found"


class BacklogCapNotFound(NotFound):
    code = "backlog-cap-not-found"


class FlowNotFound(NotFound):
    code = "flow-not-found"


class ChainNotFound(NotFound):
    code = "chain-not-found"


class TenantNotFound(NotFound):
    code = "tenant-not-found"


class QueueNotFound(NotFound):
    code = "queue-not-found"


class RunNotFound(NotFound):
    code = "run-not-found"


class WorkerNotFound(NotFound):
    code = "worker-not-found"


class OperationNotFound(NotFound):
    code = "operation-not-found"


class Conflict(MainspringError):
    """Someone got there first, or what is asked for does not fit what there is."""

    code = "conflict"


class RunAlreadyStarted(Conflict):
    code = "run-already-started"


class RunAlreadyEnded(Conflict):
    code = "run-already-ended"


class RunNotDead(Conflict):
    code = "run-not-dead"


class RunNotEnded(Conflict):
    code = "run-not-ended"


class ScheduleExists(Conflict):
    code = "schedule-exists"


class ScheduleVersionConflict(Conflict):
    code = "schedule-version-conflict"


class CalendarExists(Conflict):
    code = "calendar-exists"


class TenantExists(Conflict):
    code = "tenant-exists"


class CalendarVersionConflict(Conflict):
    code = "calendar-version-conflict"


class CalendarInUse(Conflict):
    """A calendar that schedules use cannot be deleted. `used_by` names them, the first hundred."""

    code = "calendar-in-use"


class RevisionConflict(Conflict):
    code = "revision-conflict"


class IdempotencyConflict(Conflict):
    code = "idempotency-conflict"


class UniqueConflict(Conflict):
    """Another run holds the unique key: `fields` has its id."""

    code = "unique-conflict"


class BacklogFull(Conflict):
    """As many runs wait as a cap allows: `fields` has the cap, how many wait and how many may."""

    code = "backlog-full"


class KeyBusy(Conflict):
    code = "idempotency-key-busy"


class LeaseLost(Conflict):
    """Another worker has the run by now, or it has ended: what this attempt still says counts for nothing."""

    code = "lease-lost"


class OutcomeUnknown(MainspringError):
    """COMMIT was sent and its answer was lost: the change may or may not have happened."""

    code = "outcome-unknown"


class RunNotSucceeded(MainspringError):
    """A run whose result was awaited ended in another way."""

    code = "run-not-succeeded"

    @property
    def error(self) -> dict[str, str]:
        """What its last attempt raised: `type`, `message`, `traceback`, and `code` if it has one."""
        error = self.fields.get("error")
        return error if isinstance(error, dict) else {}


class RunFailed(RunNotSucceeded):
    """The run is dead: it is out of attempts, or was given up. `error` says why."""

    code = "run-failed"


class RunCancelled(RunNotSucceeded):
    """Someone cancelled the run, or its handler did."""

    code = "run-cancelled"


class RunExpired(RunNotSucceeded):
    """The run was not started in time."""

    code = "run-expired"


class RunLost(RunNotSucceeded):
    """The run is delivered at most once, and its worker was lost."""

    code = "run-lost"


class AttemptTimedOut(MainspringError, TimeoutError):
    code = "attempt-timed-out"


class ResultTimeout(MainspringError, TimeoutError):
    code = "result-timeout"


class NotIdle(MainspringError, TimeoutError):
    """`run_until_idle` or `travel` ran out of patience."""

    code = "not-idle"


class NotFinished(MainspringError):
    code = "not-finished"


class ProcessCrashed(MainspringError):
    """The process of an isolated run ended without a result. `fields` has its `signal` or `exit_code`."""

    code = "process-crashed"


class OutOfMemory(MainspringError, MemoryError):
    code = "out-of-memory"


class BadFrame(MainspringError):
    """The other side of the socket to an isolated run said something that is not in the protocol."""

    code = "bad-frame"


class CommandFailed(MainspringError):
    """A command ended with an exit code other than 0. `fields` has the `exit_code`."""

    code = "command-failed"


class ExtraMissing(MainspringError, ImportError):
    """What was asked for needs a package that is not installed. `fields` has the `extra` that brings it."""

    code = "extra-missing"


class StoreError(MainspringError):
    """The database could not do what was asked. `fields` has its `sqlstate`, where it said one."""

    code = "database-error"


class DatabaseUnreachable(StoreError, ConnectionError):
    code = "database-unreachable"


class NodeUnreachable(DatabaseUnreachable):
    """The database answers, but one node of its Citus cluster cannot be reached. What is on the others goes on."""

    code = "node-unreachable"
    node = ""  # its address
    asked_at = failed_at = 0.0  # on the clock of the event loop


class DatabaseBusy(StoreError):
    """A lock, a deadlock or a time limit was in the way. Nothing happened; the same may be tried again."""

    code = "database-busy"


class DatabaseUnsuitable(StoreError):
    """The database is too old, read-only, full, or lacks something: a setting, a permission."""

    code = "database-unsuitable"


class PermissionMissing(DatabaseUnsuitable):
    """The role of this connection may not do what is needed."""

    code = "permission-missing"


class ForeignDatabase(DatabaseUnsuitable):
    """A connection leads to another installation of Mainspring than the one the application uses."""

    code = "foreign-database"


class PartitionMissing(StoreError):
    """History has no partition for today. Workers make it and try again."""

    code = "partition-missing"


class RowExists(StoreError):
    """Someone wrote the same at the same moment."""

    code = "row-exists"


class SchemaMismatch(StoreError):
    """The program and the schema in the database do not serve each other."""

    code = "schema-mismatch"


class EmbeddedServerError(StoreError):
    """The private PostgreSQL could not be made, started or shared."""

    code = "embedded-server-error"


def extra_missing(what: str, package: str | None, extra: str) -> ExtraMissing:
    return ExtraMissing(
        f"{what} needs the package {package}, which is not installed.",
        hint=f'Install it: pip install "mainspring[{extra}]"',
        extra=extra,
        package=package,
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the closest known word, or lists a few of them."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not words:
        return ""
    more = f" and {len(words) - 5} more" if len(words) > 5 else ""
    return f"Known: {', '.join(words[:5])}{more}."


def shortened(value: object, limit: int = 80) -> str:
    """A value as it may appear in a message: on one line, never long."""
    try:
        text = value.isoformat() if isinstance(value, datetime) else repr(value)
    except Exception:  # too deep, or hostile: a message must not fail
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"
