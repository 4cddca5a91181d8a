"""A handler that looks whether it is to stop, and stops: what that means depends on who told it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import RunCancelled
from mainspring.model.job import JobDefinition
from mainspring.model.line import Line
from mainspring.store.columns import AttemptRecord
from mainspring.store.leases import Fate, Lease, Settled
from mainspring.worker.executor import Executor
from mainspring.worker.lines import Lines
from mainspring.worker.registration import WorkerIdentity
from mainspring.worker.registry import handler_of
from mainspring.worker.settings import WorkerSettings

from .hands import claimed_row, served_jobs, settling, tenant_lines

if TYPE_CHECKING:
    from mainspring.worker.work import Work

GRACE = PATIENCE = 60.0  # nobody is abandoned meanwhile


class Performer:
    """Calls a handler that calls `raise_if_cancelled` when it is told to stop, or when it likes."""

    def __init__(self) -> None:
        self.is_told = asyncio.Event()

    async def perform(self, work: Work, handler: object, begins: object) -> None:
        await self.is_told.wait()
        raise RunCancelled("It was asked to stop.")

    def tell(self, work: Work) -> None:
        self.is_told.set()


@pytest.mark.parametrize(
    ("by", "fate", "outcome"),
    [
        ("drain", Fate.GIVE_BACK, "interrupted"),
        ("cancel", Fate.END, "cancelled"),
        ("itself", Fate.RETRY, "failed"),  # the control: nobody asked it to, so it is an error like any other
    ],
)
async def test_what_raise_if_cancelled_means_depends_on_who_told_the_handler(by: str, fate: Fate, outcome: str) -> None:
    performer, settled = Performer(), asyncio.Queue[Settled]()
    lines = Lines(queues=["default"], labels=[])
    lines.learn(tenant_lines({Line("default"): 1}))
    executor = Executor(
        worker=WorkerIdentity(id=uuid4(), lanes=1, clock=SystemClock()),
        settings=WorkerSettings(slots=1, cancel_grace=GRACE),
        jobs=served_jobs({1: handler_of(JobDefinition(name="polite"), lambda: None)}),
        lines=lines,
        performer=performer,  # type: ignore[arg-type]
        settle=settling(settled.put_nowait),
        has_room=asyncio.Event(),
    )
    (work,) = executor.take(Lease(0, uuid4(), 1), 1, [claimed_row(job_id=1, priority=0)])
    {
        "drain": lambda: executor.interrupt([work], grace=GRACE),
        "cancel": lambda: executor.cancel(work),
        "itself": performer.is_told.set,
    }[by]()

    async with asyncio.timeout(PATIENCE):
        end = await settled.get()
    assert (end.fate, AttemptRecord(*end.record).outcome) == (fate, outcome)
