"""The states of a run and the moves between them: the only place where they are written down.

*Where the row is* is its state: `PLACES` names the table that holds a run in each waiting or running state. Only a run
that is *staged* is scheduled elsewhere: `STAGED`.
A run that ended exists only in history, where exactly one of its rows has one of the `ENDS` as its state.
SQL enums, the header lines of the statements, the diagram in ARCHITECTURE.md and two test suites (every state
with every verb, every verb against every verb) are derived from or checked against this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class State(StrEnum):
    SCHEDULED = "scheduled"  # due in the future, or backing off
    HELD = "held"  # waiting, with its reason (no handler, …)
    READY = "ready"  # may start
    RUNNING = "running"  # claimed by a worker
    DEAD = "dead"  # out of attempts; kept until someone decides
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # not started in time
    LOST = "lost"  # at-most-once, and stopped before it had finished: by whatever befell its worker


ENDS = frozenset({State.SUCCEEDED, State.CANCELLED, State.EXPIRED, State.LOST})
WAITING = frozenset({State.SCHEDULED, State.HELD, State.READY})

PLACES = {
    State.SCHEDULED: "later",
    State.HELD: "held",
    State.READY: "ready",
    State.RUNNING: "lease",
    State.DEAD: "dead",
}
# A schedule's run may be put in line ahead of its instant, with a rank in the future. Until that comes it is scheduled.
STAGED = PLACES[State.READY]


class Outcome(StrEnum):
    """What one attempt came to. What the *run* became is a State; history keeps both."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # spends the attempt; none if the run's own policies could not be read, so that it never began
    INTERRUPTED = "interrupted"  # stopped by a drain or a disconnect; spends no attempt
    CRASHED = "crashed"  # its process vanished; spends the attempt if that was the run's own, and none if it was shared
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    TIMED_OUT = "timed_out"  # spends the attempt; none if the run's time was up before it began or by a snooze
    SNOOZED = "snoozed"  # the handler asked for another time; spends no attempt


# So often a run may be around when its worker is lost; then it goes among the dead letters. In a shared worker nobody
# can tell which run was to blame, so this is a lot more than one would allow a culprit.
MOST_CRASHES = 10


class HoldReason(StrEnum):
    """Why a run is held."""

    NO_HANDLER = "no-handler"
    LIMIT = "limit"  # it waits at a gate
    BREAKER = "breaker"  # the circuit breaker of its job is open
    PARENT = "parent"  # it waits until other runs have ended
    CHILDREN = "children"  # its handler has returned, and runs that it submitted have not ended
    OVERLAP = "overlap"  # it waits for an earlier run of its schedule
    BACKPRESSURE = "backpressure"  # its line has as many runs as its high mark says


@dataclass(frozen=True, slots=True)
class Move:
    """One verb and the paths it takes runs along; from None it brings a run into being, to None it takes it back."""

    verb: str
    paths: frozenset[tuple[State | None, State | None]]

    @property
    def sources(self) -> frozenset[State]:
        return frozenset(source for source, _ in self.paths if source is not None)

    @property
    def targets(self) -> frozenset[State]:
        return frozenset(target for _, target in self.paths if target is not None)

    def staying(self, state: State) -> Move:
        """The same verb, which also acts on runs in `state` and leaves them there."""
        return Move(self.verb, self.paths | {(state, state)})


def move(verb: str, *sources: State, to: State | tuple[State, ...] | None) -> Move:
    targets = to if isinstance(to, tuple) else (to,)
    return Move(verb, frozenset(product(sources or (None,), targets)))


_S = State

MOVES = (
    #    verb         from                                                to
    move("submit", to=(_S.READY, _S.SCHEDULED, _S.HELD)),
    move("promote", _S.SCHEDULED, to=(_S.READY, _S.HELD)),
    move("release", _S.HELD, to=(_S.READY, _S.SCHEDULED)),
    move("claim", _S.READY, to=_S.RUNNING),
    move("complete", _S.RUNNING, to=_S.SUCCEEDED),
    move("retry", _S.RUNNING, to=_S.SCHEDULED),
    move("snooze", _S.RUNNING, to=_S.SCHEDULED),
    move("bury", _S.RUNNING, to=_S.DEAD),
    move("hold", _S.RUNNING, to=_S.HELD),
    move("await_children", _S.RUNNING, to=_S.HELD),
    move("join", _S.HELD, to=_S.SUCCEEDED),  # all its children have ended as they should
    move("fail", _S.HELD, to=_S.DEAD),  # one of its children has not
    move("give_back", _S.RUNNING, to=_S.READY),
    move("rescue", _S.RUNNING, to=_S.READY),
    move("requeue", _S.DEAD, to=_S.READY),
    move("purge", _S.DEAD, to=_S.CANCELLED),
    move("lose", _S.RUNNING, to=_S.LOST),
    move("cancel", _S.SCHEDULED, _S.HELD, _S.READY, _S.RUNNING, to=_S.CANCELLED),
    move("expire", _S.SCHEDULED, _S.HELD, _S.READY, _S.RUNNING, to=_S.EXPIRED),
    move("withdraw", _S.SCHEDULED, to=None),  # fired ahead of its instant, and its schedule was changed before that
    move("change", _S.SCHEDULED, _S.READY, _S.HELD, to=(_S.SCHEDULED, _S.READY)).staying(_S.HELD),
)

VERBS = {each.verb: each for each in MOVES}
