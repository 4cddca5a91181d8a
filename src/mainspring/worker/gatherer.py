"""Runs of chunk handlers that wait for others to share a call with: of the same job, version and line.

A chunk is called when it is full, or when its first run has waited for as long as the job says. A run that would expire
meanwhile does not wait, nor do those it came with. How long this may take is bounded by the job and not by the rule for
what waits for a slot: these do not wait because the worker is busy. A group has no slot yet. It will take one, and the
claimer leaves one for it; beyond that it may claim as many runs from the group's line as the group lacks.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.fan_out import of_chunk
from mainspring.store.columns import EXPIRES_AT, JOB, JOB_VERSION, PRIORITY, SPECIAL
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import NoReturn

    from mainspring.store.instants import Micros

    Kind = tuple[int, int, int]  # job, version, line


class ChunkCall(Work):
    """One call of a chunk handler, for several runs: what has a slot, a thread and a time limit.

    Where it waits for a slot it stands for its most urgent run.
    """

    __slots__ = ("_runs", "items")

    def __init__(self, runs: list[Work], formed_at: Micros) -> None:
        first = min(runs, key=_priority)
        super().__init__(
            first.row,
            first.lease,
            first.position,
            first.line,
            first.worker_id,
            formed_at,
            first.handler,
            first.delivery,
            first.waits,
            first.tenant,
        )
        self._runs: Sequence[Work] = runs
        self.items: Sequence[object] = ()  # what the handler gets, one for each run

    @property
    def runs(self) -> Sequence[Work]:
        return self._runs

    @property
    def has_begun(self) -> bool:
        return True  # from when its runs begin, and it never stands anywhere as one that runs before that

    def fan_out(self) -> NoReturn:
        assert self.handler is not None
        raise of_chunk(self.handler.name)

    def begin(self, runs: Sequence[Work], items: Sequence[object]) -> None:
        """These of its runs begin. What the first of them to run out of time has left is the limit of the call."""
        self._runs, self.items = runs, items
        for run in runs:
            run.shared_by = len(runs)
        limits = [run.limit for run in runs if run.limit is not None]
        self.limit = min(limits, key=lambda limit: limit.seconds, default=None)

    def exceed_limit(self) -> None:
        """Those whose limit it is have timed out. The others did nothing wrong, and go back in line."""
        super().exceed_limit()
        assert self.limit is not None
        for run in self._runs:
            if run.limit is not None and run.limit.seconds <= self.limit.seconds:
                run.exceed_limit()
            else:
                run.interrupt()

    def interrupt(self) -> None:
        super().interrupt()
        for run in self._runs:
            run.interrupt()


def _priority(work: Work) -> int:
    return work.row[PRIORITY]  # type: ignore[no-any-return]


class _Group:
    """Runs of one kind, still too few."""

    __slots__ = ("line", "runs", "size", "timer")

    def __init__(self, line: int, size: int, timer: asyncio.TimerHandle) -> None:
        self.line = line
        self.size = size
        self.timer = timer
        self.runs: list[Work] = []


class Gatherer:
    """`call` takes a chunk that is to be called, as soon as there is a slot for it."""

    def __init__(self, *, now: Callable[[], Micros], call: Callable[[ChunkCall], None]) -> None:
        self._now = now
        self._call = call
        self._groups: dict[Kind, _Group] = {}
        self.waiting = 0  # runs

    def __len__(self) -> int:
        """How many groups there are: each will take a slot."""
        return len(self._groups)

    @property
    def lines(self) -> set[int]:
        """Where more runs are welcome."""
        return {group.line for group in self._groups.values()}

    @property
    def runs(self) -> list[Work]:
        return [run for group in self._groups.values() for run in group.runs]

    def space_in(self, line: int) -> int:
        """How many more runs of this line would fill its groups."""
        return sum(group.size - len(group.runs) for group in self._groups.values() if group.line == line)

    def take(self, works: Iterable[Work]) -> list[Work]:
        """Answers with those that share no call; the others wait here, or are called in chunks."""
        return [work for work in works if not self._takes(work)]

    def _takes(self, work: Work) -> bool:
        chunk = None if work.handler is None else work.handler.chunk
        if chunk is None or _has_crashed(work):
            return False
        kind = (work.row[JOB], work.row[JOB_VERSION], work.line)
        group = self._groups.get(kind)
        if group is None:
            timer = asyncio.get_running_loop().call_later(chunk.wait, self._close, kind)
            group = self._groups[kind] = _Group(work.line, chunk.size, timer)
        group.runs.append(work)
        self.waiting += 1
        if len(group.runs) >= chunk.size:
            self._close(kind)
        elif work.row[EXPIRES_AT] is not None and self._expires_within(work, chunk.wait):
            group.timer.cancel()  # as soon as all that came with it are here
            group.timer = asyncio.get_running_loop().call_later(0, self._close, kind)
        return True

    def _expires_within(self, work: Work, seconds: float) -> bool:
        return bool(work.row[EXPIRES_AT][0] <= self._now()[0] + int(seconds * 1_000_000))

    def _close(self, kind: Kind) -> None:
        group = self._groups.pop(kind)
        group.timer.cancel()
        self.waiting -= len(group.runs)
        self._call(ChunkCall(group.runs, self._now()))

    def call_all(self) -> None:
        """Nobody waits for others any longer."""
        for kind in list(self._groups):
            self._close(kind)

    def withdraw(self, work: Work) -> bool:
        """Take out a run that is no longer wanted; answers whether it was here."""
        for kind, group in self._groups.items():
            if work in group.runs:
                group.runs.remove(work)
                self.waiting -= 1
                if not group.runs:
                    self._groups.pop(kind).timer.cancel()
                return True
        return False

    def take_out(self) -> list[Work]:
        """Everything that waits here."""
        groups, self._groups = self._groups.values(), {}
        self.waiting = 0
        for group in groups:
            group.timer.cancel()
        return [work for group in groups for work in group.runs]


def _has_crashed(work: Work) -> bool:
    """A run that was there when a worker crashed is executed alone: it may be the reason."""
    if work.row[SPECIAL] is None:
        return False
    try:
        return work.special.crashes > 0
    except msgspec.ValidationError:  # it will be settled for that
        return True
