"""Two actors at one run: the second begins when the first has come to one of its statement boundaries."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mainspring.errors import RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound
from mainspring.model.lifecycle import State

from .moves import PASSING_OVER
from .stepping import Died, Gate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .verbs import Party, Stage, Subject

    Verb = Callable[[Party, Subject, State | None], Awaitable[Any]]

MOST_BOUNDARIES = 60


class Meeting:
    """One run, two actors, one boundary."""

    def __init__(self, stage: Stage, subject: Subject, seen: State | None, boundary: int, title: str) -> None:
        self._stage = stage
        self._subject = subject
        self._acts: list[asyncio.Future[Any]] = []
        self._title = f"{title}, at boundary {boundary}"
        self.gate = Gate(stop_at=boundary)
        self.seen = seen  # where the run is when the second begins

    async def begin(self, first: Verb, second: Verb) -> None:
        """Let the first act up to a boundary, and the second as far as it can."""
        try:
            await self._begin(first, second)
        except BaseException:
            self.gate.die()
            await self.end()
            raise

    async def _begin(self, first: Verb, second: Verb) -> None:
        self._stage.first.use(self.gate)
        self._act(first(self._stage.first, self._subject, self.seen))
        stopped = asyncio.ensure_future(self.gate.reached.wait())
        await asyncio.wait({stopped, self._acts[0]}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        found = await self._stage.find(self._subject)
        self.seen = None if found is None else found.state
        self._act(second(self._stage.second, self._subject, self.seen))
        has_to_wait = await self._second_has_to_wait()
        if self.must_pass_over(second.__name__):
            assert not has_to_wait, f"{self._title}: it waits for a lock instead of passing over"

    def must_pass_over(self, verb: str) -> bool:
        """Keepers and claimers take what they find, and leave what somebody else has at that moment.

        What a worker has and finds too old, it ends itself.
        """
        return verb in PASSING_OVER and not (verb == "expire" and self.seen is State.RUNNING)

    def _act(self, act: Awaitable[Any]) -> None:
        self._acts.append(asyncio.ensure_future(outcome_of(act)))

    async def _second_has_to_wait(self) -> bool:
        """Wait until the second is done, or cannot go on before the first does."""
        while not self._acts[1].done():
            if await self._stage.waits_for_a_lock(self._stage.second):
                return True
            await asyncio.wait({self._acts[1]}, timeout=0.001)
        return False

    async def end(self) -> list[Any]:
        """What came of both."""
        return await asyncio.gather(*self._acts)


async def outcome_of(act: Awaitable[Any]) -> Any:
    """What an act came to; being told that one came too late is a normal end."""
    try:
        return await act
    except (RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound, Died) as error:
        return error
