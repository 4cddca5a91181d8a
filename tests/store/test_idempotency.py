"""An idempotency key stands for one run: until a day after that run ended, and for nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from mainspring import Mainspring
from mainspring.errors import IdempotencyConflict, InvalidInput
from mainspring.model.ids import lane_of_key
from mainspring.model.options import SubmitOptions
from mainspring.model.template import Numbers, template_of
from mainspring.store import runs, submissions
from mainspring.store.migrate import installation_of
from mainspring.testing import run_until_idle

from .callers import caller, until_someone_waits_for_a_lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.job import Job
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.submissions import Verdict
    from mainspring.testing import FrozenClock

    Greet = Job[..., str]

LANES = 8
A_DAY = timedelta(hours=24)
A_MOMENT = timedelta(seconds=1)


def greeting(app: Mainspring) -> Greet:
    @app.job
    async def greet(name: str) -> str:
        return f"Hello {name}"

    return greet


@pytest.fixture
def greet(app: Mainspring) -> Greet:
    return greeting(app)


@pytest.fixture
async def other_greet(url: str) -> AsyncIterator[Greet]:
    """The same job in another process."""
    async with Mainspring(url, submitted_by="another process") as app:
        yield greeting(app)


# ── the same again ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_same_submission_again_is_the_same_run(greet: Greet, connection: Connection) -> None:
    first = await greet.options(key="k").submit(name="Ada")
    again = await greet.options(key="k").submit(name="Ada")

    assert again == first
    assert await connection.fetchval("select count(*) from ready") == 1


async def test_the_same_submission_by_the_job_s_name_is_the_same_run(app: Mainspring) -> None:
    @app.job
    async def send(to: str, urgent: bool = False) -> None: ...

    first = await send.options(key="k").submit(to="ada")

    assert await app.jobs.submit("send", {"to": "ada"}, key="k") == first


async def test_twenty_at_once_and_two_processes_make_one_run(
    greet: Greet, other_greet: Greet, connection: Connection
) -> None:
    handles = await asyncio.gather(
        *(job.options(key="k").submit(name="Ada") for _ in range(10) for job in (greet, other_greet))
    )

    assert len({handle.id for handle in handles}) == 1
    assert await connection.fetchval("select count(*) from ready") == 1


async def test_twenty_keys_at_once_make_twenty_runs(greet: Greet) -> None:
    handles = await asyncio.gather(*(greet.options(key=f"k{each}").submit(name="Ada") for each in range(20)))
    assert len({handle.id for handle in handles}) == 20


async def test_a_key_still_stands_for_a_run_that_has_ended(frozen_app: Mainspring) -> None:
    greet = greeting(frozen_app)
    first = await greet.options(key="k").submit(name="Ada")
    assert await run_until_idle(frozen_app) == {"succeeded": 1}

    again = await greet.options(key="k").submit(name="Ada")

    assert again == first
    assert await again.result() == "Hello Ada"


async def test_the_same_key_twice_within_one_transaction_is_one_run(greet: Greet, url: str) -> None:
    async with caller("asyncpg", url) as one:
        job = greet.options(key="k", connection=one.connection)
        first, again = await job.submit(name="Ada"), await job.submit(name="Ada")
        await one.commit()

    assert again == first
    assert (await first.find()).state == "ready"


async def test_a_key_rolled_back_with_its_run_is_free_again(greet: Greet, url: str) -> None:
    async with caller("asyncpg", url) as one:
        never = await greet.options(key="k", connection=one.connection).submit(name="Ada")
        await one.rollback()

    handle = await greet.options(key="k").submit(name="somebody else")

    assert handle != never
    assert (await handle.find()).payload == {"name": "somebody else"}


# ── something else under the same key ───────────────────────────────────────────────────────────────────────────

OTHER_CONTENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"name": "Bob"}),
    ({"priority": 1}, {"name": "Ada"}),
    ({"tags": ["x"]}, {"name": "Ada"}),
    ({"delay": 60}, {"name": "Ada"}),
    ({"max_age": 60}, {"name": "Ada"}),
]


@pytest.mark.parametrize(("options", "arguments"), OTHER_CONTENT)
async def test_other_content_under_the_same_key_is_refused_and_the_key_is_named(
    greet: Greet, connection: Connection, options: dict[str, Any], arguments: dict[str, Any]
) -> None:
    first = await greet.options(key="order 7").submit(name="Ada")

    with pytest.raises(IdempotencyConflict, match="'order 7'") as refused:
        await greet.options(key="order 7", **options).submit(**arguments)

    assert refused.value.code == "idempotency-conflict"
    assert refused.value.fields["run_id"] == str(first.id)
    assert await connection.fetchval("select count(*) from ready") == 1


async def test_another_job_under_the_same_key_is_refused(app: Mainspring, greet: Greet) -> None:
    @app.job
    async def insult(name: str) -> str:
        return f"Go away, {name}"

    await greet.options(key="k").submit(name="Ada")
    with pytest.raises(IdempotencyConflict):
        await insult.options(key="k").submit(name="Ada")


async def test_a_refused_submission_spoils_only_itself_in_its_callers_transaction(greet: Greet, url: str) -> None:
    await greet.options(key="k").submit(name="Ada")
    async with caller("asyncpg", url) as one:
        with pytest.raises(IdempotencyConflict):
            await greet.options(key="k", connection=one.connection).submit(name="Bob")
        other = await greet.options(connection=one.connection).submit(name="Bob")
        await one.commit()

    assert (await other.find()).state == "ready"


async def test_one_key_cannot_stand_for_many_runs(greet: Greet) -> None:
    with pytest.raises(InvalidInput) as refused:
        await greet.options(key="k").submit_many([{"name": "Ada"}, {"name": "Bob"}])
    assert refused.value.code == "key-for-many"


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def new_runs(greet: Greet, connection: Connection, keys: list[str]) -> list[NewRun]:
    """What the store is asked to accept: one run per key."""
    await greet.submit(name="first of all")
    row = await connection.fetchrow("select job_id, job_version, line_id from ready")
    assert row is not None
    templates = [
        template_of(greet.definition, SubmitOptions(key=key), Numbers(*row), actor=greet.app.actor, trace={})
        for key in keys
    ]
    return [template.filled(b'{"name":"Ada"}') for template in templates]


async def known_to(connection: Connection) -> str:
    return submissions.known_document(await installation_of(connection), {}, {})


def ids_for(batch: list[NewRun], clock_at: Any) -> list[UUID]:
    lanes = [lane_of_key(1, each.key or "", LANES) for each in batch]
    return [submissions.new_run_ids(1, lane, clock_at)[0] for lane in lanes]


async def test_the_same_key_twice_in_one_batch_is_one_run(
    greet: Greet, connection: Connection, clock: FrozenClock
) -> None:
    batch = await new_runs(greet, connection, ["k", "k", "other"])
    known = await known_to(connection)

    verdicts = await submissions.submit_items(connection, ids_for(batch, clock.at), batch, known)

    assert sorted(each.verdict for each in verdicts[:2]) == ["new", "same"]
    assert verdicts[0].run_id == verdicts[1].run_id != verdicts[2].run_id
    assert verdicts[2].verdict == "new"


async def test_what_is_sent_again_since_its_commit_went_unanswered_finds_its_own_runs(
    greet: Greet, connection: Connection, clock: FrozenClock
) -> None:
    """Also when one of its keys is forgotten meanwhile: that one is accepted anew, and no other."""
    batch = await new_runs(greet, connection, ["a", "b", "c"])
    ids, known = ids_for(batch, clock.at), await known_to(connection)
    await submissions.submit_items(connection, ids, batch, known)
    await connection.execute("delete from ready")  # they were claimed
    await connection.execute("delete from idempotency where key = 'b'")

    verdicts = await submissions.submit_items(connection, ids, batch, known)

    assert [each.verdict for each in verdicts] == ["same", "new", "same"]
    assert [each.run_id for each in verdicts] == ids
    assert [row["id"] for row in await connection.fetch("select id from ready")] == [ids[1]]


async def test_two_batches_with_the_same_keys_in_opposite_order_do_not_deadlock(
    greet: Greet, database: Database, connection: Connection, clock: FrozenClock
) -> None:
    keys = [f"k{number}" for number in range(200)]
    batch = await new_runs(greet, connection, keys)
    other = await database.connect("other")

    async def submit(on: Connection, items: list[NewRun]) -> list[Verdict]:
        return await submissions.submit_items(on, ids_for(items, clock.at), items, await known_to(on))

    forth, back = await asyncio.gather(submit(connection, batch), submit(other, batch[::-1]))

    assert [each.run_id for each in forth] == [each.run_id for each in back[::-1]]
    assert await connection.fetchval("select count(*) from ready") == 201
    await other.close()


async def test_keys_are_taken_in_one_order_whatever_the_order_of_the_batch(
    greet: Greet, database: Database, connection: Connection, clock: FrozenClock
) -> None:
    """Shown without luck: the second batch waits for its first key and holds no other one meanwhile."""
    low, high = sorted(["a", "b"], key=lambda key: (lane_of_key(1, key, LANES), key))
    batch = await new_runs(greet, connection, [low, high])
    other = await database.connect("other")
    first = connection.transaction()
    await first.start()
    await submissions.submit_items(connection, ids_for(batch[:1], clock.at), batch[:1], await known_to(connection))

    backwards = batch[::-1]
    known = await known_to(other)
    waiting = asyncio.ensure_future(submissions.submit_items(other, ids_for(backwards, clock.at), backwards, known))
    await until_someone_waits_for_a_lock(connection)
    await submissions.submit_items(connection, ids_for(batch[1:], clock.at), batch[1:], await known_to(connection))
    await first.commit()

    assert [each.verdict for each in await waiting] == ["same", "same"]
    await other.close()


# ── how long a key lives ────────────────────────────────────────────────────────────────────────────────────────


async def forget_keys(connection: Connection) -> list[str]:
    """Let the keeper look at all keys whose time has come; answers with those that are left."""
    for lane in range(LANES):
        await runs.forget_keys(connection, lane, 100)
    return [row["key"] for row in await connection.fetch("select key from idempotency order by key")]


async def test_a_key_lives_until_a_day_after_its_run_ended(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    greet = greeting(frozen_app)
    first = await greet.options(key="k", delay=timedelta(hours=10)).submit(name="Ada")
    await clock.advance(timedelta(hours=10))
    assert await run_until_idle(frozen_app) == {"succeeded": 1}

    await clock.advance(A_DAY - A_MOMENT)  # the key is older than a day by now
    assert await forget_keys(connection) == ["k"]
    await clock.advance(A_MOMENT)
    assert await forget_keys(connection) == []

    again = await greet.options(key="k", delay=timedelta(hours=10)).submit(name="Ada")
    assert again != first


async def test_the_key_of_a_run_that_lives_survives(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    greet = greeting(frozen_app)
    await greet.options(key="ready").submit(name="Ada")
    await greet.options(key="scheduled", delay=timedelta(days=300)).submit(name="Ada")

    for _ in range(3):
        await clock.advance(A_DAY)
        assert await forget_keys(connection) == ["ready", "scheduled"]


@pytest.mark.parametrize("place", ["held", "dead", "lease"])
async def test_so_does_the_key_of_a_run_that_is_held_dead_or_running(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, place: str
) -> None:
    handle = await greeting(frozen_app).options(key="k").submit(name="Ada")
    await put_into(connection, place, handle.id)

    await clock.advance(A_DAY * 30)

    assert await forget_keys(connection) == ["k"]


async def put_into(connection: Connection, place: str, run_id: UUID) -> None:
    """Move a ready run by hand: the lifecycle's own tests show the moves."""
    columns = "lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, payload"
    extra = {"held": ", reason", "dead": "", "lease": None}[place]
    if extra is None:
        await connection.execute(
            """insert into lease (lane, id, worker_id, runs, ids, done, cancel)
               select lane, gen_random_uuid(), $2, '{}', array[id], '0', '0' from ready where id = $1""",
            run_id,
            uuid4(),
        )
    else:
        value = ", 'no-handler'" if extra else ""
        await connection.execute(f"insert into {place} ({columns}{extra}) select {columns}{value} from ready")  # noqa: S608
    await connection.execute("delete from ready")


