"""What a handler may know about the attempt it is making."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from mainspring.errors import InvalidInput, RunCancelled
from mainspring.model.payload import MAX_RESULT_BYTES, encode

if TYPE_CHECKING:
    from uuid import UUID


class Finisher(Protocol):
    """Finishes one run on a connection of its handler's, with its result as JSON."""

    async def finish(self, connection: object, result: str | None) -> None: ...

    def finish_sync(self, connection: object, result: str | None) -> None: ...


class Context:
    """Injected into handlers whose first parameter is annotated with it.

    `fence` grows with every claim of the run: systems that remember the highest one they saw can refuse an older
    worker that woke up late.
    """

    __slots__ = ("_cancelled", "_finisher", "attempt", "fence", "job", "run_id")

    def __init__(self, *, run_id: UUID, job: str, attempt: int, fence: int, finisher: Finisher | None = None) -> None:
        self.run_id = run_id
        self.job = job
        self.attempt = attempt
        self.fence = fence
        self._finisher = finisher
        self._cancelled = threading.Event()

    async def finish(self, connection: object, result: Any = None) -> None:
        """Finish this run inside your own transaction on this connection, to the database the run comes from.

        For jobs with `delivery="transactional"`: the run succeeds, with this result, if and only if you commit. Raises
        LeaseLost if another worker has the run by now, RunCancelled if someone asked it to stop: then nothing of your
        transaction happens. Commit soon: after ten seconds of silence the server ends the transaction.
        """
        await self._checked_finisher().finish(connection, _encoded_result(result))

    def finish_sync(self, connection: object, result: Any = None) -> None:
        """`finish` for handlers that are not async."""
        self._checked_finisher().finish_sync(connection, _encoded_result(result))

    def _checked_finisher(self) -> Finisher:
        if self._finisher is None:
            raise InvalidInput(
                f"The runs of {self.job} are finished by returning: it is not a transactional job.",
                code="not-transactional",
                hint='Define it with @app.job(delivery="transactional"), or leave out finish.',
                field="delivery",
            )
        return self._finisher

    @property
    def is_cancelled(self) -> bool:
        """Whether someone asked this run to stop. A plain `def` handler should look now and then."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise RunCancelled(f"Run {self.run_id} was asked to stop.")

    def request_cancel(self) -> None:
        self._cancelled.set()


def _encoded_result(result: Any) -> str | None:
    return None if result is None else encode(result, what="result", limit=MAX_RESULT_BYTES).decode()
