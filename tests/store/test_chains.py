"""Jobs that follow others: whenever a run ends as told, one run of the job that follows is submitted, and only one."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import After, Cancel, Context, Limit, Mainspring, RetryPolicy, RunFilter, Unique
from mainspring.errors import ChainNotFound, DatabaseBusy, InvalidInput, OutcomeUnknown
from mainspring.keeper.follower import Follower
from mainspring.model.ids import lane_of
from mainspring.model.job import JobDefinition
from mainspring.model.lifecycle import State
from mainspring.store import chains, jobs, resolving, runs, triggering
from mainspring.store.connection import transaction
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring import Run
    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection

LANES = 8
ONCE = RetryPolicy(max_attempts=1)


class Shop:
    """A job, and those that follow it on each kind of end."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.followed: list[tuple[str, UUID | None]] = []
        self.fails = True

        @app.job(retry=ONCE)
        async def load(what: str = "rows") -> list[str]:
            if what == "fail" and self.fails:
                raise ValueError(what)
            if what == "cancel":
                raise Cancel("not today")
            return [what]

        @app.job(after=After("load", result="rows"))
        async def report(context: Context, rows: list[str]) -> None:
            self.followed.append((f"report {rows[0]}", context.triggered_by))

        @app.job(after="load", on="failure")
        async def alarm(context: Context) -> None:
            self.followed.append(("alarm", context.triggered_by))

        @app.job(after=[After("load", on="end")])
        async def tidy(context: Context) -> None:
            self.followed.append(("tidy", context.triggered_by))

        self.load = load

    @property
    def names(self) -> list[str]:
        return sorted(name for name, _ in self.followed)


async def lanes_with_news(connection: Connection) -> list[int]:
    return sorted(row["lane"] for row in await runs.lanes_to_keep(connection, LANES) if row["followers"])


@pytest.fixture
def shop(app: Mainspring) -> Shop:
    return Shop(app)


async def follow(connection: Connection, app: Mainspring) -> None:
    """As the keeper does, until there is nothing to submit."""
    follower = Follower(lanes=LANES, clock=app.clock)
    while await follower.step(connection) == 0.0:
        pass


async def runs_of(app: Mainspring, job: str) -> list[Run]:
    page = await app.runs.page(RunFilter(jobs=(job,)))
    return [await app.runs.find(each.id) for each in page.runs]


@pytest.mark.parametrize(
    ("what", "follows"),
    [("rows", ["report rows", "tidy"]), ("fail", ["alarm", "tidy"]), ("cancel", ["tidy"])],
)
async def test_a_run_is_followed_as_it_ended(app: Mainspring, shop: Shop, what: str, follows: list[str]) -> None:
    loaded = await shop.load.submit(what)

    await run_until_idle(app)

    assert shop.names == follows
    assert {by for _, by in shop.followed} == {loaded.id}


async def test_a_whole_batch_is_followed_run_by_run(app: Mainspring, shop: Shop) -> None:
    await shop.load.submit_many([{"what": f"{number:03}"} for number in range(250)])

    await run_until_idle(app)

    assert shop.names == sorted([f"report {number:03}" for number in range(250)] + ["tidy"] * 250)


async def test_one_that_is_cancelled_while_it_waits_is_followed_at_any_end_only(app: Mainspring, shop: Shop) -> None:
    await run_until_idle(app)  # what the jobs declare takes effect
    waiting = await shop.load.options(delay=60).submit()

    await waiting.cancel()
    await run_until_idle(app)

    assert shop.names == ["tidy"]


async def test_one_that_expires_has_failed(app: Mainspring, shop: Shop, connection: Connection) -> None:
    await run_until_idle(app)
    waiting = await shop.load.options(max_age=0.001).submit()
    async with app.running(scheduler=False, poll_interval=0.05):
        while (await waiting.find()).state is not State.EXPIRED and "alarm" not in shop.names:
            await asyncio.sleep(0)
    await run_until_idle(app)

    assert shop.names == ["alarm", "tidy"]