async def test_keys_are_looked_at_only_when_they_can_go(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    """Looking at every key of every living run each time would cost more with each run there is."""
    handle = await greeting(frozen_app).options(key="k").submit(name="Ada")
    lane = lane_of_key(1, "k", LANES)

    assert await runs.forget_keys(connection, lane, 100) == 0
    await clock.advance(A_DAY)
    assert await runs.forget_keys(connection, lane, 100) == 1
    assert await runs.forget_keys(connection, lane, 100) == 0
    assert (await handle.find()).state == "ready"


async def test_a_key_that_is_forgotten_just_now_is_used_anew(greet: Greet, connection: Connection, url: str) -> None:
    """The narrowest of races: the insert saw the key, and it was gone before its run could be read."""
    await connection.execute(FORGETTING)
    first = await greet.options(key="k").submit(name="Ada")
    await connection.execute("insert into forgetting values (true)")
    again = await greet.options(key="k").submit(name="Ada")
    await connection.execute("insert into forgetting values (true)")
    async with caller("async psycopg", url) as one:
        third = await greet.options(key="k", connection=one.connection).submit(name="Ada")
        await one.commit()

    assert len({first.id, again.id, third.id}) == 3
    assert [(await handle.find()).state for handle in (again, third)] == ["ready", "ready"]


# Forgets all keys once, between the first and the second statement of `submit`, whenever it is told to.
FORGETTING = """
create table forgetting (now boolean);
create function forget() returns trigger language plpgsql set search_path = mainspring as $$
begin
    if exists (select from forgetting) then
        delete from forgetting;
        delete from idempotency;
    end if;
    return null;
end $$;
create trigger forget after insert on idempotency for each statement execute function forget();
"""
