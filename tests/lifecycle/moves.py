"""What `lifecycle.MOVES` predicts: the state of a run after a verb, or after two."""

from __future__ import annotations

from typing import NamedTuple

from mainspring.model.lifecycle import ENDS, MOVES, VERBS, State, allows

# `submit` makes a run; it acts on none.
ACTING = tuple(move.verb for move in MOVES if move.sources)

# Verbs of a worker that has the run; they name its lease and are stale without one.
SETTLING = frozenset({"complete", "retry", "bury", "hold", "give_back"})

# Verbs of keepers and claimers take what they find and pass over what somebody else holds at that moment.
PASSING_OVER = frozenset({"promote", "release", "claim", "rescue", "expire"})

_CHANGED = {State.READY: State.SCHEDULED, State.SCHEDULED: State.READY, State.HELD: State.HELD}


class Expected(NamedTuple):
    """A state, and whether someone asked for the end of a run that is still running."""

    state: State
    is_cancelling: bool = False


def after(verb: str, before: Expected) -> Expected:
    """What a verb makes of a run; nothing, if it does not act on runs in that state."""
    if not allows(verb, before.state):
        return before
    if verb == "change":
        return Expected(_CHANGED[before.state])
    if verb == "cancel" and before.state is State.RUNNING:
        return Expected(State.RUNNING, is_cancelling=True)  # the worker is asked; it or a rescuer ends the run
    (target,) = VERBS[verb].targets
    if before.is_cancelling and target not in ENDS:
        return Expected(State.CANCELLED)
    return Expected(target)