async def test_a_dead_letter_that_is_requeued_is_followed_when_it_succeeds(app: Mainspring, shop: Shop) -> None:
    dead = await shop.load.submit("fail")
    await run_until_idle(app)
    shop.fails = False

    await app.runs.requeue(dead.id)
    await run_until_idle(app)

    assert shop.names == ["alarm", "report fail", "tidy", "tidy"]


async def test_purging_a_dead_letter_is_no_end_of_its_own(app: Mainspring, shop: Shop) -> None:
    dead = await shop.load.submit("fail")
    await run_until_idle(app)

    await app.runs.purge(dead.id)
    await run_until_idle(app)

    assert shop.names == ["alarm", "tidy"]


async def test_a_rerun_is_followed_again(app: Mainspring, shop: Shop) -> None:
    first = await shop.load.submit("rows")
    await run_until_idle(app)

    again = await app.runs.rerun(first.id)
    await run_until_idle(app)

    assert {by for _, by in shop.followed} == {first.id, again.id}
    assert shop.names == ["report rows"] * 2 + ["tidy"] * 2


async def test_a_run_of_a_flow_is_followed(app: Mainspring, shop: Shop) -> None:
    flow = app.flow("nightly")
    first = flow.add(shop.load, "first")
    flow.add(shop.load, "second").after(first)
    await flow.submit()

    await run_until_idle(app)

    assert shop.names == ["report first", "report second", "tidy", "tidy"]


async def test_runs_that_follow_are_under_the_limits_and_options_of_their_job(app: Mainspring) -> None:
    running = most = ended = 0

    @app.job
    async def load() -> None: ...

    @app.job(after="load", queue="reports", priority=2, limit=Limit(1))
    async def report() -> None:
        nonlocal running, most, ended
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0)
        running, ended = running - 1, ended + 1

    async def all_done() -> bool:
        return {run.state for run in await runs_of(app, "report")} == {State.SUCCEEDED} and ended == 20

    async with working(app, keeper=True):
        await load.submit_many([{}] * 20)
        await until(all_done)

    runs = await runs_of(app, "report")
    assert [(run.state, run.queue, run.priority, run.submitted_by) for run in runs] == [
        (State.SUCCEEDED, "reports", 2, "after load")
    ] * 20
    assert most == 1


async def test_a_chain_of_three_says_where_it_began(app: Mainspring) -> None:
    @app.job
    async def one() -> int:
        return 1

    @app.job(after=After("one", result="number"))
    async def two(number: int) -> int:
        return number + 1

    @app.job(after=After(two, result="number"))  # the job itself will do
    async def three(number: int) -> int:
        return number + 1

    first = await one.submit()
    await run_until_idle(app)

    [second] = await runs_of(app, "two")
    [third] = await runs_of(app, "three")
    assert (second.triggered_by, third.triggered_by) == (first.id, second.id)
    assert third.attempts[-1].result == 3
    assert third.headers["chain_depth"] == "2"


async def test_the_trace_goes_on(app: Mainspring, shop: Shop) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await shop.load.options(headers={"traceparent": trace, "other": "stays"}).submit()

    await run_until_idle(app)

    [run] = await runs_of(app, "report")
    assert run.headers["traceparent"] == trace
    assert "other" not in run.headers


async def test_a_result_that_does_not_fit_makes_a_dead_letter(app: Mainspring) -> None:
    @app.job
    async def load() -> str:
        return "no number"

    @app.job(after=After("load", result="number"))
    async def report(number: int) -> None: ...

    await load.submit()
    await run_until_idle(app)

    [run] = await runs_of(app, "report")
    assert run.state is State.DEAD
    assert "number" in str(run.attempts[-1].error)


# ── once, whatever happens ──────────────────────────────────────────────────────────────────────────────────────


