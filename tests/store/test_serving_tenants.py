"""Many tenants: each has jobs, runs and limits of its own, applications act for them, and workers serve all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from mainspring import Breaker, Context, Limit, Mainspring, RetryPolicy, wiring
from mainspring.errors import (
    ForeignDatabase,
    InvalidInput,
    RunNotFound,
    ScheduleNotFound,
    TenantExists,
    TenantNotFound,
)
from mainspring.model.actor import Actor
from mainspring.store import jobs, queues, runs, tenants
from mainspring.store.migrate import LANES
from mainspring.testing import inline, run_until_idle
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.sync import NotificationListener

from ..databases import fresh_database
from ..waiting import until
from .working import working

if TYPE_CHECKING:
    from mainspring import Handle, Job
    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer


@pytest.fixture
async def acme(app: Mainspring) -> Mainspring:
    await app.tenants.create("acme")
    return app.for_tenant("acme")


def telling(app: Mainspring) -> Job[[], str]:
    @app.job
    async def whose(context: Context) -> str:
        return context.tenant

    return whose


# ── acting for a tenant ─────────────────────────────────────────────────────────────────────────────────────────


async def test_one_worker_executes_the_runs_of_all_tenants(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    submitted = [await whose.submit(), await whose.options(tenant="acme").submit(), await acme.jobs.submit("whose")]

    async with working(app):
        assert [await run.result(timeout=60) for run in submitted] == ["default", "acme", "acme"]


async def test_a_tenant_sees_its_own_runs_and_jobs_only(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    ours, theirs = await whose.submit(), await whose.options(tenant="acme").submit()

    assert [run.id for run in (await app.runs.list()).runs] == [ours.id]
    assert [run.id for run in (await acme.runs.list()).runs] == [theirs.id]
    with pytest.raises(RunNotFound):
        await app.runs.find(theirs.id)
    with pytest.raises(RunNotFound):
        await acme.runs.cancel(ours.id)
    await theirs.cancel()


async def test_what_a_handler_submits_is_of_its_runs_tenant(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)

    @app.job
    async def parent() -> list[str]:
        child = await whose.submit()
        explicit = await whose.options(tenant="default").submit()
        return [await child.result(timeout=60), await explicit.result(timeout=60)]

    @app.job
    def parent_in_a_thread() -> str:
        return whose.submit_sync().result_sync(timeout=60)

    asynchronous = await parent.options(tenant="acme").submit()
    blocking = await parent_in_a_thread.options(tenant="acme").submit()
    async with working(app):
        assert await asynchronous.result(timeout=60) == ["acme", "default"]
        assert await blocking.result(timeout=60) == "acme"
    assert app.actor.tenant_name == "default"


async def test_children_flows_and_chains_stay_with_their_tenant(app: Mainspring, acme: Mainspring) -> None:
    whose, ended = telling(app), asyncio.Event()

    @app.job
    async def split() -> None:
        await whose.options(child=True).submit()

    @app.job(after="split")
    async def follow(context: Context) -> None:
        assert context.tenant == "acme"
        ended.set()

    await split.options(tenant="acme").submit()
    flow = acme.flow("pair")
    flow.add(whose).after(flow.add(whose))
    await flow.submit()
    await run_until_idle(app)

    assert ended.is_set(), "registered with the job it follows"
    assert Counter(run.job for run in (await acme.runs.list()).runs) == {"whose": 3, "split": 1, "follow": 1}
    assert (await app.runs.list()).runs == []


async def test_children_are_of_their_runs_tenant_whomever_the_application_is_for(
    url: str, acme: Mainspring, connection: Connection
) -> None:
    async with Mainspring(url, tenant="acme") as own:
        whose = telling(own)

        @own.job
        async def split() -> None:
            await whose.options(child=True).submit()
            await own.jobs.submit("whose", child=True)

        run = await split.options(tenant="default").submit()
        async with working(own, keeper=True):
            await run.result(timeout=60)
        assert (await acme.runs.list()).runs == []
    assert await connection.fetchval("select count(*) from attempt where state = 'succeeded'") == 3


async def test_a_child_for_another_tenant_is_refused_however_it_is_asked_for(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)

    with pytest.raises(InvalidInput) as refused:
        whose.options(tenant="acme").options(child=True)

    assert refused.value.code == "tenant-of-child"


async def test_the_nodes_of_a_handlers_flow_are_of_its_runs_tenant(app: Mainspring, acme: Mainspring) -> None:
    whose, kept = telling(app), app.flow("kept")
    kept.add(whose.options(tenant="default"))

    @app.job
    async def plan() -> list[str]:
        flow = app.flow("own")
        flow.add(whose.options(tenant="acme"))
        await flow.submit()
        with pytest.raises(InvalidInput) as of_another:
            flow.add(whose.options(tenant="default"))
        with pytest.raises(InvalidInput) as added_elsewhere:
            await kept.submit()
        return [of_another.value.code, added_elsewhere.value.code]

    run = await plan.options(tenant="acme").submit()
    async with working(app):
        assert await run.result(timeout=60) == ["tenant-in-flow"] * 2
    assert (await app.runs.list()).runs == []


async def test_a_handle_stays_with_the_tenant_of_its_run(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    ours, known = await whose.submit(), app.runs.handle((await whose.submit()).id)

    @app.job
    async def ask() -> list[str]:
        return [(await each.find()).job for each in (ours, known)]

    run = await ask.options(tenant="acme").submit()
    async with working(app):
        assert await run.result(timeout=60) == ["whose", "whose"]


async def test_a_handler_that_outlives_its_database_submits_for_nobody_else(
    app: Mainspring, acme: Mainspring, connection: Connection
) -> None:
    whose, begun, may_go_on = telling(app), asyncio.Event(), asyncio.Event()

    @app.job
    async def straddle() -> int:
        begun.set()
        await may_go_on.wait()
        refused = 0
        for _ in range(3):
            try:
                await whose.submit()
            except ForeignDatabase:
                refused += 1
        return refused

    run = await straddle.options(tenant="acme").submit()
    await whose.submit()
    async with working(app):
        await begun.wait()
        await connection.execute("update setting set value = gen_random_uuid()::text where name = 'installation'")
        await whose.submit()  # whoever submits learns of it
        may_go_on.set()
        refused = await run.result(timeout=60)
    ours = [each for each in (await app.runs.list()).runs if each.job == "whose"]

    assert (refused, len(ours)) == (3, 2)


async def test_what_the_code_declares_is_in_force_for_tenants_for_whom_only_schedules_submit(
    app: Mainspring, acme: Mainspring, url: str
) -> None:
    nightly = nightly_of(app)
    for tenant in ("default", "acme"):
        await nightly.options(tenant=tenant).scheduled("nightly", "every hour").create()
    async with Mainspring(url) as newer:
        nightly_of(newer, limit=Limit(1))
        async with working(newer):
            run = acme.runs.handle(await acme.schedules.trigger("nightly"))
            await run.result(timeout=60)
            await until(lambda: has_limits(acme))
    async with Mainspring(url) as older:
        nightly_of(older)
        async with working(older):
            run = acme.runs.handle(await acme.schedules.trigger("nightly"))
            await run.result(timeout=60)

    assert await has_limits(acme), "an older version of the code changes nothing"


def nightly_of(app: Mainspring, limit: Limit | None = None) -> Job[[], None]:
    @app.job(limit=limit)
    async def nightly() -> None: ...

    return nightly


async def has_limits(app: Mainspring) -> bool:
    return bool(await app.limits.list())


async def test_an_application_may_be_for_a_tenant(
    app: Mainspring, acme: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Mainspring(url, tenant="acme") as named:
        whose = telling(named)
        run = await whose.submit()
        async with working(named):
            assert await run.result(timeout=60) == "acme"
    monkeypatch.setenv("MAINSPRING_TENANT", "acme")
    async with Mainspring(url) as told:
        assert (await told.runs.find(run.id)).job == "whose"
    assert [job.name for job in await acme.jobs.list()] == ["whose"]
    assert await app.jobs.list() == []


async def test_a_tenants_runs_are_submitted_in_a_callers_transaction(
    app: Mainspring, acme: Mainspring, connection: Connection, url: str
) -> None:
    whose = telling(app)
    callers = await asyncpg.connect(url)
    async with callers.transaction():
        run = await whose.options(tenant="acme", connection=callers).submit()
    await callers.close()

    assert (await acme.runs.find(run.id)).id == run.id


async def test_code_that_is_not_async_acts_for_tenants(url: str) -> None:
    def program() -> bool:
        app = Mainspring(url)
        app.tenants.create_sync("acme")
        run = telling(app).options(tenant="acme").submit_sync()
        found = app.for_tenant("acme").runs.find_sync(run.id)
        app.close_sync()
        return found.id == run.id

    assert await asyncio.to_thread(program)


async def test_inline_mode_asks_no_database_who_there_is(app: Mainspring) -> None:
    whose = telling(app)
    with inline(app.for_tenant("nobody")):
        assert await (await whose.submit()).result() == "default"
        assert await (await whose.options(tenant="acme").submit()).result() == "acme"


async def test_what_is_submitted_inline_by_a_handler_is_of_its_runs_tenant(app: Mainspring) -> None:
    whose = telling(app)

    @app.job
    async def parent() -> list[str]:
        explicit = await whose.options(tenant="default").submit()
        return [await (await whose.submit()).result(), await explicit.result()]

    @app.job
    def parent_in_a_thread() -> str:
        return whose.submit_sync().result_sync()

    with inline(app):
        assert await (await parent.options(tenant="acme").submit()).result() == ["acme", "default"]
        assert await (await parent_in_a_thread.options(tenant="acme").submit()).result() == "acme"
        assert await (await whose.submit()).result() == "default"


async def test_schedules_of_a_tenant_fire_for_it(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    await whose.options(tenant="acme").scheduled("hourly", "every hour").create()
    run_id = await acme.schedules.trigger("hourly")

    with pytest.raises(ScheduleNotFound):
        await app.schedules.find("hourly")
    async with working(app):
        assert await acme.runs.result(run_id, 60) == "acme"


async def test_an_application_for_a_tenant_keeps_to_it_in_handlers_of_others(
    app: Mainspring, acme: Mainspring, url: str
) -> None:
    ops = Mainspring(url, tenant="acme")

    @app.job
    async def ask() -> list[str]:
        async with ops:
            return [ops.actor.tenant_name, app.actor.tenant_name]

    async with working(app):
        assert await (await ask.submit()).result(timeout=60) == ["acme", "default"]


async def test_a_handler_acts_for_nobody_in_another_database(
    app: Mainspring, acme: Mainspring, server: EmbeddedServer
) -> None:
    """Its tenant's number may be somebody else's there."""
    async with fresh_database(server) as elsewhere, Mainspring(elsewhere) as other:

        @app.job
        async def ask() -> list[str]:
            await other.runs.list()
            return [other.actor.tenant_name, app.actor.tenant_name]

        async with working(app):
            assert await (await ask.options(tenant="acme").submit()).result(timeout=60) == ["default", "acme"]


async def test_a_handle_from_a_handler_stays_with_its_tenant(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    kept: list[Handle[str]] = []

    @app.job
    async def parent() -> None:
        kept.append(await whose.submit())
        kept.append(await app.jobs.submit("whose"))

    await parent.options(tenant="acme").submit()
    await run_until_idle(app)

    assert [await handle.result(timeout=60) for handle in kept] == ["acme", "acme"]


async def test_a_program_that_is_a_job_knows_its_tenant(app: Mainspring, acme: Mainspring) -> None:
    asking = app.command("asking", ["/bin/sh", "-c", 'test "$MAINSPRING_TENANT" = acme'])

    run = await asking.options(tenant="acme").submit()
    await run_until_idle(app)

    assert await run.result(timeout=60) == {"exit_code": 0}


async def test_what_is_set_for_a_tenant_is_set_for_the_whole_application(app: Mainspring) -> None:
    acting = app.for_tenant("acme")
    elsewhere = wiring.DatabaseLocation(url="postgresql://nowhere.invalid/none")

    acting.use(elsewhere)

    assert app.location == elsewhere
    assert acting.for_tenant("beta").location == elsewhere
    app.use(None)


async def test_closing_what_acts_for_a_tenant_leaves_the_application_open(
    app: Mainspring, acme: Mainspring, url: str
) -> None:
    async with acme:
        await acme.runs.list()
    services = await app.services()
    await acme.close()
    assert await app.services() is services

    async with Mainspring(url).for_tenant("acme") as alone:
        await alone.runs.list()
    assert not alone._sessions.is_open, "nobody else would close it"


async def test_who_acts_for_a_tenant_may_make_it(app: Mainspring, url: str) -> None:
    ahead = Mainspring(url, tenant="ahead")
    await ahead.tenants.create("ahead")

    assert (await ahead.runs.list()).runs == []
    await ahead.close()


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tenant_that_is_not_there_is_refused_and_nothing_is_left(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)

    with pytest.raises(TenantNotFound, match="no tenant named 'acmee'") as refused:
        await whose.options(tenant="acmee").submit()
    assert "acme" in str(refused.value.hint)
    with pytest.raises(TenantNotFound):
        await app.tenants.set_weight("nobody", 2)
    with pytest.raises(TenantNotFound, match="nobody"):
        await app.for_tenant("nobody").runs.list()
    assert await app.jobs.list() == []


async def test_a_worker_for_a_tenant_that_is_not_there_does_not_start(url: str) -> None:
    async with Mainspring(url) as app:
        store = (await app.services()).store
        telling(app)
        with pytest.raises(TenantNotFound):
            await wiring.start_worker(store, app.registry, WorkerSettings(), tenant="nobody")


@pytest.mark.parametrize("weight", [0, -1, 1_001, 1.5, True, "2", None])
async def test_weights_out_of_range_are_refused(app: Mainspring, weight: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 1000") as refused:
        await app.tenants.create("acme", weight=weight)

    assert refused.value.code == "invalid-weight"
    assert [each.name for each in await app.tenants.list()] == ["default"]


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, "-x", "ä", None, 7])
async def test_names_that_cannot_be_are_refused(app: Mainspring, name: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        await app.tenants.create(name)
    assert refused.value.code == "invalid-tenant"
    with pytest.raises(InvalidInput):
        app.for_tenant(name)


async def test_a_name_is_taken_once(app: Mainspring, acme: Mainspring) -> None:
    found = await asyncio.gather(*(app.tenants.create("beta") for _ in range(4)), return_exceptions=True)

    assert sum(isinstance(each, TenantExists) for each in found) == 3
    with pytest.raises(TenantExists, match="already"):
        await app.tenants.create("acme", weight=3)
    assert (await app.tenants.find("acme")).weight == 1


async def test_a_number_that_is_somebody_elses_in_this_database_is_refused(
    acme: Mainspring, connection: Connection
) -> None:
    """As after the database was replaced under a program that had looked its tenant up."""
    with pytest.raises(ForeignDatabase):
        await tenants.check(connection, Actor(99, "me", "acme"))


async def test_runs_of_other_tenants_cannot_be_waited_for(
    app: Mainspring, acme: Mainspring, connection: Connection
) -> None:
    whose = telling(app)

    @app.job
    async def take(value: str) -> None: ...

    ours = await whose.submit()
    for job in (whose.options(tenant="acme", after=ours), whose.options(tenant="acme", after=[ours.id], on="end")):
        with pytest.raises(InvalidInput, match="no such run"):
            await job.submit()
    with pytest.raises(InvalidInput, match="no such run"):
        await take.options(tenant="acme").submit(value=ours.output)
    flow = acme.flow("stealing")
    flow.add(whose.options(after=ours))
    with pytest.raises(InvalidInput, match="no such run"):
        await flow.submit()
    assert await connection.fetchval("select count(*) from held") == 0
    assert (await acme.runs.list()).runs == []


async def test_an_application_for_nobody_leaves_nothing_open(url: str, connection: Connection) -> None:
    counting = "select count(*) from pg_stat_activity where datname = current_database()"
    before = await connection.fetchval(counting)
    with pytest.raises(TenantNotFound):
        async with Mainspring(url, tenant="nobody"):
            pass

    await until(lambda: connection.fetchval(f"{counting} having count(*) = $1", before))


async def test_a_tenant_that_has_no_place_is_refused(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)

    with pytest.raises(InvalidInput) as in_flow:
        app.flow("mixed").add(whose.options(tenant="acme"))
    assert in_flow.value.code == "tenant-in-flow"
    acme.flow("own").add(whose.options(tenant="acme"))
    with pytest.raises(InvalidInput) as of_child:
        whose.options(tenant="acme", child=True)
    assert of_child.value.code == "tenant-of-child"
    with pytest.raises(InvalidInput):
        Mainspring(tenant="")


# ── limits and breakers ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_limit_binds_the_tenant_that_set_it(app: Mainspring, acme: Mainspring, connection: Connection) -> None:
    let_go, running = asyncio.Event(), Counter[str]()

    @app.job
    async def wait(context: Context) -> None:
        running[context.tenant] += 1
        await let_go.wait()

    for name in ("default", "acme"):
        await wait.options(tenant=name).submit_many([{}] * 3)
    await acme.limits.set(1, job="wait")
    async with working(app, grace=60.0) as worker:
        await until(lambda: running["default"] == 3 and running["acme"] == 1)
        await until(lambda: connection.fetchval("select count(*) = 2 from held"))
        let_go.set()
        await until(lambda: connection.fetchval("select count(*) = 6 from attempt"))
        assert worker.failure() is None


async def test_a_breaker_opens_for_the_tenant_whose_runs_fail(
    app: Mainspring, acme: Mainspring, connection: Connection
) -> None:
    @app.job(retry=RetryPolicy(max_attempts=1), breaker=Breaker(2, within=600, probe_after=600))
    async def call(context: Context) -> str:
        if context.tenant == "acme":
            raise ConnectionError("down")
        return "fine"

    async with working(app):
        for _ in range(2):
            await call.options(tenant="acme").submit()
        await until(lambda: connection.fetchval("select count(*) = 1 from breaker_opening"))
        assert await (await call.submit()).result(timeout=60) == "fine"
        late = await call.options(tenant="acme").submit()
        await until(lambda: connection.fetchval("select count(*) = 1 from held"))
    assert (await late.find()).state == "held"
    assert [len(each.openings) for each in await acme.breakers.list()] == [1]
    assert [len(each.openings) for each in await app.breakers.list()] == [0]


async def test_a_declared_limit_is_declared_for_each_tenant(app: Mainspring, acme: Mainspring) -> None:
    @app.job(limit=Limit(2))
    async def send() -> None: ...

    await send.options(tenant="acme").submit()

    assert [limit.most for limit in await acme.limits.list()] == [2]
    assert await app.limits.list() == []


# ── shares ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_tenants_get_runs_executed_by_their_weights(app: Mainspring, acme: Mainspring) -> None:
    order: list[str] = []

    @app.job
    async def note(context: Context) -> None:
        order.append(context.tenant)

    await app.tenants.set_weight("acme", 3)
    for name in ("default", "acme"):
        await note.options(tenant=name).submit_many([{}] * 400)
    async with working(app, slots=1, max_unsettled=8):
        await until(lambda: len(order) >= 200)

    share = Counter(order[:200])["acme"]
    assert 130 <= share <= 170, "three of four, but for a batch"


async def test_a_weight_is_in_force_without_a_restart(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    await whose.options(tenant="acme").submit()
    async with working(app) as worker:
        lines = worker.parts.lines
        await until(lambda: any(lines.tenant(line).name == "acme" for line in lines))
        (tenant_id,) = {lines.tenant_of(line) for line in lines if lines.tenant(line).name == "acme"}
        assert lines.weight_of(tenant_id) == 1
        await app.tenants.set_weight("acme", 7, reason="behind")
        await until(lambda: lines.weight_of(tenant_id) == 7)
    assert (await app.tenants.find("acme")).reason == "behind"


async def test_a_line_that_nobody_spoke_of_is_found(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wake-ups may get lost, and rounds of the other kind are minutes apart: a look finds what waits, whoever's."""
    monkeypatch.setattr(NotificationListener, "_hear", lambda *heard: None)
    whose = telling(app)
    async with working(app):
        await app.tenants.create("late")
        run = await whose.options(tenant="late").submit()

        assert await run.result(timeout=60) == "late"


