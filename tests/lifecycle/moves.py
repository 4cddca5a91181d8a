"""What `lifecycle.MOVES` predicts: the state of a run after a verb, or after two."""

from __future__ import annotations

from typing import NamedTuple

from mainspring.model.lifecycle import ENDS, MOVES, VERBS, State

# `submit` makes a run; it acts on none.
ACTING = tuple(move.verb for move in MOVES if move.sources)

# Verbs of a worker that has the run; they name its lease and are stale without one.
SETTLING = frozenset({"complete", "retry", "snooze", "bury", "hold", "give_back", "lose"})

# Verbs of keepers and claimers take what they find and pass over what somebody else holds at that moment.
PASSING_OVER = frozenset({"promote", "release", "claim", "rescue", "expire"})


def allows(verb: str, source: State) -> bool:
    """Whether `verb` may act on a run in `source`."""
    return source in VERBS[verb].sources


class Expected(NamedTuple):
    """A state, and whether someone asked for the end of a run that is still running."""

    state: State
    is_cancelling: bool = False


def after(verb: str, before: Expected, seen: State) -> Expected:
    """What a verb makes of a run, nothing if it does not act on runs in that state.

    `seen` is where the run was when the actor last looked: who changes a run chooses the new time by it.
    """
    if not allows(verb, before.state):
        return before
    if verb == "change":
        return _changed(before, seen)
    if verb == "cancel" and before.state is State.RUNNING:
        return Expected(State.RUNNING, is_cancelling=True)  # the worker is asked; it or a rescuer ends the run
    (target,) = VERBS[verb].targets
    if before.is_cancelling and target not in ENDS:
        return Expected(State.CANCELLED)
    return Expected(target)


def _changed(before: Expected, seen: State) -> Expected:
    if before.state is State.HELD:
        return before
    return Expected(State.SCHEDULED if seen is State.READY else State.READY)


def orders(source: State, first: str, second: str, seen: State) -> set[Expected]:
    """What may have become of a run on which two verbs acted at once: as if one had come after the other."""
    start = Expected(source)
    once, other = after(first, start, source), after(second, start, seen)
    if second in SETTLING and seen is not State.RUNNING:
        return {once}  # it came with a lease that was over
    results = {after(second, once, seen), after(first, other, source)}
    if second in PASSING_OVER:
        results.add(once)
    if first in PASSING_OVER:
        results.add(other)
    return results
