"""A primary with a synchronous standby: the standby goes, is slow, or takes over; the primary dies or falls silent."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.checker import Answer, CallLog
from tests.switches import hurry, with_and_without
from tests.waiting import PATIENCE, until

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import OutcomeUnknown

from . import sabotage
from .machinery import ROOT, SHORT_LEASE_TIME, System, eventually, lasting
from .proxy import Proxy
from .replicas import url_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Coroutine
    from uuid import UUID

    from mainspring.app.job import Job

    from .replicas import Replicas, Server

MANY = 20


@pytest.fixture
async def url(replicas: Replicas) -> str:
    """Whatever these tests use is on the primary."""
    # asyncpg leaves behind futures of broken operations that nobody awaits; they are not what is tested here.
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    return replicas.primary.url


@pytest.fixture
async def front(url: str) -> AsyncIterator[Proxy]:
    """What clients go through to reach the primary."""
    async with Proxy(url) as proxy:
        yield proxy


class Client:
    """An application that reaches the primary through the proxy, and the standby when that has taken over."""

    def __init__(self, replicas: Replicas, front: Proxy | None = None, *, follows: bool = True) -> None:
        primary = replicas.primary.port if front is None else front.port
        ports = (primary, replicas.standby.port) if follows else (primary,)
        self.app = Mainspring(url_of(*ports), submitted_by="tester")

        @self.app.job(retry=RetryPolicy(max_attempts=1))
        async def sell(n: int = 0) -> int:
            return n

        self.sell: Job[Any, int] = sell

    async def submit(self, kind: str, number: int = 0) -> list[UUID]:
        match kind:
            case "single":
                handles = await asyncio.gather(*(self.sell.submit(n=n) for n in range(MANY)))
            case "batch":
                handles = await self.sell.submit_many([{"n": n} for n in range(MANY)])
            case "keyed":
                handles = [await self.sell.options(key=f"order {number}").submit(n=1)]
            case _:
                handles = [await self.sell.options(delay=3600).submit(n=1)]
        return [handle.id for handle in handles]

    async def __aenter__(self) -> Client:
        await self.submit("single")
        await self.submit("keyed", -1)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.app.close()


async def accepted(call: Awaitable[list[UUID]]) -> list[UUID]:
    """What is promised: nothing, if it is not known what became of it."""
    try:
        return await call
    except OutcomeUnknown:
        return []


async def missing(server: Server, ids: list[UUID]) -> int:
    """How many of these runs are nowhere."""
    query = """
        select count(*) from unnest($1::uuid[]) as wanted (id)
        where id not in (select id from ready union all select id from later union all select run_id from attempt)"""
    return int(await server.ask(query, ids))


# ── lost after a failover ───────────────────────────────────────────────────────────────────────────────────────────


@with_and_without("confirmation")
@pytest.mark.parametrize("kind", ["single", "batch", "keyed", "delayed"])
async def test_nothing_accepted_is_lost_when_a_standby_that_was_away_takes_over(
    replicas: Replicas, front: Proxy, monkeypatch: pytest.MonkeyPatch, kind: str, without: str
) -> None:
    """The client is cut off while its COMMIT waits for the standby. What it then finds, the standby never had."""
    hurry(monkeypatch)
    async with Client(replicas, front) as client:
        with replicas.standby_away():
            submitting = asyncio.ensure_future(accepted(client.submit(kind)))
            assert await eventually(lambda: replicas.primary.waiting("submit"))
            front.cut("submit")
            ids = await submitting
            await replicas.fail_over()
        assert bool(await missing(replicas.standby, ids)) is bool(without)


@with_and_without("confirmation")
async def test_a_key_used_again_by_somebody_else_promises_nothing_that_a_failover_takes_away(
    replicas: Replicas, front: Proxy, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    hurry(monkeypatch)
    # The first one does not follow the failover: it would submit its run once more there, and heal what is lost.
    async with Client(replicas, front, follows=False) as first, Client(replicas) as second:
        with replicas.standby_away():
            unanswered = asyncio.ensure_future(accepted(first.submit("keyed")))
            assert await eventually(lambda: replicas.primary.waiting("submit keyed"))
            front.close_down()
            await replicas.primary.end_waiting("submit keyed")
            ids = await accepted(second.submit("keyed"))
            await replicas.fail_over()
        assert bool(await missing(replicas.standby, ids)) is bool(without)
        await asyncio.gather(unanswered, return_exceptions=True)


@pytest.mark.parametrize("kind", ["single", "batch", "keyed", "delayed"])
async def test_a_submission_that_was_cut_off_is_answered_when_the_standby_is_back(
    replicas: Replicas, front: Proxy, kind: str
) -> None:
    async with Client(replicas, front) as client:
        with replicas.standby_away():
            submitting = asyncio.ensure_future(client.submit(kind))
            assert await eventually(lambda: replicas.primary.waiting("submit"))
            front.cut("submit")
            assert await eventually(lambda: _is_back(front))
        ids = await submitting
        await replicas.fail_over()
        assert ids
        assert await missing(replicas.standby, ids) == 0


async def _is_back(front: Proxy) -> bool:
    return len(front.named("submit")) > 0


@pytest.mark.long
@with_and_without("confirmation")
@pytest.mark.invariant(1)
async def test_nothing_accepted_is_lost_in_one_failover_under_load(
    replicas: Replicas, front: Proxy, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    """Many clients of every kind, cut off again and again while the standby is away."""
    hurry(monkeypatch)
    log, stop, failures = CallLog(), asyncio.Event(), list[Exception]()
    kinds = ("single", "batch", "keyed", "delayed")
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(replicas, front)) for _ in range(4)]

        async def submit_on(client: Client, kind: str) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    ids = await accepted(client.submit(kind, id(client) + number))
                    log.record(Answer.OK if ids else Answer.UNKNOWN, *ids)
                except Exception as error:
                    failures.append(error)

        working = [asyncio.ensure_future(submit_on(*pair)) for pair in zip(clients, kinds, strict=True)]
        before = len(log.accepted)
        assert await eventually(lambda: _has_more(log, before + 200))
        replicas.line.close_down()
        for _ in range(5):
            assert await eventually(lambda: replicas.primary.waiting("submit"))
            front.cut("submit")
            assert await eventually(lambda: _is_back(front))
        stop.set()
        await asyncio.gather(*working)
        await replicas.fail_over()
        lost = await missing(replicas.standby, list(log.accepted))
        print(f"{lost} of {len(log.accepted)} accepted runs are gone; {len(failures)} calls failed: {set(failures)}")
        assert bool(lost) is bool(without)
        assert without or not failures


async def _has_more(log: CallLog, count: int) -> bool:
    return len(log.accepted) >= count


# ── wake-ups ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@with_and_without("late_wake_ups")
@pytest.mark.parametrize("milliseconds", [15, 30])
async def test_no_submission_fails_because_the_standby_is_far_away(
    replicas: Replicas, milliseconds: int, without: str
) -> None:
    """Nothing is broken: each COMMIT takes a while, and several clients commit at once."""
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(replicas)) for _ in range(4)]
        dead = await _dead_runs(clients[0], 30)
        replicas.line.delay = milliseconds / 1000
        calls: list[Awaitable[Any]] = []
        for number in range(30):
            calls += [client.submit("keyed", id(client) + number) for client in clients]
            calls += [client.submit("delayed") for client in clients]
            calls += [client.submit("batch") for client in clients]
            waiting = (await clients[number % 4].sell.options(delay=3600).submit()).id if number < 3 else None
            if waiting is not None:
                calls.append(clients[0].app.runs.change(waiting, priority=1))
            calls.append(clients[number % 4].app.runs.requeue(dead[number]))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        print(f"{len(failures)} of {len(answers)} failed: {set(map(repr, failures))}")
        assert bool(failures) is bool(without)


async def _dead_runs(client: Client, count: int) -> list[UUID]:
    """Runs that failed, put where they are by hand."""
    handles = await client.sell.submit_many([{}] * count)
    ids = [handle.id for handle in handles]
    connection = await asyncpg.connect(
        (await client.app.services()).store.database.url, server_settings={"search_path": "mainspring"}
    )
    columns = await connection.fetchval(
        "select string_agg(quote_ident(a.column_name), ', ') from information_schema.columns a"
        " join information_schema.columns b using (table_schema, column_name)"
        " where a.table_schema = 'mainspring' and a.table_name = 'ready' and b.table_name = 'dead'"
    )
    await connection.execute(f"insert into dead ({columns}) select {columns} from ready where id = any ($1)", ids)  # noqa: S608
    await connection.execute("delete from ready where id = any ($1)", ids)
    await connection.close()
    return ids


@with_and_without("late_wake_ups")
@pytest.mark.parametrize("call", ["single", "batch", "keyed", "delayed", "change", "requeue", "callers"])
async def test_nobody_waits_behind_somebody_else_s_wake_up(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, call: str, without: str
) -> None:
    """A NOTIFY holds a lock of the whole cluster until its COMMIT is confirmed, and this one never is."""
    hurry(monkeypatch)
    async with Client(replicas) as client:
        waiting, dead = (await client.submit("delayed"))[0], (await _dead_runs(client, 1))[0]
        async with notification_stuck(replicas):
            answer = asyncio.ensure_future(_call(client, replicas, call, waiting, dead))
            assert await eventually(lambda: _is_done_or_waits_for_notify(replicas, answer))
            is_accepted = answer.done() and answer.exception() is None
            assert is_accepted is not bool(without)
        with contextlib.suppress(*([Exception] if without else [])):
            await answer


def _call(client: Client, replicas: Replicas, call: str, waiting: UUID, dead: UUID) -> Awaitable[Any]:
    match call:
        case "change":
            return client.app.runs.change(waiting, priority=1)
        case "requeue":
            return client.app.runs.requeue(dead)
        case "callers":
            return _submit_on_own_connection(client, replicas)
        case kind:
            return client.submit(kind)


async def _submit_on_own_connection(client: Client, replicas: Replicas) -> None:
    connection = await asyncpg.connect(replicas.primary.url, server_settings={"application_name": "mainspring caller"})
    async with connection.transaction():
        await client.sell.options(connection=connection).submit()
    await connection.close()


@contextlib.asynccontextmanager
async def notification_stuck(replicas: Replicas) -> AsyncIterator[None]:
    """Somebody's NOTIFY waits to be applied by the standby, which has paused that; what it has to keep, it keeps."""
    await replicas.standby.ask("select pg_wal_replay_pause()")
    somebody = await asyncpg.connect(
        replicas.primary.url, server_settings={"application_name": "somebody", "synchronous_commit": "remote_apply"}
    )
    stuck = asyncio.ensure_future(
        somebody.execute("begin; select pg_logical_emit_message(true, '', ''); notify x; commit")
    )
    is_stuck = (
        "select exists (select from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'somebody')"
    )
    assert await eventually(lambda: replicas.primary.ask(is_stuck))
    try:
        yield
    finally:
        await replicas.standby.ask("select pg_wal_replay_resume()")
        await stuck
        await somebody.close()


