"""What an application uses to talk to its store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.control.dead import DeadLetters
from mainspring.control.definitions import Definitions
from mainspring.control.jobs import Jobs
from mainspring.control.lists import Lists
from mainspring.control.operations import Operations
from mainspring.control.queues import Queues, Workers
from mainspring.control.restored import Restoration
from mainspring.control.results import Results
from mainspring.control.retries import Retries
from mainspring.control.runs import Runs
from mainspring.control.submitter import Submitter
from mainspring.control.watching import Watching

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.wiring.store import Store


@dataclass(slots=True)
class Services:
    """What an application uses to talk to its store, within one event loop."""

    store: Store
    definitions: Definitions
    submitter: Submitter
    runs: Runs
    dead: DeadLetters
    lists: Lists
    jobs: Jobs
    retries: Retries
    operations: Operations
    results: Results
    queues: Queues
    workers: Workers
    watching: Watching
    restoration: Restoration

    async def close(self) -> None:
        await self.results.close()
        await self.submitter.close()
        await self.store.close()


def services(store: Store, clock: Clock) -> Services:
    runs = Runs(database=store.database, lanes=store.lanes)
    dead = DeadLetters(database=store.database, runs=runs)
    lists = Lists(database=store.database, lanes=store.lanes)
    retries = Retries(database=store.database, clock=clock, runs=runs, dead=dead)
    definitions = Definitions(database=store.database, lanes=store.lanes, installation=store.installation)
    return Services(
        store=store,
        definitions=definitions,
        submitter=Submitter(database=store.database, clock=clock, lanes=store.lanes),
        runs=runs,
        dead=dead,
        lists=lists,
        jobs=Jobs(database=store.database, lanes=store.lanes),
        retries=retries,
        operations=Operations(database=store.database, lists=lists, runs=runs, retries=retries),
        results=Results(database=store.database, clock=clock),
        queues=Queues(database=store.database, lanes=store.lanes),
        workers=Workers(database=store.database),
        watching=Watching(database=store.database, clock=clock, runs=runs),
        restoration=Restoration(database=store.database, clock=clock, lanes=store.lanes),
    )
