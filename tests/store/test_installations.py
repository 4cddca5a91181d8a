"""Numbers of jobs and lines mean something in one installation only: the right job, or none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import pytest
from tests.registering import registered_worker

from mainspring import Mainspring
from mainspring.control.definitions import Definitions
from mainspring.errors import ForeignDatabase, SchemaMismatch
from mainspring.model.options import NO_OPTIONS
from mainspring.model.run import PRIORITIES
from mainspring.model.template import template_of
from mainspring.store import leases
from mainspring.store.database import Database
from mainspring.store.migrate import installation_of, migrate
from mainspring.testing import run_until_idle

from .callers import ALL, BLOCKING, caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.job import Job
    from mainspring.control.definitions import Known
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer


@pytest.fixture
async def migrated_url(empty_url: str) -> str:
    """A second installation."""
    connection = await Database(empty_url).connect("test")
    await migrate(connection)
    await connection.close()
    return empty_url


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Mainspring]:
    app = Mainspring(url, submitted_by="tester")
    yield app
    await app.close()
    await asyncio.to_thread(app.close_sync)


@pytest.fixture
def send_receipt(shop: Mainspring) -> Job[..., None]:
    @shop.job
    async def send_receipt(order: int) -> None: ...

    return send_receipt


async def counts(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        query = "select (select count(*) from mainspring.ready) + (select count(*) from mainspring.later)"
        return int(await connection.fetchval(query))
    finally:
        await connection.close()


async def other_job_with_number_one(url: str) -> None:
    """In that installation, the number of `send_receipt` stands for something dangerous."""
    other = Mainspring(url, submitted_by="tester")

    @other.job
    async def delete_account(order: int) -> None: ...

    await delete_account.submit(order=0)
    await other.close()


# ── over a connection to another database ───────────────────────────────────────────────────────────────────────


async def submit_over(job: Job[..., None], library: str, url: str, **options: Any) -> None:
    async with caller(library, url) as one:
        theirs = job.options(connection=one.connection, **options)
        if library in BLOCKING:
            await asyncio.to_thread(theirs.submit_sync, order=42)
        else:
            await theirs.submit(order=42)
        await one.commit()


@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"delay": 60}])
@pytest.mark.parametrize("library", ALL)
async def test_a_submission_over_a_connection_to_another_installation_is_refused(
    send_receipt: Job[..., None], migrated_url: str, library: str, options: dict[str, Any]
) -> None:
    await other_job_with_number_one(migrated_url)
    await send_receipt.submit(order=1)

    with pytest.raises(ForeignDatabase) as refused:
        await submit_over(send_receipt, library, migrated_url, **options)

    assert refused.value.code == "foreign-database"
    assert refused.value.hint is not None
    assert await counts(migrated_url) == 1  # what was there before


async def test_without_the_comparison_the_other_installations_job_would_be_executed(
    send_receipt: Job[..., None], migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    await other_job_with_number_one(migrated_url)
    connection = await Database(migrated_url).connect("test")
    theirs = await installation_of(connection)
    monkeypatch.setattr("mainspring.control.submissions.document_of", lambda known: f'{{"installation": "{theirs}"}}')
    await submit_over(send_receipt, "asyncpg", migrated_url)

    jobs = await connection.fetch("select job.name from ready join job on job.id = ready.job_id")
    assert [row["name"] for row in jobs] == ["delete_account"] * 2
    await connection.close()


async def test_the_callers_transaction_goes_on_after_a_refusal(send_receipt: Job[..., None], migrated_url: str) -> None:
    async with caller("asyncpg", migrated_url) as one:
        await one.connection.execute("create table public.paid (id int)")
        with pytest.raises(ForeignDatabase):
            await send_receipt.options(connection=one.connection).submit(order=1)
        await one.connection.execute("insert into public.paid values (1)")
        await one.commit()

        assert await one.connection.fetchval("select count(*) from public.paid") == 1


@pytest.mark.parametrize("library", ALL)
async def test_a_connection_to_a_database_without_our_schema_is_told_so(
    send_receipt: Job[..., None], empty_url: str, library: str
) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        await submit_over(send_receipt, library, empty_url)

    assert refused.value.code == "schema-missing"


async def test_a_copy_made_of_a_template_is_another_installation(server: EmbeddedServer, url: str) -> None:
    """As every database of these tests is."""
    template = await Database(server.dsn_for("mainspring_template")).connect("test")
    copy = await Database(url).connect("test")

    same = "select value from setting where name = 'installation'"
    assert await template.fetchval(same) == await copy.fetchval(same)
    assert await installation_of(template) != await installation_of(copy)
    await template.close()
    await copy.close()


# ── replaced under a program that lives ─────────────────────────────────────────────────────────────────────────


async def test_a_schema_that_was_dropped_and_made_again_gets_the_right_job(
    url: str, send_receipt: Job[..., None], shop: Mainspring, connection: Connection
) -> None:
    await send_receipt.submit(order=1)
    await connection.execute("drop schema mainspring cascade")
    await migrate(connection)
    await other_job_with_number_one(url)

    handles = [await send_receipt.submit(order=2), *await send_receipt.submit_many([{"order": 3}] * 2)]
    handles.append(await send_receipt.options(key="k").submit(order=4))

    assert [(await handle.find()).job for handle in handles] == ["send_receipt"] * 4


async def run_of(shop: Mainspring, job: Job[..., None], payload: bytes) -> tuple[NewRun, Known]:
    """A run with the numbers that its job has now, and what makes them true."""
    definitions = (await shop.services()).submissions.definitions
    numbers, known = await definitions.registered(shop.actor, job.definition, job.definition.line)
    template = template_of(job.definition, NO_OPTIONS, numbers, actor=shop.actor, trace={})
    return template.filled(payload), known


async def test_a_run_that_got_its_numbers_before_the_schema_was_made_again_is_refused(
    shop: Mainspring, send_receipt: Job[..., None], connection: Connection
) -> None:
    """It waits to be sent while others look anew: their numbers are not its own."""

    @shop.job
    async def delete_account(order: int) -> None: ...

    await send_receipt.submit(order=1)
    services = await shop.services()
    late, old = await run_of(shop, send_receipt, b'{"order":101}')
    await connection.execute("drop schema mainspring cascade")
    await migrate(connection)
    await delete_account.submit(order=2)  # now it has the number that the other one had
    fresh, new = await run_of(shop, delete_account, b'{"order":3}')
    assert new.job_id == old.job_id

    answers = await asyncio.gather(
        services.submitter.submit_one(late, old),
        services.submitter.submit_one(fresh, new),
        services.submitter.submit([late] * 2, old),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [ForeignDatabase, type(answers[1]), ForeignDatabase]
    assert not isinstance(answers[1], Exception)
    payloads = await connection.fetch("select convert_from(payload, 'UTF8') as text from ready")
    assert sorted(row["text"] for row in payloads) == ['{"order":2}', '{"order":3}']


async def test_after_a_restore_numbers_that_were_given_out_later_are_not_used(
    url: str, send_receipt: Job[..., None], connection: Connection
) -> None:
    """The backup has the installation's id, and not the job; its number is given to another one."""
    await send_receipt.submit(order=1)
    await connection.execute("delete from job_version; delete from job; delete from ready")
    await connection.execute("alter table job alter column id restart with 1")
    await other_job_with_number_one(url)

    async with caller("asyncpg", url) as one:
        theirs = await send_receipt.options(connection=one.connection).submit(order=2)
        await one.commit()
    ours = await send_receipt.submit(order=3)

    assert [(await handle.find()).job for handle in (theirs, ours)] == ["send_receipt"] * 2