async def _is_done_or_waits_for_notify(replicas: Replicas, answer: asyncio.Future[Any]) -> bool:
    """The lock is that of a database without a number."""
    query = """
        select exists (select from pg_locks join pg_stat_activity using (pid)
                       where not granted and locktype = 'object' and application_name ~ '^mainspring (submit|cl|ca)')"""
    return answer.done() or bool(await replicas.primary.ask(query))


# ── several hosts ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_goes_on_at_the_new_leader_when_the_old_one_only_hangs_up(
    replicas: Replicas, front: Proxy
) -> None:
    """As something in front of a dead server does: it accepts a connection, and ends it."""
    async with Client(replicas, front) as client:
        await replicas.fail_over()
        front.close_down()
        ids = await _until_accepted(client)
        assert await missing(replicas.standby, ids) == 0


async def test_a_running_client_goes_on_at_the_new_leader_when_the_old_one_falls_silent(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen, it still accepts connections, and stands first in the URL."""
    hurry(monkeypatch)
    async with Client(replicas) as client:
        handle = await client.sell.submit()
        with replicas.primary.frozen():
            await replicas.standby.promote()
            ids = await _until_accepted(client)
            assert await missing(replicas.standby, ids) == 0
            assert (await _answered(client.app.runs.find(handle.id))).id == handle.id
            assert await _answered(client.app.runs.cancel(handle.id)) == "cancelled"


async def _until_accepted(client: Client) -> list[UUID]:
    """What was under way when the leader fell silent may be unknown; the next one is accepted."""
    ids: list[UUID] = await until(lambda: accepted(client.submit("batch")))
    return ids


async def _answered(call: Coroutine[Any, Any, Any]) -> Any:
    """What a call says. One that hangs is left alone: to cancel it would be to ask the silent server for it."""
    asking = asyncio.ensure_future(call)
    await asyncio.wait([asking], timeout=PATIENCE)
    assert asking.done(), "it hangs"
    return asking.result()


async def test_a_new_process_finds_the_new_leader_behind_a_silent_one(replicas: Replicas) -> None:
    async with Client(replicas) as client:
        (run_id, *_) = await client.submit("single")
        with replicas.primary.frozen():
            await replicas.standby.promote()
            shown = await asyncio.to_thread(_show, replicas.url, run_id)
            assert shown.returncode == 0, shown.stderr
            assert str(run_id) in shown.stdout


def _show(url: str, run_id: UUID) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mainspring.cli", "run", "show", str(run_id), "--database-url", url]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)


async def test_a_worker_goes_on_at_the_new_leader_when_the_old_one_falls_silent(
    replicas: Replicas, system: System, jobs: Any
) -> None:
    system.start(url=replicas.url, environment={"EFFECTS_URL": replicas.standby.url}, lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    with replicas.primary.frozen():
        await replicas.standby.promote()
        app = Mainspring(replicas.standby.url, submitted_by="tester")
        quick = app.job(jobs.quick.handler.function)
        handles = await quick.submit_many([{"number": n} for n in range(5)])
        try:
            results = await asyncio.gather(*(handle.result(PATIENCE) for handle in handles))
        finally:
            await app.close()
        assert results == list(range(5))


# ── beats ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def controls(name: str) -> list[str]:
    """As things are and, if there is a sabotage of this name, with it."""
    return ["", name] if name in sabotage._SABOTAGES else [""]


BEATS = 12  # about four lease times
FEW = 3  # connections of a supervisor: its own, and one that it gives up


@pytest.mark.long
@pytest.mark.parametrize("without", controls("local_beat"))
async def test_beats_wait_for_no_standby(replicas: Replicas, system: System, jobs: Any, without: str) -> None:
    """While every other COMMIT waits, beats go on, on few connections; and when they go on, nobody was lost."""
    for _ in range(2):
        system.start(sabotage=without, lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    with replicas.standby_away():
        if without:  # the control: given up, a beat that waited counts all the same, but waited it has
            assert await system.eventually(lambda: replicas.primary.waiting("supervisor"))
            return
        went_on, most = await _beats_go_on(replicas.primary, system)
        assert await replicas.primary.waiting("supervisor") == 0
    assert most <= 2 * FEW
    assert went_on
    assert await _work_goes_on(system, jobs)
    assert await system.count("worker", "state = 'lost'") == 0


@pytest.mark.long
async def test_a_lock_on_the_table_of_workers_gets_nobody_lost(replicas: Replicas, system: System, jobs: Any) -> None:
    """It keeps everybody's beats back, and must not let whoever judges them overtake. tests/store/test_rescuing.py has
    the control: here it would be a matter of luck."""
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(2)
    most = 0
    for _ in range(4):
        async with system.connection.transaction():
            await system.connection.execute("lock table worker in share mode")
            most = max(most, await _most_connections(replicas.primary, 2 * SHORT_LEASE_TIME))
        beats = await system.value("select sum(beat) from worker_heartbeat")
        assert await system.eventually(lambda: system.value("select sum(beat) > $1 + 6 from worker_heartbeat", beats))  # noqa: B023
        if await system.count("worker", "state = 'lost'"):
            break
    assert most <= 2 * FEW
    assert await system.count("worker", "state = 'lost'") == 0
    assert await _work_goes_on(system, jobs)


async def _beats_go_on(server: Server, system: System) -> tuple[bool, int]:
    """Whether every worker beats on, waiting for it, and the most connections that supervisors had meanwhile."""
    most = 0
    before = {
        row["id"]: row["beat"]
        for row in await system.connection.fetch("select worker_id as id, beat from worker_heartbeat")
    }

    async def have_beaten() -> bool:
        nonlocal most
        most = max(most, await server.connections("supervisor"))
        rows = await system.connection.fetch("select worker_id as id, beat from worker_heartbeat")
        return all(row["beat"] >= before[row["id"]] + BEATS for row in rows)

    return bool(await system.eventually(have_beaten)), most


async def _most_connections(server: Server, seconds: float) -> int:
    """The most that supervisors had during this time: so long the fault lasts."""
    most = 0

    async def look() -> None:
        nonlocal most
        most = max(most, await server.connections("supervisor"))

    await lasting(seconds, look)
    return most


async def _work_goes_on(system: System, jobs: Any) -> bool:
    handles = await jobs.quick.submit_many([{"number": n} for n in range(20)])
    return await system.ended(len(handles))
