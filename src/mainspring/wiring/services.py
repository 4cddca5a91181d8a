"""What an application uses to talk to its store."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from mainspring.control.backfilling import Backfilling
from mainspring.control.backfills import Backfills
from mainspring.control.backlogs import Backlogs
from mainspring.control.breakers import Breakers
from mainspring.control.calendars import Calendars
from mainspring.control.chains import Chains
from mainspring.control.dead import DeadLetters
from mainspring.control.declared import DeclaredSchedules
from mainspring.control.definitions import Definitions
from mainspring.control.explaining import Explanations
from mainspring.control.flows import Flows
from mainspring.control.forecast import Forecasts
from mainspring.control.jobs import Jobs
from mainspring.control.limits import Limits, LimitsInForce
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
from mainspring.control.tenants import Tenants
from mainspring.control.watching import Watching
from mainspring.scheduler.templates import Templates
from mainspring.store.limits import RuleBooks
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
    rule_books: RuleBooks
    submitter: Submitter
    submissions: Submissions
    runs: Runs
    explanations: Explanations
    dead: DeadLetters
    reruns: Reruns
    flows: Flows
    lists: Lists
    watching: Watching
    results: Results
    jobs: Jobs
    queues: Queues
    limits: Limits
    chains: Chains
    breakers: Breakers
    backlogs: Backlogs
    workers: Workers
    tenants: Tenants
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
        await self.rule_books.close()
        await self.store.close()


class _Parts:
    """What services are put together from, each made once, when the first needs it."""

    def __init__(self, store: Store, clock: Clock, application: Application) -> None:
        self.store, self.clock, self.application = store, clock, application
        self.database, self.lanes = store.database, store.lanes
        self.submitter = Submitter(database=self.database, clock=clock, lanes=self.lanes)
        self.rule_books = RuleBooks(database=self.database, clock=clock)
        self.runs = Runs(database=self.database, lanes=self.lanes, application=application)
        self.lists = Lists(database=self.database, lanes=self.lanes)
        self.reruns = Reruns(database=self.database, clock=clock, runs=self.runs)
        self.queries = ScheduleQueries(database=self.database, lanes=self.lanes)
        self.calendars = Calendars(database=self.database, clock=clock, lanes=self.lanes)

    @cached_property
    def definitions(self) -> Definitions:
        installation = self.store.installation
        return Definitions(
            database=self.database, lanes=self.lanes, installation=installation, application=self.application
        )

    @cached_property
    def submissions(self) -> Submissions:
        return Submissions(
            definitions=self.definitions,
            submitter=self.submitter,
            application=self.application,
            limits=LimitsInForce(database=self.database, books=self.rule_books),
            waker=self.database.waker,
        )

    @cached_property
    def operations(self) -> Operations:
        backfilling = partial(
            Backfilling,
            database=self.database,
            clock=self.clock,
            queries=self.queries,
            reruns=self.reruns,
            templates=Templates(self.clock),
        )
        return Operations(database=self.database, lists=self.lists, reruns=self.reruns, backfilling=backfilling)

    @cached_property
    def acts(self) -> ScheduleActs:
        firer = lane_firer(self.clock)
        return ScheduleActs(clock=self.clock, queries=self.queries, calendars=self.calendars, firer=firer)

    @cached_property
    def transactions(self) -> ScheduleTransactions:
        return ScheduleTransactions(database=self.database, definitions=self.definitions)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(
            database=self.database,
            clock=self.clock,
            queries=self.queries,
            definitions=self.definitions,
            application=self.application,
            submissions=self.submissions,
            calendars=self.calendars,
            acts=self.acts,
            transactions=self.transactions,
        )

    @cached_property
    def schedule_batches(self) -> ScheduleBatches:
        return ScheduleBatches(
            clock=self.clock,
            queries=self.queries,
            schedules=self.schedules,
            calendars=self.calendars,
            replacer=ScheduleReplacer(acts=self.acts),
            transactions=self.transactions,
        )

    @cached_property
    def declared(self) -> DeclaredSchedules:
        return DeclaredSchedules(
            database=self.database,
            lanes=self.lanes,
            application=self.application,
            schedules=self.schedules,
            calendars=self.calendars,
        )


def services(store: Store, clock: Clock, application: Application) -> Services:
    """Everything `control/` offers, on this store, for this application."""
    made = _Parts(store, clock, application)
    database, lanes, runs, queries = made.database, made.lanes, made.runs, made.queries
    return Services(
        store=store,
        rule_books=made.rule_books,
        submitter=made.submitter,
        submissions=made.submissions,
        runs=runs,
        explanations=Explanations(database=database, runs=runs, lanes=lanes),
        dead=DeadLetters(database=database, runs=runs),
        reruns=made.reruns,
        flows=Flows(
            database=database,
            clock=clock,
            lanes=lanes,
            submissions=made.submissions,
            submitter=made.submitter,
            reruns=made.reruns,
        ),
        lists=made.lists,
        watching=Watching(database=database, clock=clock, runs=runs),
        results=Results(database=database, clock=clock, runs=runs, application=application),
        jobs=Jobs(database=database, lanes=lanes),
        queues=Queues(database=database, lanes=lanes),
        limits=Limits(database=database, lanes=lanes),
        chains=Chains(database=database),
        breakers=Breakers(database=database, lanes=lanes),
        backlogs=Backlogs(database=database, lanes=lanes, books=made.rule_books),
        workers=Workers(database=database),
        tenants=Tenants(database=database),
        operations=made.operations,
        schedules=made.schedules,
        schedules_of_named_jobs=SchedulesOfNamedJobs(clock=clock, application=application, schedules=made.schedules),
        schedule_queries=queries,
        schedule_lists=ScheduleLists(database=database, lanes=lanes, queries=queries),
        schedule_batches=made.schedule_batches,
        backfills=Backfills(database=database, queries=queries, operations=made.operations),
        declared=made.declared,
        calendars=made.calendars,
        forecasts=Forecasts(database=database, lanes=lanes, calendars=made.calendars),
        restoration=Restoration(database=database, clock=clock, lanes=lanes),
    )
