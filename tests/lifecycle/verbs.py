"""One run on a stage, in any state, and every verb that may act on it: through the store's own functions.

Every run that is set up was claimed once before, by a worker that has nothing to do with it any more. So there is
always a lease to be late with: a worker's verb on a run that is not running is a stale one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import UUID, uuid4

from tests.registering import registered_worker

from mainspring.control.dead import DeadLetters
from mainspring.control.runs import Runs
from mainspring.model.actor import DEFAULT_TENANT, Actor
from mainspring.model.ids import lane_of
from mainspring.model.job import JobDefinition
from mainspring.model.lifecycle import ENDS, State
from mainspring.model.line import Delivery
from mainspring.model.policy import RetryPolicy
from mainspring.model.run import PRIORITIES, NewRun
from mainspring.model.steering import Snooze
from mainspring.store import completions, fan_outs, jobs, leases, runs, schedules, submissions, workers
from mainspring.store.connection import transaction
from mainspring.store.instants import Micros, micros_of
from mainspring.store.leases import Lease, Settlement
from mainspring.store.migrate import installation_of
from mainspring.worker.registry import Registry, handler_of
from mainspring.worker.successes import WholeLease
from mainspring.worker.work import Work

from .moves import AWAITING, POSTPONED, STAGED, state_at
from .snapshots import Snapshots
from .stepping import Gate, OnlyConnection, SteppedConnection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from asyncpg import Record

    from mainspring.model.unique import Wish
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.jobs import JobRef
    from mainspring.worker.registry import Handler

LANES = 8
TESTER = Actor(DEFAULT_TENANT, "tester")
A_MOMENT = 0.000001  # seconds: over before the next transaction begins
TOMORROW = datetime.now(UTC) + timedelta(days=1)
AN_HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)

# What a run keeps for life, unless someone changes it.
CARRIED = (
    "id",
    "tenant_id",
    "job_id",
    "job_version",
    "line_id",
    "priority",
    "codec",
    "payload",
    "headers",
    "tags",
    "idempotency_key",
    "submitted_by",
    "submitted_at",
)
MOVING_TABLES = ("later", "held", "ready", "lease", "dead", "attempt", "idempotency", "audit", "occurrence", "cursor")


async def handle() -> None:
    """What the jobs on stage do."""


def _handler(max_attempts: int) -> Handler:
    retry = RetryPolicy(max_attempts=max_attempts, first_delay=timedelta(0))
    return handler_of(JobDefinition(name="on_stage", retry=retry), handle)


PATIENT, HOPELESS = _handler(1_000), _handler(1)


class Claim(NamedTuple):
    """What a worker remembers of a run it claimed."""

    worker_id: UUID
    lease: Lease
    position: int
    line_id: int
    row: Record

    def work(self, handler: Handler, *, is_started: bool, delivery: Delivery = Delivery.AT_LEAST_ONCE) -> Work:
        now = micros_now()
        work = Work(self.row, self.lease, self.position, self.line_id, self.worker_id, now, handler, delivery)
        work.started_at = now if is_started else None
        return work


@dataclass(slots=True)
class Subject:
    """The run that is acted upon, and what is known about it outside the database."""

    run_id: UUID
    job_id: int
    line_id: int
    worker_id: UUID  # the worker that claims it next, is claiming it or has it
    schedule_id: UUID  # whose occurrence of tomorrow it is: so withdrawing always has something to go wrong about
    claims: list[Claim] = field(default_factory=list)

    @property
    def lane(self) -> int:
        return lane_of(self.run_id)

    def again(self) -> Subject:
        """The same, as it is known now, for another case."""
        return replace(self, claims=list(self.claims))


class Seen(NamedTuple):
    """Where a run is, and what claims, failures and changes have made of it."""

    state: State
    fence: int
    attempt: int
    crashes: int
    revision: int
    is_cancelling: bool
    carried: dict[str, Any]

    @classmethod
    def of(cls, state: str, run: str, is_cancelling: bool) -> Seen:
        """From a row of a place or, if the run has ended, of history, which keeps fewer counts."""
        values = {"crashes": 0, "revision": 0} | json.loads(run)
        values.setdefault("id", values.get("run_id"))
        return cls(
            state=State(state),
            fence=values["fence"],
            attempt=values["attempt"],
            crashes=values["crashes"],
            revision=values["revision"],
            is_cancelling=is_cancelling,
            carried={name: values[name] for name in CARRIED},
        )


class Party:
    """A worker, a keeper or a person: someone with connections of their own."""

    def __init__(self, plain: SteppedConnection, raw: SteppedConnection, pids: frozenset[int]) -> None:
        self._plain = plain
        self._raw = raw
        self.pids = pids
        only = cast("Database", OnlyConnection(plain))
        self.runs = Runs(database=only, lanes=LANES, application=Registry())
        self.dead = DeadLetters(database=only, runs=self.runs)

    @classmethod
    async def arrives(cls, database: Database) -> Party:
        plain = await database.connect("plain")
        raw = await database.connect("raw", raw_time=True)
        pids = frozenset({plain.get_server_pid(), raw.get_server_pid()})
        return cls(SteppedConnection(plain), SteppedConnection(raw), pids)

    @property
    def unstepped(self) -> Connection:
        """For what is not part of the verb."""
        return self._plain.connection

    async def leaves(self) -> None:
        await self._plain.close()
        await self._raw.close()

    def use(self, gate: Gate) -> None:
        self._plain.gate = self._raw.gate = gate

    @property
    def plain(self) -> Connection:
        return cast("Connection", self._plain)

    @property
    def raw(self) -> Connection:
        return cast("Connection", self._raw)


# ── the verbs ───────────────────────────────────────────────────────────────────────────────────────────────────


async def promote(actor: Party, subject: Subject, seen: State | None) -> None:
    await runs.promote(actor.plain, subject.lane, [runs.LONG_AGO] * len(PRIORITIES), 10)


async def release(actor: Party, subject: Subject, seen: State | None) -> None:
    await runs.release(actor.plain, subject.lane, {(subject.job_id, subject.line_id): 0.0}, 10)


async def claim(actor: Party, subject: Subject, seen: State | None) -> None:
    subject.worker_id = uuid4()
    claims = await claim_batch(actor, subject.lane, subject.line_id, subject.worker_id)
    subject.claims += [each for each in claims if each.row["id"] == subject.run_id]


async def claim_batch(
    actor: Party, lane: int, line_id: int, worker_id: UUID, lease_id: UUID | None = None
) -> list[Claim]:
    """Claim what is ready, into one lease."""
    lease_id = lease_id or uuid4()
    await registered_worker(actor.unstepped, worker_id)
    rows = await leases.claim(
        actor.raw,
        lane=lane,
        line=line_id,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=10,
        lease_id=lease_id,
        worker_id=worker_id,
    )
    lease = Lease(lane, lease_id, len(rows))
    return [Claim(worker_id, lease, position, line_id, row) for position, row in enumerate(rows)]


async def complete(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    """As a flusher does: a lease with no other run in it as a whole, and one by one what is no whole lease."""
    last = subject.claims[-1]
    success = last.work(PATIENT, is_started=True).success(b"1", micros_now())
    if last.lease.size == 1:
        whole = WholeLease([success]).completion()
        if (await completions.complete(actor.raw, last.worker_id, [whole])).leases:
            return Settlement(accepted=1)
    return await leases.settle(actor.raw, last.worker_id, [success.settled()])


async def retry(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    return await _settle(actor, subject, PATIENT, lambda work: work.failed(ValueError("once more"), micros_now()))


async def snooze(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    nap = Snooze("later", until=AN_HOUR_AGO)
    nap.delay = 0.0  # so that it can be promoted at once
    return await _settle(actor, subject, PATIENT, lambda work: work.steered(nap, micros_now()))


async def bury(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    return await _settle(actor, subject, HOPELESS, lambda work: work.failed(ValueError("never"), micros_now()))


async def hold(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    return await _settle(actor, subject, PATIENT, lambda work: work.held(micros_now()), is_started=False)


async def await_children(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    """The handler has returned, and has submitted children before that."""
    await actor.unstepped.execute(_WAITS_FOR_ITSELF, subject.lane, subject.run_id)
    return await _settle(actor, subject, PATIENT, lambda work: work.awaiting_children(b"1", micros_now()))


async def join(actor: Party, subject: Subject, seen: State | None) -> None:
    async with transaction(actor.plain):
        await fan_outs.end(actor.plain, subject.lane, {subject.run_id}, {})


async def fail(actor: Party, subject: Subject, seen: State | None) -> None:
    bad = {subject.run_id: [(uuid4(), State.LOST)]}
    async with transaction(actor.plain):
        await fan_outs.end(actor.plain, subject.lane, {subject.run_id}, bad)


async def give_back(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    return await _settle(actor, subject, PATIENT, lambda work: work.given_back(micros_now()), is_started=False)


async def lose(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    """A worker stops a run that it may not give back."""
    once = Delivery.AT_MOST_ONCE
    return await _settle(actor, subject, PATIENT, lambda work: work.interrupted(micros_now()), delivery=once)


async def obey(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    """A worker stops a run because it was asked to."""
    return await _settle(actor, subject, PATIENT, lambda work: work.cancelled(micros_now()))


async def rescue(actor: Party, subject: Subject, seen: State | None) -> None:
    await workers.rescue(actor.plain, subject.lane, subject.worker_id, 10)


async def cancel(actor: Party, subject: Subject, seen: State | None) -> State:
    return await actor.runs.cancel(TESTER, subject.run_id, reason="not needed")


async def expire(actor: Party, subject: Subject, seen: State | None) -> None:
    """A keeper ends what waits; a worker ends what it has and finds too old before it starts."""
    if seen is State.RUNNING:
        await _settle(actor, subject, PATIENT, lambda work: work.expired(micros_now()), is_started=False)
    else:
        await runs.expire(actor.plain, subject.lane, 10)


async def change(actor: Party, subject: Subject, seen: State | None) -> None:
    """Move what is ready to tomorrow, and what waits for its time to an hour ago."""
    at = TOMORROW if seen is State.READY else AN_HOUR_AGO
    await actor.runs.change(TESTER, subject.run_id, at=at)


async def withdraw(actor: Party, subject: Subject, seen: State | None) -> None:
    """Someone changes the schedule, and takes back what was fired ahead."""
    async with transaction(actor.plain):
        await schedules.withdraw(actor.plain, subject.lane, subject.schedule_id, AN_HOUR_AGO)


async def requeue(actor: Party, subject: Subject, seen: State | None) -> None:
    moved = await actor.dead.requeue(TESTER, subject.run_id, reason="mended")
    await actor.dead.raise_unless_moved(TESTER, moved, "requeued")


async def purge(actor: Party, subject: Subject, seen: State | None) -> None:
    moved = await actor.dead.purge(TESTER, subject.run_id, reason="hopeless")
    await actor.dead.raise_unless_moved(TESTER, moved, "purged")


async def _settle(
    actor: Party,
    subject: Subject,
    handler: Handler,
    end: Callable[[Work], Any],
    *,
    is_started: bool = True,
    delivery: Delivery = Delivery.AT_LEAST_ONCE,
) -> Settlement:
    last = subject.claims[-1]
    work = last.work(handler, is_started=is_started, delivery=delivery)
    return await leases.settle(actor.raw, last.worker_id, [end(work)])


VERBS: dict[str, Callable[[Party, Subject, State | None], Awaitable[Any]]] = {
    each.__name__: each
    for each in (
        promote,
        release,
        claim,
        complete,
        retry,
        snooze,
        bury,
        hold,
        await_children,
        join,
        fail,
        give_back,
        rescue,
        lose,
        cancel,
        expire,
        change,
        withdraw,
        requeue,
        purge,
    )
}


async def stage_ahead(actor: Party, subject: Subject, seen: State | None) -> None:
    """Let a run in line look as if its schedule had fired it ahead: not a verb, since time alone undoes it."""
    await actor.unstepped.execute(
        "update ready set due_at = $2, ready_at = $2, rank = (date_part('epoch', $2::timestamptz) * 1000000)::bigint"
        " where id = $1",
        subject.run_id,
        TOMORROW,
    )


# How a run that was claimed for the first time gets into each state.
WAYS: dict[str, tuple[str, ...]] = {
    State.SCHEDULED: ("retry",),
    State.HELD: ("hold",),
    State.READY: ("give_back",),
    State.RUNNING: ("give_back", "claim"),
    State.DEAD: ("bury",),
    State.SUCCEEDED: ("complete",),
    State.CANCELLED: ("give_back", "cancel"),
    State.EXPIRED: ("give_back", "expire"),
    State.LOST: ("lose",),
    STAGED: ("give_back", "stage_ahead"),
    POSTPONED: ("give_back", "change"),
    AWAITING: ("await_children",),
}


# ── the stage ───────────────────────────────────────────────────────────────────────────────────────────────────


class Stage:
    """A database with room for one run at a time, two actors and an observer."""

    def __init__(self, observer: Connection, actors: list[Party], job: JobRef, line: int) -> None:
        self.observer = observer
        self.first, self.second = actors
        self._job = job
        self._line_id = line
        self.snapshots = Snapshots(observer)
        self._subjects: dict[str, Subject] = {}  # by the name of a snapshot

    @classmethod
    async def opens(cls, database: Database) -> Stage:
        observer = await database.connect("observer")
        job = await jobs.register(observer, "on_stage", {}, actor="tester", tenant_id=DEFAULT_TENANT)
        lines = await jobs.open_queues(observer, ["default"], tenant_id=DEFAULT_TENANT)
        actors = [await Party.arrives(database) for _ in range(2)]
        return cls(observer, actors, job, lines["default"])

    async def closes(self) -> None:
        await self.first.leaves()
        await self.second.leaves()
        await self.observer.close()

    async def clear(self) -> None:
        self.first.use(Gate())
        await self.snapshots.clear()

    async def set_up(self, spot: str, *, in_company: bool = False, wish: Wish | None = None) -> Subject:
        """A run in the given state or spot that was claimed before; it is due and expired unless the spot says not.

        In company, its lease holds another run, so that it lives on when this one leaves.
        """
        name = f"{spot}, in company: {in_company}, {wish}"
        if name not in self.snapshots:
            self._subjects[name] = await self._get_there(spot, in_company=in_company, wish=wish)
            await self.snapshots.keep(name)
        else:
            self.first.use(Gate())
            await self.snapshots.restore(name)
        return self._subjects[name].again()

    async def _get_there(self, spot: str, *, in_company: bool, wish: Wish | None) -> Subject:
        await self.clear()
        subject = await self.submit(wish=wish)
        await claim(self.second, subject, State.READY)
        seen = State.RUNNING
        for verb in WAYS[spot]:
            if in_company and verb == "claim":
                await self.submit(key="company")
            await (VERBS | {"stage_ahead": stage_ahead})[verb](self.second, subject, seen)
            seen = (await self.look(subject)).state
        assert seen is state_at(spot)
        return subject

    async def submit(self, key: str = "key", *, wish: Wish | None = None) -> Subject:
        """A new run, ready and too old at once."""
        job, line_id = self._job, self._line_id
        run_id = submissions.new_run_ids(1, 3, datetime.now(UTC))[0]
        run = self.new_run(key, wish)
        known = submissions.known_document(await installation_of(self.observer), {}, {})
        await submissions.submit_items(self.observer, [run_id], [run], known)
        subject = Subject(run_id, job.id, line_id, uuid4(), uuid4())
        await self.observer.execute(_FIRED, subject.lane, subject.schedule_id, TOMORROW, run_id)
        return subject

    def new_run(self, key: str, wish: Wish | None = None) -> NewRun:
        """As somebody submits it, under an idempotency key or a unique one."""
        job, line_id = self._job, self._line_id
        return NewRun(
            tenant_id=DEFAULT_TENANT,
            job_id=job.id,
            job_version=job.version,
            line_id=line_id,
            priority=4,
            payload=b'{"a":1}',
            headers='{"trace":"t"}',
            tags=["one", "two"],
            submitted_by="someone",
            max_age=A_MOMENT,
            key=key if wish is None else None,
            digest=b"d" if wish is None else None,
            wish=wish,
        )

    async def look(self, subject: Subject) -> Seen:
        """Where the run is."""
        found = await self.find(subject)
        assert found is not None, "the run is nowhere"
        return found

    async def find(self, subject: Subject) -> Seen | None:
        """Where the run is, if it is somewhere; by a statement of its own, not by the store's."""
        rows = await self.observer.fetch(_WHERE, subject.run_id, sorted(ENDS))
        assert len(rows) <= 1, f"the run is in {len(rows)} places: {rows}"
        return Seen.of(*rows[0]) if rows else None

    async def next_occurrence(self, subject: Subject) -> tuple[bool, datetime]:
        """Whether the ledger has the run, and where the schedule goes on."""
        return tuple(await self.observer.fetchrow(_LEDGER, subject.run_id, subject.schedule_id))

    async def contents(self) -> dict[str, list[str]]:
        """Everything in the moving tables, as text."""
        found: dict[str, list[str]] = {}
        for table in MOVING_TABLES:
            rows = await self.observer.fetch(f"select moving::text from {table} as moving order by 1")  # noqa: S608
            found[table] = [row[0] for row in rows]
        return found

    async def waits_for_a_lock(self, actor: Party) -> bool:
        # For a row, that is: growing a file that others grow too is a lock for a moment, and nobody's business here.
        waiting = (
            "select count(*) from pg_stat_activity where pid = any ($1::int[])"
            " and wait_event_type = 'Lock' and wait_event in ('transactionid', 'tuple')"
        )
        return bool(await self.observer.fetchval(waiting, list(actor.pids)))

    async def stale(self) -> int:
        return int(await self.observer.fetchval("select count(*) from stale"))


