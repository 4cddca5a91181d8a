"""Single submissions that arrive together share one commit."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, NamedTuple

from mainspring.errors import ValueNotStorable
from mainspring.store.backlog import Overflow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mainspring.clock import Clock
    from mainspring.control.definitions import Known
    from mainspring.model.backlog import FullBacklog
    from mainspring.model.run import Accepted, AcceptedBatch, NewRun

    Accept = Callable[[list[NewRun], frozenset[Known], float], Awaitable[AcceptedBatch]]

MOST = 1_000  # per commit


class Pending(NamedTuple):
    """A single run that waits for others, with which it shares a commit."""

    run: NewRun
    known: Known
    future: asyncio.Future[Accepted]
    arrived_at: float


class GroupCommit:
    """Accepts single runs, those together that arrive while others are being accepted."""

    def __init__(self, accept: Accept, clock: Clock) -> None:
        self._accept = accept
        self._clock = clock
        self._pending: list[Pending] = []
        self._committing: asyncio.Task[None] | None = None

    async def submit(self, run: NewRun, known: Known) -> Accepted:
        future: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._pending.append(Pending(run, known, future, self._clock.monotonic()))
        if self._committing is None:
            # In a context of its own: it serves many, and is none of their attempts.
            self._committing = asyncio.create_task(self._commit_all(), context=Context())
        return await asyncio.shield(future)

    async def finish(self) -> None:
        if self._committing is not None:
            await self._committing

    async def _commit_all(self) -> None:
        while self._pending:
            batch, self._pending = self._pending[:MOST], self._pending[MOST:]
            # Numbers of two installations, while one replaces the other, are not compared with one of them.
            for installation in dict.fromkeys(each.known.installation for each in batch):
                await self._accept_all([each for each in batch if each.known.installation == installation])
        self._committing = None

    async def _accept_all(self, batch: list[Pending]) -> None:
        """One commit for all; if that cannot be, one for each part of them that can."""
        waiting = deque([batch])
        while waiting:
            waiting.extendleft(reversed(await self._accept_or_divide(waiting.popleft())))

    async def _accept_or_divide(self, batch: list[Pending]) -> list[list[Pending]]:
        """Answers with what was not accepted, and can be in parts: nothing if all have their answers."""
        known = frozenset({id(each.known): each.known for each in batch}.values())
        try:
            accepted = await self._accept([each.run for each in batch], known, batch[0].arrived_at)
        except Overflow as overflow:
            return _parts(_unless_refused(batch, overflow.full), overflow.full)
        except Exception as error:
            if len(batch) > 1 and isinstance(error, (ValueNotStorable, ValueError, TypeError)):
                return [[single] for single in batch]  # it fails for what one of them carries
            for each in batch:
                each.future.set_exception(error)
        else:
            for each, answer in zip(batch, accepted.each(), strict=True):
                each.future.set_result(answer)
        return []


def _full_gates(pending: Pending, full: Mapping[str, FullBacklog]) -> list[str]:
    return [gate for gate in (pending.run.backlog or "").split("\n") if gate in full]


def _unless_refused(batch: list[Pending], full: Mapping[str, FullBacklog]) -> list[Pending]:
    """Those for which there is room at all; the others are told that there is none."""
    left = []
    for each in batch:
        refusing = next((full[gate] for gate in _full_gates(each, full) if not full[gate].fits), None)
        if refusing is None:
            left.append(each)
        else:
            each.future.set_exception(refusing._replace(wanted=1).error())
    return left


def _parts(batch: list[Pending], full: Mapping[str, FullBacklog]) -> list[list[Pending]]:
    """Those that fit, then the others, which may find room; where others give way for them, part by part."""
    parts: list[list[Pending]] = []
    while batch:
        fitting, batch = _fitting(batch, full)
        parts.append(fitting)
        if batch and not all(each.makes_room for each in full.values()):
            return [*parts, batch]
    return parts


def _fitting(batch: list[Pending], full: Mapping[str, FullBacklog]) -> tuple[list[Pending], list[Pending]]:
    left = {gate: found.fits for gate, found in full.items()}
    fitting: list[Pending] = []
    others: list[Pending] = []
    for each in batch:
        gates = _full_gates(each, full)
        if all(left[gate] for gate in gates):
            fitting.append(each)
            left |= {gate: left[gate] - 1 for gate in gates}
        else:
            others.append(each)
    return fitting, others
