"""What came of releasing runs from the gates at which they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mainspring.store import notify


class Admitted(NamedTuple):
    """What was released, and where more may follow."""

    wake_ups: list[notify.WakeUp]
    gates: set[str]  # to look at next: the following ones of runs that passed, and those where more may pass
    later: dict[str, float]  # to look at in so many seconds: gates that wait for tokens, or where somebody is
    runs: int
    busy: frozenset[str] = frozenset()  # where somebody else was at it, who may have looked too early

    def __or__(self, other: Admitted) -> Admitted:
        return Admitted(
            self.wake_ups + other.wake_ups,
            self.gates | other.gates,
            self.later | other.later,
            self.runs + other.runs,
            self.busy | other.busy,
        )


NOBODY = Admitted([], set(), {}, 0)
