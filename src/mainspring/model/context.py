"""What a handler may know about the attempt it is making."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mainspring.errors import RunCancelled

if TYPE_CHECKING:
    from uuid import UUID


class Context:
    """Injected into handlers whose first parameter is annotated with it.

    `fence` grows with every claim of the run: systems that remember the highest one they saw can refuse an older
    worker that woke up late.
    """

    __slots__ = ("_cancelled", "attempt", "fence", "job", "run_id")

    def __init__(self, *, run_id: UUID, job: str, attempt: int, fence: int) -> None:
        self.run_id = run_id
        self.job = job
        self.attempt = attempt
        self.fence = fence
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether someone asked this run to stop. A plain `def` handler should look now and then."""
        return self._cancelled.is_set()

    def raise_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise RunCancelled(f"Run {self.run_id} was asked to stop.")

    def request_cancel(self) -> None:
        self._cancelled.set()
