"""What an application uses to talk to its store."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from mainspring.control.backfilling import Backfilling
from mainspring.control.backfills import Backfills
from mainspring.control.calendars import Calendars
from mainspring.control.dead import DeadLetters
from mainspring.control.declared import DeclaredSchedules
from mainspring.control.definitions import Definitions
from mainspring.control.forecast import Forecasts
from mainspring.control.jobs import Jobs
from mainspring.control.lists import Lists
from mainspring.control.operations import Operations
from mainspring.control.queues import Queues, Workers
from mainspring.control.reruns import Reruns
from mainspring.control.restored import Restoration
from mainspring.control.results import Results
from mainspring.control.runs import Runs
from mainspring.control.schedule_acts import ScheduleActs
from mainspring.control.schedule_batches import ScheduleBatches
from mainspring.control.schedule_lists import ScheduleLists
from mainspring.control.schedule_queries import ScheduleQueries
from mainspring.control.schedule_replacing import ScheduleReplacer
from mainspring.control.schedule_transactions import ScheduleTransactions
from mainspring.control.schedules import Schedules
from mainspring.control.schedules_of_named_jobs import SchedulesOfNamedJobs
from mainspring.control.submissions import Submissions
from mainspring.control.submitter import Submitter
from mainspring.control.watching import Watching
from mainspring.scheduler.templates import Templates
from mainspring.wiring.scheduler import lane_firer

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.control.application import Application
    from mainspring.wiring.store import Store

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What an application uses to talk to its store, within one event loop. Every service serves all tenants."""

    store: Store
    submitter: Submitter
    submissions: Submissions
    runs: Runs
    dead: DeadLetters
    reruns: Reruns
    lists: Lists
    watching: Watching
    results: Results
    jobs: Jobs
    queues: Queues
    workers: Workers
    operations: Operations
    schedules: Schedules
    schedules_of_named_jobs: SchedulesOfNamedJobs
    schedule_queries: ScheduleQueries
    schedule_lists: ScheduleLists
    schedule_batches: ScheduleBatches
    backfills: Backfills
    declared: DeclaredSchedules
    forecasts: Forecasts
    calendars: Calendars
    restoration: Restoration

    def of(self, kind: type[S]) -> S:
        """The service of this kind."""
        return next(each for field in fields(self) if isinstance(each := getattr(self, field.name), kind))

    async def close(self) -> None:
        await self.results.close()
        await self.submitter.close()
        await self.store.close()


def services(store: Store, clock: Clock, application: Application) -> Services:
    """Everything `control/` offers, on this store, for this application."""
    database, lanes = store.database, store.lanes
    definitions = Definitions(database=database, lanes=lanes, installation=store.installation, application=application)
    submitter = Submitter(database=database, clock=clock, lanes=lanes)
    runs = Runs(database=database, lanes=lanes, application=application)
    lists = Lists(database=database, lanes=lanes)
    reruns = Reruns(database=database, clock=clock, runs=runs)
    submissions = Submissions(
        definitions=definitions, submitter=submitter, application=application, waker=database.waker
    )
    schedule_queries = ScheduleQueries(database=database, lanes=lanes)
    calendars = Calendars(database=database, clock=clock, lanes=lanes)
    acts = ScheduleActs(clock=clock, queries=schedule_queries, calendars=calendars, firer=lane_firer(clock))
    transactions = ScheduleTransactions(database=database, definitions=definitions)
    schedules = Schedules(
        database=database,
        clock=clock,
        queries=schedule_queries,
        definitions=definitions,
        application=application,
        submissions=submissions,
        calendars=calendars,
        acts=acts,
        transactions=transactions,
    )
    backfilling = partial(
        Backfilling,
        database=database,
        clock=clock,
        queries=schedule_queries,
        reruns=reruns,
        templates=Templates(clock),
    )
    operations = Operations(database=database, lists=lists, reruns=reruns, backfilling=backfilling)
    return Services(
        store=store,
        submitter=submitter,
        submissions=submissions,
        runs=runs,
        dead=DeadLetters(database=database, runs=runs),
        reruns=reruns,
        lists=lists,
        watching=Watching(database=database, clock=clock, runs=runs),
        results=Results(database=database, clock=clock, runs=runs, application=application),
        jobs=Jobs(database=database, lanes=lanes),
        queues=Queues(database=database, lanes=lanes),
        workers=Workers(database=database),
        operations=operations,
        schedules=schedules,
        schedules_of_named_jobs=SchedulesOfNamedJobs(application=application, schedules=schedules),
        schedule_queries=schedule_queries,
        schedule_lists=ScheduleLists(database=database, lanes=lanes, queries=schedule_queries),
        schedule_batches=ScheduleBatches(
            clock=clock,
            queries=schedule_queries,
            schedules=schedules,
            calendars=calendars,
            replacer=ScheduleReplacer(acts=acts),
            transactions=transactions,
        ),
        backfills=Backfills(database=database, queries=schedule_queries, operations=operations),
        declared=DeclaredSchedules(
            database=database, lanes=lanes, application=application, schedules=schedules, calendars=calendars
        ),
        calendars=calendars,
        forecasts=Forecasts(database=database, lanes=lanes, calendars=calendars),
        restoration=Restoration(database=database, clock=clock, lanes=lanes),
    )
