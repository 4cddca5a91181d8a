"""What `lifecycle.MOVES` predicts: where a run is after a verb, or after two."""

from __future__ import annotations

from typing import NamedTuple

from mainspring.model.lifecycle import ENDS, MOVES, VERBS, State

# `submit` makes a run; it acts on none.
ACTING = tuple(move.verb for move in MOVES if move.sources)

# Verbs of a worker that has the run; they name its lease and are stale without one.
SETTLING = frozenset({"complete", "retry", "snooze", "bury", "hold", "await_children", "give_back", "lose"})

# Verbs of keepers and claimers take what they find and pass over what somebody else holds at that moment.
# These runs have no limits, and what they are held for is not another run.
NOT_HERE = {"promote": {State.HELD}, "release": {State.SCHEDULED}}
PASSING_OVER = frozenset({"promote", "release", "claim", "rescue", "expire", "join", "fail"})


# Where a run may begin or get to: a state, or one of these. A schedule's run is *staged* in line ahead of its instant;
# *postponed* it was given another time that is to come. Both are scheduled, and once withdrawn a run is gone.
# *Awaiting* its children it is held, and has nothing to be started for.
STAGED, POSTPONED, AWAITING, GONE = "staged", "postponed", "awaiting", "gone"
UNTIMELY = {
    State.HELD: {"join", "fail"},
    AWAITING: {"release", "expire", "change"},  # its handler has returned
    State.SCHEDULED: {"withdraw"},  # what backs off was started: it has fired
    STAGED: {"promote"},  # it is in line, and time will do it
    POSTPONED: {"promote", "expire"},  # not due yet, and its expiry was put off as well
}


def state_at(spot: str) -> State | None:
    """The state of a run that is there: None if it is not there any more."""
    if spot in (STAGED, POSTPONED):
        return State.SCHEDULED
    if spot == AWAITING:
        return State.HELD
    return None if spot == GONE else State(spot)


def allows(verb: str, spot: str) -> bool:
    """Whether `verb` may act on a run that is there."""
    return state_at(spot) in VERBS[verb].sources and verb not in UNTIMELY.get(spot, ())


class Expected(NamedTuple):
    """Where a run is, and whether someone asked for the end of one that is still running."""

    spot: str
    is_cancelling: bool = False

    @property
    def visible(self) -> tuple[State | None, bool]:
        return state_at(self.spot), self.is_cancelling


def after(verb: str, before: Expected, seen: State | None) -> Expected:
    """What a verb makes of a run, nothing if it does not act on runs in that state.

    `seen` is where the run was when the actor last looked: who changes a run chooses the new time by it.
    """
    if not allows(verb, before.spot):
        return before
    if verb == "change":
        return _changed(before, seen)
    if verb == "withdraw":
        return Expected(GONE)
    if verb == "cancel" and before.spot == State.RUNNING:
        return Expected(State.RUNNING, is_cancelling=True)  # the worker is asked; it or a rescuer ends the run
    (target,) = VERBS[verb].targets - NOT_HERE.get(verb, set())
    if before.is_cancelling and target not in ENDS:
        return Expected(State.CANCELLED)
    return Expected(AWAITING if verb == "await_children" else target)


def _changed(before: Expected, seen: State | None) -> Expected:
    if state_at(before.spot) is State.HELD:
        return before
    return Expected(POSTPONED if seen is State.READY else State.READY)


def orders(source: str, first: str, second: str, seen: State | None) -> set[Expected]:
    """What may have become of a run on which two verbs acted at once: as if one had come after the other."""
    start = Expected(source)
    once, other = after(first, start, state_at(source)), after(second, start, seen)
    if second in SETTLING and seen is not State.RUNNING:
        return {once}  # it came with a lease that was over
    results = {after(second, once, seen), after(first, other, state_at(source))}
    if second in PASSING_OVER:
        results.add(once)
    if first in PASSING_OVER:
        results.add(other)
    return results