async def test_many_who_submit_when_the_schema_was_made_again_look_anew_once(
    send_receipt: Job[..., None], shop: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send_receipt.submit(order=1)
    await connection.execute("drop schema mainspring cascade")
    await migrate(connection)
    looks = 0
    refresh = Definitions._refresh

    async def counted(self: Definitions) -> None:
        nonlocal looks
        looks += 1
        await refresh(self)

    monkeypatch.setattr(Definitions, "_refresh", counted)
    await asyncio.gather(*(send_receipt.submit(order=number) for number in range(200)))

    assert looks == 1
    assert await connection.fetchval("select count(*) from ready") == 200


async def test_while_the_schema_is_away_the_program_says_so_and_goes_on_afterwards(
    send_receipt: Job[..., None], connection: Connection
) -> None:
    await send_receipt.submit(order=1)
    await connection.execute("drop schema mainspring cascade")
    with pytest.raises(SchemaMismatch):
        await send_receipt.submit(order=2)
    await migrate(connection)

    assert (await (await send_receipt.submit(order=3)).find()).job == "send_receipt"


async def test_a_worker_of_another_installation_claims_nothing(
    send_receipt: Job[..., None], connection: Connection
) -> None:
    """Its numbers of jobs and lines were given out by a schema that is gone."""
    await send_receipt.submit(order=1)
    line = await connection.fetchval("select id from line")

    async def claimed(worker_id: Any) -> int:
        claims = [
            await leases.claim(
                connection,
                lane=lane,
                line=line,
                priorities=PRIORITIES,
                fronts=[0] * 10,
                count=10,
                lease_id=uuid4(),
                worker_id=worker_id,
            )
            for lane in range(8)
        ]
        return sum(map(len, claims))

    worker_id = await registered_worker(connection)
    await connection.execute("update worker set state = 'lost', ended_at = clock_now()")

    assert await claimed(uuid4()) == 0
    assert await claimed(worker_id) == 0
    assert await claimed(await registered_worker(connection)) == 1


# ── many at once ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_burst_of_first_submissions_registers_once(
    shop: Mainspring, send_receipt: Job[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    registrations = 0
    register = Definitions._register

    async def counted(self: Definitions, *wanted: Any) -> Any:
        nonlocal registrations
        registrations += 1
        return await register(self, *wanted)

    monkeypatch.setattr(Definitions, "_register", counted)
    handles = await asyncio.gather(*(send_receipt.submit(order=number) for number in range(500)))

    assert registrations == 1
    assert len({handle.id for handle in handles}) == 500
    assert await run_until_idle(shop) == {"succeeded": 500}


async def test_processes_that_register_different_definitions_at_once_all_succeed(url: str) -> None:
    """Each version is somebody's; no unique violation reaches anyone."""
    apps = [Mainspring(url, submitted_by="tester") for _ in range(12)]
    jobs = [app.job(name="report", priority=at % 10)(_report) for at, app in enumerate(apps)]

    handles = await asyncio.gather(*(job.submit() for job in jobs))

    assert len({handle.id for handle in handles}) == 12
    for app in apps:
        await app.close()


async def _report() -> None: ...
