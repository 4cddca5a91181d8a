"""When a run may start again, and whether it may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.lifecycle import State
from mainspring.store.instants import micros_of
from mainspring.store.leases import Fate

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.store.instants import Micros


def due_again(now: Micros, delay: float, at: datetime | None) -> int:
    """About when a run is due again, in microseconds since 2000; the database decides."""
    after = now[0] + round(delay * 1_000_000)
    return after if at is None else max(after, micros_of(at)[0])


def never_again(fate: Fate, state: State) -> tuple[Fate, State]:
    """The rule of at-most-once: a run that has started goes nowhere from where it could start again.

    What would be retried is dead; what was stopped through no fault of its own (a drain, a lost connection) is lost.
    """
    match fate:
        case Fate.END | Fate.BURY | Fate.AWAIT_CHILDREN:  # which is not a start
            return fate, state
        case Fate.RETRY:
            return Fate.BURY, State.DEAD
        case Fate.GIVE_BACK | Fate.HOLD:
            return Fate.END, State.LOST