_FIRED = """
with fired as (
    insert into occurrence (lane, schedule_id, nominal_at, due_at, run_id, version) values ($1, $2, $3, $3, $4, 1))
insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)
values ($1, $2, $3::timestamptz + interval '1 day', $3::timestamptz + interval '1 day', '2026a')
"""

_WAITS_FOR_ITSELF = """
insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise)
values ($1::smallint, $2, $2, array[$1::smallint], 'end', 'fail') on conflict do nothing
"""

_LEDGER = """
select exists (select from occurrence where run_id = $1),
       (select nominal_at from cursor where schedule_id = $2)
"""

_WHERE = """
select 'scheduled', to_jsonb(later), false from later where id = $1
union all select 'held', to_jsonb(held), false from held where id = $1
union all select case when rank > date_part('epoch', clock_now()) * 1000000 then 'scheduled' else 'ready' end,
    to_jsonb(ready), false from ready where id = $1
union all select 'dead', to_jsonb(dead), false from dead where id = $1
union all select 'running', to_jsonb(run), get_bit(lease.cancel, run.ordinality::int - 1) = 1
from lease cross join lateral unnest(lease.runs) with ordinality as run
where run.id = $1 and get_bit(lease.done, run.ordinality::int - 1) = 0
union all select state::text, to_jsonb(ended), false
from attempt as ended where run_id = $1 and state::text = any ($2::text[])
"""


def micros_now() -> Micros:
    return micros_of(datetime.now(UTC))