async def ended_without_hint(app: Mainspring, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has ended, and whoever would have seen to what follows is gone."""

    async def dies(*_: Any) -> triggering.Triggered:
        return triggering.NOTHING

    with monkeypatch.context() as patched:
        patched.setattr(triggering, "trigger", dies)
        async with working(app):
            await (await shop.load.submit()).result(timeout=10)


async def test_two_that_submit_at_once_submit_each_run_once(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await ended_without_hint(app, shop, monkeypatch)
    store = (await app.services()).store
    others = [await store.database.connect("other") for _ in range(4)]

    async def all_lanes(own: Connection) -> None:
        for lane in range(LANES):
            await triggering.trigger(own, lane, LANES)

    await asyncio.gather(*map(all_lanes, others))
    for each in others:
        await each.close()
    await run_until_idle(app)

    assert shop.names == ["report rows"] * 5 + ["tidy"] * 5


async def test_the_keeper_submits_what_nobody_was_told_of(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended_without_hint(app, shop, monkeypatch)
    assert await connection.fetchval("select count(*) from chain_news") == 1

    await follow(connection, app)
    await follow(connection, app)

    assert await connection.fetchval("select count(*) from ready") == 2
    assert await connection.fetchval("select count(*) from chain_news") == 0


async def test_an_answer_that_is_lost_submits_nothing_twice(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended_without_hint(app, shop, monkeypatch)
    trigger = triggering.trigger

    async def unanswered(connection: Connection, lane: int, lanes: int) -> triggering.Triggered:
        await trigger(connection, lane, lanes)
        raise OutcomeUnknown("the answer to COMMIT was lost")

    with monkeypatch.context() as patched:
        patched.setattr(triggering, "trigger", unanswered)
        with pytest.raises(OutcomeUnknown):
            await follow(connection, app)
    await follow(connection, app)

    assert await connection.fetchval("select count(*) from ready") == 2


async def test_without_the_news_being_taken_each_look_would_submit_again(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what was told is put back after each look, as if nobody had deleted it."""
    await ended_without_hint(app, shop, monkeypatch)
    await connection.execute("create table kept as table chain_news")
    for _ in range(2):
        await follow(connection, app)
        await connection.execute("insert into chain_news select * from kept")

    assert await connection.fetchval("select count(*) from ready") == 4


async def test_what_the_database_says_in_passing_is_no_refusal(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended_without_hint(app, shop, monkeypatch)

    async def busy(*_: Any, **__: Any) -> Any:
        raise DatabaseBusy("Somebody holds a lock on what is needed.")

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "line_in_known_queue", busy)
        with pytest.raises(DatabaseBusy):
            await follow(connection, app)
    await follow(connection, app)

    assert await connection.fetchval("select count(*) from ready") == 2


async def test_an_error_in_one_lane_does_not_keep_the_others_waiting(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        await ended_without_hint(app, shop, monkeypatch)
    lanes = await lanes_with_news(connection)
    assert len(lanes) > 1
    trigger = triggering.trigger

    async def broken_in_the_first(connection: Connection, lane: int, of: int) -> triggering.Triggered:
        if lane == lanes[0]:
            raise DatabaseBusy("It fails again and again.")
        return await trigger(connection, lane, of)

    monkeypatch.setattr(triggering, "trigger", broken_in_the_first)
    follower = Follower(lanes=LANES, clock=app.clock)
    for _ in range(2):
        with pytest.raises(DatabaseBusy):
            await follower.step(connection)

    assert await lanes_with_news(connection) == lanes[:1]


@pytest.mark.parametrize("verb", ["cancel", "join"])
async def test_whoever_ends_a_run_may_have_begun_before_its_last_attempt_was_recorded(
    app: Mainspring, connection: Connection, verb: str
) -> None:
    @app.job(retry=ONCE)
    async def part() -> None: ...

    @app.job(retry=RetryPolicy(max_attempts=3, first_delay=timedelta(hours=1)))
    async def load(fails: bool) -> None:
        if fails:
            raise ValueError
        await part.options(child=True, delay=3600, may_fail=True).submit()

    @app.job(after=After("load", on="end"))
    async def tidy() -> None: ...

    handle = await load.submit(verb == "cancel")
    async with transaction(connection):
        await connection.fetchval("select now()")  # its time is from now on
        async with working(app):
            await until(lambda: _waits(handle))
        if verb == "cancel":
            await runs.cancel_waiting(connection, lane_of(handle.id), [handle.id], tenant_id=1, actor="me", reason="")
        else:
            await app.runs.cancel((await handle.find()).children[0].run_id)
            await resolving.resolve(connection, lane_of(handle.id))
    await follow(connection, app)

    assert len(await runs_of(app, "tidy")) == 1


async def _waits(handle: Handle[Any]) -> bool:
    found = await handle.find()
    return found.state in (State.HELD, State.SCHEDULED) and bool(found.attempts)


async def test_many_large_results_are_handed_on_a_few_at_a_time(
    app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggering, "MOST_BYTES", 2_500)
    sent: list[int] = []

    @app.job(retry=ONCE)
    async def load() -> str:
        return "x" * 1_000

    for number in range(3):

        @app.job(name=f"follower-{number}", after=After("load", result="rows"))
        async def follower(rows: str) -> None: ...

    add = triggering.Building.add

    def noted(self: triggering.Building, *arguments: Any) -> None:
        add(self, *arguments)
        sent.append(self.bytes)

    monkeypatch.setattr(triggering.Building, "add", noted)
    await load.submit_many([{}] * 10)
    await run_until_idle(app)

    assert len(await runs_of(app, "follower-1")) == 10
    assert max(sent) < 2 * 3 * 1_100, "what follows from two runs, at the most"


async def test_a_job_that_follows_two_says_which_of_them_it_was(app: Mainspring) -> None:
    @app.job
    async def first() -> None: ...

    @app.job
    async def second() -> None: ...

    @app.job(after=["first", "second"])
    async def then() -> None: ...

    before = {(await job.submit()).id: f"after {job.name}" for job in (first, second) * 8}
    await run_until_idle(app)

    assert {run.triggered_by: run.submitted_by for run in await runs_of(app, "then")} == before


async def test_a_newer_version_that_is_unique_ends_no_keeper(
    app: Mainspring, shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has registered the job, and died before it removed the chain."""
    await ended_without_hint(app, shop, monkeypatch)
    document = JobDefinition(name="tidy", unique=Unique(key="customer")).as_document()
    await jobs.register(connection, "tidy", document, actor="newer", tenant_id=1)

    await follow(connection, app)

    assert await connection.fetchval("select count(*) from ready") == 2


async def test_a_dead_letter_because_of_a_child_is_followed(app: Mainspring, shop: Shop) -> None:
    @app.job(retry=ONCE)
    async def part() -> None:
        raise ValueError

    @app.job(retry=ONCE)
    async def whole() -> None:
        await part.options(child=True).submit()

    @app.job(after=After("whole", on="failure"))
    async def mourn(context: Context) -> None:
        shop.followed.append(("mourn", context.triggered_by))

    handle = await whole.submit()
    await run_until_idle(app)

    assert shop.followed == [("mourn", handle.id)]


async def test_only_so_many_jobs_follow_one(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MAX_FOLLOWERS", 2)

    @app.job
    async def load() -> None: ...

    for number in range(3):

        @app.job(name=f"follower-{number}", after="load")
        async def follower() -> None: ...

    with pytest.raises(InvalidInput) as caught:
        async with working(app):
            pass

    assert caught.value.code == "too-many-followers"


async def test_a_rollback_of_the_end_submits_nothing(app: Mainspring, shop: Shop, connection: Connection) -> None:
    await run_until_idle(app)
    waiting = await shop.load.options(delay=60).submit()
    is_open = connection.transaction()
    await is_open.start()
    await connection.fetch(
        "select cancel_runs($1::smallint, array[$2::uuid], 1, 'me', '', '{}')", lane_of(waiting.id), waiting.id
    )
    await is_open.rollback()
    await follow(connection, app)

    assert await connection.fetchval("select count(*) from ready") == 0


# ── what is declared ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_chain_goes_when_the_code_no_longer_declares_it_and_old_code_brings_nothing_back(url: str) -> None:
    async def start(**options: Any) -> list[tuple[str, str, str]]:
        app = Mainspring(url)

        @app.job
        async def load() -> None: ...

        async def report() -> None: ...

        app.job(**options)(report)

        async with app:
            await run_until_idle(app)
            return [(each.upstream, each.downstream, each.on.value) for each in await app.chains.list()]

    assert await start(after="load") == [("load", "report", "success")]
    assert await start(after="load", on="end") == [("load", "report", "end")]
    assert await start(after="load") == [("load", "report", "end")]  # old code
    assert await start(queue="other") == []
    assert await start(after="load", on="end") == []  # old code


async def test_a_paused_chain_submits_nothing_and_stays_paused(
    app: Mainspring, shop: Shop, connection: Connection
) -> None:
    await run_until_idle(app)

    paused = await app.chains.pause("load", "report", reason="being mended")
    await shop.load.submit()
    await run_until_idle(app)

    assert (paused.is_paused, paused.reason) == (True, "being mended")
    assert shop.names == ["tidy"]
    await app.chains.resume("load", "report")
    await shop.load.submit()
    await run_until_idle(app)
    assert shop.names == ["report rows", "tidy", "tidy"]
    actions = [row["action"] for row in await connection.fetch("select action from audit order by at")]
    assert actions.count("chain.declare") == 3
    assert {"chain.pause", "chain.resume"} <= set(actions)


async def test_a_chain_can_be_removed(app: Mainspring, shop: Shop) -> None:
    await run_until_idle(app)

    await app.chains.remove("load", "report")

    assert [each.downstream for each in await app.chains.list()] == ["alarm", "tidy"]
    with pytest.raises(ChainNotFound):
        await app.chains.remove("load", "report")
    with pytest.raises(ChainNotFound):
        await app.chains.pause("load", "nothing")


async def test_a_circle_made_by_two_applications_is_refused_and_named(url: str) -> None:
    first, second = Mainspring(url), Mainspring(url)

    @first.job(after="b")
    async def a() -> None: ...

    @second.job(after="a")
    async def b() -> None: ...

    async with first, second:
        await run_until_idle(first)
        with pytest.raises(InvalidInput, match="b → a → b") as caught:
            await b.submit()

    assert caught.value.code == "chain-cycle"


async def test_a_chain_that_is_too_long_is_cut_and_that_is_recorded(
    app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a circle that two deployments make together does not go on for ever."""
    monkeypatch.setattr(triggering, "MAX_DEPTH", 1)

    @app.job
    async def one() -> None: ...

    @app.job(after="one")
    async def two() -> None: ...

    @app.job(after="two")
    async def three() -> None: ...

    await one.submit()
    await run_until_idle(app)

    [second] = await runs_of(app, "two")
    assert await runs_of(app, "three") == []
    [refused] = await connection.fetch(
        "select actor, subject, detail ->> 'job' from audit where action = 'chain.refuse'"
    )
    assert tuple(refused) == ("after two", str(second.id), "three")


async def test_a_job_may_follow_one_that_comes_later(url: str) -> None:
    app, later = Mainspring(url), Mainspring(url)
    followed = []

    @app.job(after="load")
    async def report() -> None:
        followed.append(1)

    @later.job
    async def load() -> None: ...

    async with app, later:
        await run_until_idle(app)
        await load.submit()
        await run_until_idle(later)
        await run_until_idle(app)

    assert followed == [1]


async def test_runs_of_other_jobs_leave_no_news(app: Mainspring, shop: Shop, connection: Connection) -> None:
    @app.job
    async def other() -> None: ...

    await other.submit()
    await connection.execute("alter table chain_news add constraint nobody check (false) not valid")
    await run_until_idle(app)

    assert [run.state for run in await runs_of(app, "other")] == [State.SUCCEEDED]
