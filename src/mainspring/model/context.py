"""What a handler may know about the attempt it is making, and what it may tell."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from mainspring.errors import InvalidInput, RunCancelled
from mainspring.model.actor import DEFAULT_TENANT_NAME
from mainspring.model.chain import triggered_by
from mainspring.model.event_loop import refuse_in_event_loop
from mainspring.model.occurrence import occurrence_of
from mainspring.model.payload import encode
from mainspring.model.report import (
    MAX_CHECKPOINT_BYTES,
    MAX_MESSAGE_LENGTH,
    checked_fraction,
    checked_level,
    one_line,
    some_lines,
)
from mainspring.model.results import PLAIN, ReturnType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.occurrence import RunOccurrence
    from mainspring.model.report import Listener

LOGGER = "context"  # how lines of `context.log` are told apart from those of `logging`


class Finisher(Protocol):
    """Finishes one run on a connection of its handler's, with its result as JSON."""

    async def finish(self, connection: object, result: str | None) -> None: ...

    def finish_sync(self, connection: object, result: str | None) -> None: ...


class Context:
    """Injected into handlers whose first parameter is annotated with it.

    `fence` grows with every claim of the run: systems that remember the highest one they saw can refuse an older
    worker that woke up late. `checkpointed` is what an earlier attempt stored with `checkpoint`, or None. `tenant` is
    the name of the tenant whose run it is; what the handler submits is that tenant's, too.
    """

    __slots__ = (
        "_cancelled",
        "_finisher",
        "_listener",
        "_returns",
        "attempt",
        "checkpointed",
        "fence",
        "headers",
        "job",
        "run_id",
        "tenant",
    )

    def __init__(
        self,
        *,
        run_id: UUID,
        job: str,
        attempt: int,
        fence: int,
        listener: Listener,
        headers: Mapping[str, str] | None = None,
        checkpointed: Any = None,
        finisher: Finisher | None = None,
        returns: ReturnType = PLAIN,
        tenant: str = DEFAULT_TENANT_NAME,
    ) -> None:
        self.run_id = run_id
        self.tenant = tenant
        self.job = job
        self.attempt = attempt
        self.fence = fence
        self.headers: Mapping[str, str] = headers or {}
        self.checkpointed = checkpointed
        self._listener = listener
        self._finisher = finisher
        self._returns = returns
        self._cancelled = threading.Event()

    # ── telling ─────────────────────────────────────────────────────────────────────────────────────────────

    def progress(self, fraction: float, message: str = "") -> None:
        """Say how far this run is, from 0 to 1. Cheap: the newest word is written about twice a second."""
        self._listener.progress(checked_fraction(fraction), one_line(message, MAX_MESSAGE_LENGTH))

    def log(self, text: object, *, level: str | int = "INFO") -> None:
        """Keep a line with this attempt, whatever the logging configuration says."""
        self._listener.log(checked_level(level), LOGGER, some_lines(text))

    async def checkpoint(self, value: Any) -> None:
        """Store what the next attempt should know, as JSON of at most 64 KiB, instead of what was stored before.

        When this returns, it is durable. Raises LeaseLost if another worker has the run by now: then stop.
        """
        await self._listener.checkpoint(_encoded(value))

    def checkpoint_sync(self, value: Any) -> None:
        """`checkpoint` for handlers that are not async."""
        refuse_in_event_loop("checkpoint_sync", "await context.checkpoint(…)")
        self._listener.checkpoint_sync(_encoded(value))

    # ── finishing ───────────────────────────────────────────────────────────────────────────────────────────

    async def finish(self, connection: object, result: Any = None) -> None:
        """Finish this run inside your own transaction on this connection, to the database the run comes from.

        For jobs with `delivery="transactional"`: the run succeeds, with this result, if and only if you commit. Raises
        LeaseLost if another worker has the run by now, RunCancelled if someone asked it to stop: then nothing of your
        transaction happens. Commit soon: after ten seconds of silence the server ends the transaction.
        """
        await self._checked_finisher().finish(connection, self._encoded_result(result))

    def finish_sync(self, connection: object, result: Any = None) -> None:
        """`finish` for handlers that are not async."""
        refuse_in_event_loop("finish_sync", "await context.finish(…)")
        self._checked_finisher().finish_sync(connection, self._encoded_result(result))

    def _encoded_result(self, result: Any) -> str | None:
        data = self._returns.encode(result)
        return None if data is None else data.decode()

    def _checked_finisher(self) -> Finisher:
        if self._finisher is None:
            raise InvalidInput(
                f"The runs of {self.job} are finished by returning: it is not a transactional job.",
                code="not-transactional",
                hint='Define it with @app.job(delivery="transactional"), or leave out finish.',
                field="delivery",
            )
        return self._finisher

    # ── being told ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def occurrence(self) -> RunOccurrence | None:
        """Which occurrence of a schedule this run is; None if it is none."""
        return occurrence_of(self.headers)

    @property
    def triggered_by(self) -> UUID | None:
        """After which run of another job this one was submitted, by `@app.job(after=…)`; None if that is not why."""
        return triggered_by(self.headers)

    async def previous_success_at(self) -> datetime | None:
        """The nominal instant of the latest earlier occurrence of this schedule whose run succeeded.

        What has come since then is what a report has to cover that must leave nothing out, whatever failed in between.
        None if none of the last 1,000 succeeded, or this run is no occurrence. It is looked up when you ask.
        """
        return None if self.occurrence is None else await self._listener.previous_success_at()

    def previous_success_at_sync(self) -> datetime | None:
        """`previous_success_at` for handlers that are not async."""
        refuse_in_event_loop("previous_success_at_sync", "await context.previous_success_at()")
        return None if self.occurrence is None else self._listener.previous_success_at_sync()

    @property
    def is_cancelled(self) -> bool:
        """Whether someone asked this run to stop. A plain `def` handler should look now and then."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise RunCancelled if someone asked this run to stop."""
        if self._cancelled.is_set():
            raise RunCancelled(f"Run {self.run_id} was asked to stop.")

    def request_cancel(self) -> None:
        self._cancelled.set()


def _encoded(value: Any) -> bytes:
    return encode(value, what="checkpoint", limit=MAX_CHECKPOINT_BYTES)