async def test_what_tenants_have_in_line_is_shown(app: Mainspring, acme: Mainspring) -> None:
    whose = telling(app)
    await whose.options(tenant="acme").submit_many([{}] * 3)
    await whose.submit()

    assert {each.name: (each.weight, each.depth) for each in await app.tenants.list()} == {
        "acme": (1, 3),
        "default": (1, 1),
    }


async def test_processes_are_added_for_the_work_of_all_tenants(
    app: Mainspring, acme: Mainspring, connection: Connection
) -> None:
    whose = telling(app)
    await whose.submit()
    await run_until_idle(app)
    await whose.options(tenant="acme").submit_many([{}] * 7)

    assert await queues.wanted_slots(connection, ["default"], []) == 1
    await app.queues.pause("default")
    assert await queues.wanted_slots(connection, ["default"], []) == 1, "that is another tenant's"
    await acme.queues.pause("default")
    assert await queues.wanted_slots(connection, ["default"], []) == 0


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_look_finds_each_line_and_lane_with_runs_once(app: Mainspring, connection: Connection) -> None:
    whose = telling(app)
    for number in range(5):
        await app.tenants.create(f"tenant-{number}")
        await whose.options(tenant=f"tenant-{number}").submit_many([{}] * 20)
    rows = await connection.fetch("select distinct lane, line_id from ready")
    known = {each.number for each in await jobs.all_lines(connection)}

    found = await runs.lines_in_use(connection)

    assert found is not None
    assert len(found) == len(set(found))
    assert set(found) == {(row["lane"], row["line_id"]) for row in rows}
    assert {line for _, line in found} <= known


async def test_a_look_passes_over_what_is_known(app: Mainspring, connection: Connection) -> None:
    whose = telling(app)
    for number in range(40):
        await whose.options(key=f"key {number}").submit()  # in every lane
    everywhere = await runs.lines_in_use(connection) or []
    assert len(everywhere) == LANES

    for known in ([], everywhere[:1], everywhere[-1:], everywhere[2:5], everywhere[::2], everywhere, [(3, 99)]):
        found = await runs.lines_in_use(connection, known) or []
        assert sorted(found) == sorted(set(everywhere) - set(known))
