"""Unique runs: one at a time for each value of a key, one per period, and what that does to whoever acts on a run."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Limit, Mainspring, Retry, RetryPolicy, Unique
from mainspring.control import accepting, submitter
from mainspring.errors import InvalidInput, KeyBusy, OutcomeUnknown, UniqueConflict
from mainspring.store import lists, runs
from mainspring.store.connection import transaction
from mainspring.testing import run_until_idle, travel

from .callers import caller
from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from mainspring.app.handle import Handle
    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    Sync = Job[..., None]

LANES = 8
ONCE = RetryPolicy(max_attempts=1)
COUNT = "select (select count(*) from ready) + (select count(*) from later) + (select count(*) from held)"
# As if nobody looked at keys.
CARELESS = """
create or replace function take_unique_key(lane smallint, newer run_row, newer_gates text, wish jsonb)
returns table (run_id uuid, verdict text) language sql as $$ select newer.id, 'new' $$
"""


def syncing(app: Mainspring, **options: Any) -> Sync:
    chosen: dict[str, Any] = {"unique": Unique("customer")} | options

    @app.job(**chosen)  # type: ignore[untyped-decorator]
    async def sync(customer: str, what: str = "all") -> None:
        if what == "broken":
            raise ValueError(what)

    return sync  # type: ignore[no-any-return]


@pytest.fixture
def sync(app: Mainspring) -> Sync:
    return syncing(app)


@pytest.fixture
async def other_sync(url: str) -> AsyncIterator[Sync]:
    """The same job in another process."""
    async with Mainspring(url, submitted_by="another process") as app:
        yield syncing(app)


# ── one at a time ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_whoever_submits_another_one_gets_the_run_that_there_is(sync: Sync, connection: Connection) -> None:
    first = await sync.submit("acme", what="orders")
    again = await sync.submit("acme", what="invoices")

    assert again == first
    assert (first.is_new, again.is_new) == (True, False)
    assert (await first.find()).payload == {"customer": "acme", "what": "orders"}
    assert await connection.fetchval(COUNT) == 1


async def test_a_run_says_its_key_and_its_handler_does_not_see_it(frozen_app: Mainspring) -> None:
    seen: list[dict[str, str]] = []

    @frozen_app.job(unique=Unique("{region or eu}/{customer|lower}"))
    async def sync(customer: str, region: str | None = None) -> None: ...

    @frozen_app.middleware
    async def look(context: Any, call_next: Any) -> Any:
        seen.append(dict(context.headers))
        return await call_next()

    handle = await sync.options(headers={"origin": "test"}).submit("ACME")
    assert (await handle.find()).unique_key == "{region or eu}/{customer|lower}=eu/acme"
    assert await run_until_idle(frozen_app) == {"succeeded": 1}

    assert seen == [{"origin": "test"}]
    assert (await handle.find()).unique_key == "{region or eu}/{customer|lower}=eu/acme"


async def test_other_values_and_other_jobs_are_no_concern_of_a_key(app: Mainspring, sync: Sync) -> None:
    @app.job(unique=Unique("customer"))
    async def bill(customer: str) -> None: ...

    handles = [await sync.submit("acme"), await sync.submit("bolt"), await bill.submit("acme")]

    assert [handle.is_new for handle in handles] == [True, True, True]


async def test_without_a_key_runs_with_equal_arguments_are_one(app: Mainspring) -> None:
    @app.job(unique=Unique())
    async def send(to: str, copies: int = 1, urgent: bool = False) -> None: ...

    first = await send.submit("ada")

    assert await send.submit(copies=1, to="ada") == first
    assert await app.jobs.submit("send", {"urgent": False, "to": "ada"}) == first
    assert await send.submit("ada", copies=2) != first
    assert (await first.find()).unique_key == "all arguments"


async def test_an_application_that_only_knows_the_name_obeys_the_job(sync: Sync, url: str) -> None:
    first = await sync.submit("acme")

    async with Mainspring(url) as other:
        again = await other.jobs.submit("sync", {"customer": "acme"})

    assert (again.id, again.is_new) == (first.id, False)


async def test_options_replace_what_the_job_says(sync: Sync) -> None:
    first = await sync.submit("acme")

    assert await sync.options(unique=False).submit("acme") != first
    assert (await sync.options(unique=Unique("what")).submit("acme")).is_new
    with pytest.raises(UniqueConflict):
        await sync.options(unique=Unique("customer", on_conflict="refuse")).submit("acme")


async def test_a_run_that_runs_holds_its_key_unless_only_waiting_ones_do(frozen_app: Mainspring) -> None:
    made: dict[str, Handle[None]] = {}

    @frozen_app.job(unique=Unique("customer"))
    async def whole(customer: str) -> None:
        made.setdefault("whole", await whole.submit(customer))

    @frozen_app.job(unique=Unique("customer", while_="waiting"))
    async def waiting(customer: str) -> None:
        if "waiting" not in made:
            made["waiting"] = await waiting.options(delay=60).submit(customer)
            made["again"] = await waiting.submit(customer)

    first, other = await whole.submit("acme"), await waiting.submit("acme")
    assert await waiting.submit("acme") == other
    assert await run_until_idle(frozen_app) == {"succeeded": 2}

    assert made["whole"] == first
    assert made["waiting"].is_new
    assert made["waiting"] == made["again"]


async def test_a_run_that_waits_for_another_attempt_holds_its_key(frozen_app: Mainspring, clock: FrozenClock) -> None:
    for while_ in ("waiting", "waiting_or_running"):

        @frozen_app.job(name=while_, unique=Unique("customer", while_=while_))
        async def sync(customer: str) -> None:
            raise Retry(after=timedelta(minutes=5))

        first = await sync.submit("acme")
        await run_until_idle(frozen_app)
        assert (await first.find()).state == "scheduled"

        assert await sync.submit("acme") == first


@pytest.mark.parametrize("end", ["succeeded", "cancelled", "expired"])
async def test_a_run_that_has_ended_holds_nothing(frozen_app: Mainspring, clock: FrozenClock, end: str) -> None:
    sync = syncing(frozen_app)
    first = await sync.options(max_age=60 if end == "expired" else None).submit("acme")
    if end == "cancelled":
        await first.cancel()
    if end == "expired":
        await clock.advance(timedelta(seconds=61))
    await run_until_idle(frozen_app)
    assert (await first.find()).state == end

    second = await sync.submit("acme")

    assert second.is_new
    assert second != first
    assert await sync.submit("acme") == second


async def test_within_a_period_the_first_wins_whatever_becomes_of_it(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    sync = syncing(frozen_app, unique=Unique("customer", within=timedelta(minutes=5)))
    first = await sync.submit("acme")
    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    await clock.advance(timedelta(minutes=4, seconds=59))
    assert await sync.submit("acme") == first

    await clock.advance(timedelta(seconds=1))
    second = await sync.submit("acme")
    assert second.is_new
    await clock.advance(timedelta(minutes=4, seconds=59))
    assert await sync.submit("acme") == second


# ── refusing ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_who_wants_no_other_run_is_told_which_one_there_is(app: Mainspring, connection: Connection) -> None:
    sync = syncing(app, unique=Unique("customer", on_conflict="refuse"))
    first = await sync.submit("acme")

    with pytest.raises(UniqueConflict, match="holds the unique key customer=acme") as refused:
        await sync.submit("acme")

    assert refused.value.code == "unique-conflict"
    assert refused.value.fields["run_id"] == str(first.id)
    with pytest.raises(UniqueConflict):
        await sync.submit_many([{"customer": "bolt"}, {"customer": "acme"}])
    assert await connection.fetchval(COUNT) == 1, "all or none"
    assert (await sync.submit("bolt")).is_new


async def test_a_batch_that_refuses_itself_says_which_items(app: Mainspring, connection: Connection) -> None:
    sync = syncing(app, unique=Unique("customer", on_conflict="refuse"))

    with pytest.raises(UniqueConflict, match="Items 0 and 2") as refused:
        await sync.submit_many([{"customer": "acme"}, {"customer": "bolt"}, {"customer": "acme"}])

    assert refused.value.code == "unique-key-repeated"
    assert await connection.fetchval(COUNT) == 0


async def test_a_key_that_cannot_be_told_is_refused(app: Mainspring, connection: Connection) -> None:
    @app.job(unique=Unique("order.customer"))
    async def sync(order: dict[str, str]) -> None: ...

    with pytest.raises(InvalidInput, match=r"unique by order\.customer") as refused:
        await sync.submit({"number": "7"})

    assert refused.value.code == "unique-key-fails"


async def test_a_run_has_one_kind_of_key(sync: Sync) -> None:
    with pytest.raises(InvalidInput) as refused:
        sync.options(key="order 7")
    assert refused.value.code == "key-and-unique"

    assert (await sync.options(key="order 7", unique=False).submit("acme")).is_new


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_equal_keys_in_one_batch_are_one_run(sync: Sync, connection: Connection) -> None:
    before = await sync.submit("bolt")

    handles = await sync.submit_many([{"customer": each} for each in ("acme", "bolt", "acme", "corp")])

    assert handles[0] == handles[2]
    assert handles[1] == before
    assert [handle.is_new for handle in handles] == [True, False, False, True]
    assert await connection.fetchval(COUNT) == 3


async def test_two_batches_with_the_same_keys_in_opposite_order_do_not_deadlock(
    sync: Sync, other_sync: Sync, connection: Connection
) -> None:
    calls = [{"customer": str(number)} for number in range(100)]

    forth, back = await asyncio.gather(sync.submit_many(calls), other_sync.submit_many(calls[::-1]))

    assert [each.id for each in forth] == [each.id for each in back[::-1]]
    assert await connection.fetchval(COUNT) == 100


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "rule", [Unique("customer"), Unique("customer", within=60), Unique("customer", while_="waiting")]
)
@pytest.mark.parametrize("is_careful", [True, False])
async def test_many_who_submit_at_once_make_one_run(
    sync: Sync, other_sync: Sync, connection: Connection, rule: Unique, is_careful: bool
) -> None:
    """The control: without the look at the key, each makes its own."""
    if not is_careful:
        await connection.execute(CARELESS)

    handles = await asyncio.gather(
        *(job.options(unique=rule).submit("acme") for _ in range(20) for job in (sync, other_sync))
    )

    assert len({handle.id for handle in handles}) == (1 if is_careful else 40)
    assert sum(bool(handle.is_new) for handle in handles) == (1 if is_careful else 40)
    assert await connection.fetchval(COUNT) == (1 if is_careful else 40)


async def test_many_who_submit_while_runs_come_and_go_never_make_two_at_once(app: Mainspring) -> None:
    alive, most = 0, 0

    @app.job(unique=Unique("customer"))
    async def sync(customer: str) -> None:
        nonlocal alive, most
        alive += 1
        most = max(most, alive)
        await asyncio.sleep(0)
        alive -= 1

    async def submit_some() -> list[Handle[None]]:
        return [await sync.submit("acme") for _ in range(30)]

    async with working(app):
        handles = [each for some in await asyncio.gather(*(submit_some() for _ in range(4))) for each in some]
        for handle in dict.fromkeys(handles):
            await handle.result()

    assert most == 1
    new = [handle.id for handle in handles if handle.is_new]
    assert len(new) == len(set(new)) == len({handle.id for handle in handles})


# ── callers' transactions ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_key_is_taken_with_the_callers_commit_and_free_after_a_rollback(sync: Sync, url: str) -> None:
    async with caller("asyncpg", url) as one:
        job = sync.options(connection=one.connection)
        first, again = await job.submit("acme"), await job.submit("acme")
        await one.rollback()
    assert again == first

    second = await sync.submit("acme")
    assert second.is_new
    async with caller("psycopg", url) as one:
        third = await asyncio.to_thread(sync.options(connection=one.connection).submit_sync, "acme")
        await one.commit()
    assert (third.id, third.is_new) == (second.id, False)


async def test_a_key_in_an_open_transaction_is_waited_for_a_while(
    sync: Sync, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitter, "KEY_SECONDS", 0.01)
    async with caller("asyncpg", url) as one:
        first = await sync.options(connection=one.connection).submit("acme")
        with pytest.raises(KeyBusy, match="still open") as refused:
            await sync.submit("acme")
        assert (await sync.submit("bolt")).is_new, "others wait for nothing"
        await one.commit()

    assert refused.value.code == "unique-key-busy"
    assert await sync.submit("acme") == first


async def test_a_caller_who_was_answered_with_another_run_keeps_nobody_waiting(
    frozen_app: Mainspring, url: str
) -> None:
    sync = syncing(frozen_app)
    first = await sync.submit("acme")
    async with caller("asyncpg", url) as one:
        assert await sync.options(connection=one.connection).submit("acme") == first
        assert await sync.submit("acme") == first
        assert await run_until_idle(frozen_app) == {"succeeded": 1}
        assert (await sync.submit("acme")).is_new
        await one.commit()


# ── a COMMIT whose answer was lost ──────────────────────────────────────────────────────────────────────────────


def losing_answers(monkeypatch: pytest.MonkeyPatch, meanwhile: Any) -> None:
    """The answer to the next COMMIT of a submission is lost; then something happens before it is sent again."""
    lost: list[bool] = []

    @asynccontextmanager
    async def losing(connection: Connection) -> AsyncIterator[None]:
        async with transaction(connection):
            yield
        if not lost:
            lost.append(True)
            await meanwhile()
            raise OutcomeUnknown("The answer to COMMIT was lost.")

    monkeypatch.setattr(accepting, "transaction", losing)


async def test_a_run_whose_commit_went_unanswered_is_not_accepted_twice(
    sync: Sync, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def meanwhile() -> None: ...

    losing_answers(monkeypatch, meanwhile)

    handles = await sync.submit_many([{"customer": "acme"}, {"customer": "bolt"}, {"customer": "acme"}])

    assert [handle.is_new for handle in handles] == [True, True, False]
    assert handles[0] == handles[2]
    assert await connection.fetchval(COUNT) == 2


@pytest.mark.parametrize("looks", [True, False])
async def test_nor_if_it_has_ended_and_others_had_its_key_before_it_is_sent_again(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    """The control: by the key alone, it would be accepted and executed once more."""
    sync = syncing(frozen_app)
    others: list[Handle[None]] = []

    async def meanwhile() -> None:
        assert await run_until_idle(frozen_app) == {"succeeded": 1}
        async with Mainspring(frozen_app.location.url) as other:
            others.append(await other.jobs.submit("sync", {"customer": "acme"}))
        assert await run_until_idle(frozen_app) == {"succeeded": 1}

    async def nothing(*_: Any, **__: Any) -> dict[UUID, str]:
        return {}

    if not looks:
        monkeypatch.setattr(lists, "states_of", nothing)
    losing_answers(monkeypatch, meanwhile)

    handle = await sync.submit("acme")

    assert handle.is_new
    assert handle != others[0]
    assert await connection.fetchval(COUNT) == (0 if looks else 1)


# ── dead letters ────────────────────────────────────────────────────────────────────────────────────────────────


async def dead_letter(app: Mainspring, sync: Sync) -> Handle[None]:
    handle = await sync.submit("acme", what="broken")
    await run_until_idle(app)
    assert (await handle.find()).state == "dead"
    return handle


async def test_a_dead_letter_holds_nothing_and_stays_while_another_run_holds_its_key(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app, retry=ONCE)
    died = await dead_letter(frozen_app, sync)
    second = await sync.submit("acme")
    assert second.is_new

    moved = await frozen_app.runs.requeue(died.id)
    assert (moved.done, moved.skipped) == ([], [died.id])
    with pytest.raises(UniqueConflict, match=f"{second.id} holds its unique key customer=acme") as refused:
        await frozen_app.runs.rerun(died.id)
    assert refused.value.fields["run_id"] == str(second.id)
    dead = (await frozen_app.services()).dead
    with pytest.raises(UniqueConflict):
        await dead.raise_unless_moved(frozen_app.actor, moved, "requeued")

    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert (await frozen_app.runs.requeue(died.id)).done == [died.id]
    assert await sync.submit("acme") == died, "it holds its key again"


async def test_a_dead_letter_that_nobody_followed_holds_its_key_again_when_it_is_requeued(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    sync = syncing(frozen_app, retry=ONCE)
    died = await dead_letter(frozen_app, sync)
    await connection.execute("delete from unique_key")  # by whatever accident

    assert (await frozen_app.runs.requeue(died.id)).done == [died.id]

    assert await sync.submit("acme") == died


async def test_of_two_dead_letters_with_one_key_one_comes_back(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app, retry=ONCE)
    died = [await dead_letter(frozen_app, sync) for _ in range(2)]

    moved = await frozen_app.runs.requeue(*(handle.id for handle in died))

    assert len(moved.done) == len(moved.skipped) == 1


async def test_a_dead_letter_of_a_period_comes_back_whatever_else_there_is(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    sync = syncing(frozen_app, retry=ONCE, unique=Unique("customer", within=60))
    died = await dead_letter(frozen_app, sync)
    assert await sync.submit("acme") == died
    await clock.advance(timedelta(seconds=60))
    assert (await sync.submit("acme")).is_new

    assert (await frozen_app.runs.requeue(died.id)).done == [died.id]


# ── other acts ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_arguments_may_change_as_long_as_the_key_does_not(sync: Sync, app: Mainspring) -> None:
    first = await sync.submit("acme")
    await first.change(arguments={"customer": "acme", "what": "orders"})
    assert (await first.find()).payload == {"customer": "acme", "what": "orders"}

    with pytest.raises(InvalidInput, match="unique by customer=acme") as refused:
        await first.change(arguments={"customer": "bolt"})

    assert refused.value.code == "unique-key-changes"
    assert (await sync.submit("bolt")).is_new


async def test_a_dead_letter_is_requeued_with_the_key_that_it_has(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app, retry=ONCE)
    died = await dead_letter(frozen_app, sync)

    for act in (frozen_app.runs.requeue, frozen_app.runs.rerun):
        with pytest.raises(InvalidInput) as refused:
            await act(died.id, arguments={"customer": "bolt"})
        assert refused.value.code == "unique-key-changes"
    await frozen_app.runs.requeue(died.id, arguments={"customer": "acme", "what": "mended"})

    assert await run_until_idle(frozen_app) == {"succeeded": 1}


async def test_a_rerun_is_made_on_purpose_and_knows_no_key(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app)
    first = await sync.submit("acme")
    await run_until_idle(frozen_app)
    second = await sync.submit("acme")

    again = await frozen_app.runs.rerun(first.id)

    assert again not in (first, second)
    assert (await again.find()).unique_key is None
    assert await sync.submit("acme") == second


async def test_an_occurrence_of_a_schedule_is_a_run_whatever_keys_are_held(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app)
    first = await sync.options(delay=timedelta(days=1)).submit("acme")
    with pytest.raises(InvalidInput) as refused:
        await sync.options(unique=Unique("what")).scheduled("hourly", "every hour").create("acme")
    assert refused.value.code == "not-for-schedules"

    schedule = sync.scheduled("hourly", "every hour")
    await schedule.create("acme")
    assert await frozen_app.schedules.trigger("hourly") == first.id, "by hand, it is a submission like any other"

    fired = await travel(frozen_app, timedelta(hours=1))

    assert [each.state for each in fired] == ["succeeded"]
    assert await sync.submit("acme") == first


async def test_unique_runs_pass_their_limits(frozen_app: Mainspring) -> None:
    sync = syncing(frozen_app, limit=Limit(1))
    handles = [await sync.submit(each) for each in ("acme", "bolt", "acme")]

    assert [handle.is_new for handle in handles] == [True, True, False]
    assert await run_until_idle(frozen_app) == {"succeeded": 2}
    assert (await sync.submit("acme")).is_new


# ── how long keys are kept ──────────────────────────────────────────────────────────────────────────────────────


async def forget_keys(connection: Connection) -> list[str]:
    """Let the keeper look at all keys whose time has come; answers with those that are left."""
    for lane in range(LANES):
        await runs.forget_unique_keys(connection, lane, 100)
    return [row["key"] for row in await connection.fetch("select key from unique_key order by key")]


async def test_keys_are_forgotten_when_their_runs_are_over_and_their_periods(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    sync = syncing(frozen_app, retry=ONCE)
    await sync.submit("over")
    await sync.submit("dead", what="broken")
    await run_until_idle(frozen_app)
    await sync.options(delay=timedelta(days=10)).submit("waits")
    await sync.options(unique=Unique("customer", within=timedelta(hours=3))).submit("period")
    await run_until_idle(frozen_app)

    assert len(await forget_keys(connection)) == 4, "not looked at yet"
    await clock.advance(timedelta(hours=1))
    assert await forget_keys(connection) == ["customer\tdead", "customer\tperiod", "customer\twaits"]
    await clock.advance(timedelta(hours=2))
    assert await forget_keys(connection) == ["customer\tdead", "customer\twaits"]


async def test_a_key_that_is_forgotten_just_now_is_taken_anew(frozen_app: Mainspring, connection: Connection) -> None:
    """The narrowest of races: the insert saw the key, and it was gone before its run could be read."""
    sync = syncing(frozen_app)
    first = await sync.submit("acme")
    await run_until_idle(frozen_app)
    await connection.execute(FORGETTING)

    again = await sync.submit("acme")

    assert again.is_new
    assert again != first
    assert await sync.submit("acme") == again


# Forgets all keys once, between the first and the second statement of `take_unique_key`.
FORGETTING = """
create table forgetting (now boolean);
insert into forgetting values (true);
create function forget() returns trigger language plpgsql set search_path = mainspring as $$
begin
    if exists (select from forgetting) then
        delete from forgetting;
        delete from unique_key;
    end if;
    return null;
end $$;
create trigger forget after insert on unique_key for each statement execute function forget();
"""
