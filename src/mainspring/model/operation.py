"""Operations: one act on many runs, chosen by a filter (or by a schedule's past), worked off in batches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput
from mainspring.model.lifecycle import ENDS, VERBS
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.filter import RunFilter
    from mainspring.model.lifecycle import State


class OperationKind(StrEnum):
    CANCEL = "cancel"
    CHANGE = "change"  # their priority, their queue
    REQUEUE = "requeue"
    PURGE = "purge"
    RERUN = "rerun"  # requeue what is dead, make a new run of what ended
    BACKFILL = "backfill"  # make runs for a schedule's past; which occurrences are meant, its `change` says

    @property
    def stored(self) -> str:
        """As the database knows it: programs that are still served know the older word for rerun."""
        return "retry" if self is OperationKind.RERUN else self.value

    @classmethod
    def _missing_(cls, value: object) -> OperationKind | None:
        return cls.RERUN if value == "retry" else None


# On which runs a kind acts, and on which if no state is named: what succeeded is not run again by oversight.
_REQUEUED = VERBS[OperationKind.REQUEUE].sources
ALLOWED = {kind: VERBS[kind].sources for kind in OperationKind if kind in VERBS}
ALLOWED |= {OperationKind.RERUN: ENDS | _REQUEUED, OperationKind.BACKFILL: frozenset()}
USUAL = ALLOWED | {OperationKind.RERUN: _REQUEUED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """How far an operation has got."""

    id: UUID
    kind: OperationKind
    wanted: RunFilter
    change: dict[str, Any]
    actor: str
    reason: str
    expected: int | None  # None: more than were counted
    done: int
    skipped: int  # moved on before their turn came
    cursor: str | None
    started_at: datetime
    worked_at: datetime
    ended_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None


def kind_of(word: OperationKind | str) -> OperationKind:
    try:
        return OperationKind(word)
    except ValueError:
        raise InvalidInput(
            f"There is no operation {quoted(word)}.",
            code="invalid-kind",
            hint=f"Known: {', '.join(OperationKind)}.",
            field="kind",
            value=quoted(word),
            rule="must be a kind of operation",
        ) from None


def fitting_states(kind: OperationKind, states: tuple[State, ...]) -> tuple[State, ...]:
    """The states of the runs that are meant, or an error that names one on which this cannot be done."""
    for state in states:
        if state not in ALLOWED[kind]:
            raise InvalidInput(
                f"There is nothing to {kind} about runs that are {state}.",
                code="invalid-state",
                hint=f"It can be done to runs that are {' or '.join(sorted(ALLOWED[kind]))}.",
                field="state",
                value=state.value,
                rule=f"must be one that {kind} acts on",
            )
    return states or tuple(sorted(USUAL[kind]))
