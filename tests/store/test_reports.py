"""What attempts report while they go on: progress, log lines, checkpoints; fenced, bounded, and gone in time."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker
from tests.waiting import until

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.errors import InvalidInput, LeaseLost, RunFailed
from mainspring.keeper.sweeper import Sweeper
from mainspring.model.report import MAX_LOG_BYTES
from mainspring.model.run import PRIORITIES
from mainspring.store import leases, reports
from mainspring.store.reports import LeasedAttempt
from mainspring.testing import run_until_idle
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mainspring import Handle
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock


HOSTILE = "a\x00b \ud800 \x1b[31m"
AT_ONCE = RetryPolicy(max_attempts=3, first_delay=timedelta(seconds=1))
NOW = (0,)  # for history: midnight of the year 2000


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger that lets everything through, as an application would configure it."""
    logger = logging.getLogger(f"shop.{uuid4().hex[:6]}")
    logger.setLevel(logging.DEBUG)
    yield logger
    logger.setLevel(logging.NOTSET)


@pytest.fixture
async def going_on() -> AsyncIterator[list[asyncio.Task[Any]]]:
    tasks: list[asyncio.Task[Any]] = []
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def noted(app: Mainspring, context: Context) -> None:
    """Wait until the reporter has come by."""

    async def progress() -> Any:
        return (await app.runs.find(context.run_id)).progress

    await until(progress)


# ── progress ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_progress_is_seen_while_the_run_goes_on_and_gone_when_it_has_ended(
    app: Mainspring, connection: Connection, kind: str
) -> None:
    enough = threading.Event()

    @app.job
    async def crunch(context: Context) -> None:
        context.progress(0.1)
        context.progress(0.4, "four\nof ten")
        await asyncio.to_thread(enough.wait)

    @app.job
    def crunch_in_thread(context: Context) -> None:
        context.progress(0.4, "four\nof ten")
        enough.wait()

    handle = await (crunch if kind == "async" else crunch_in_thread).submit()
    working = asyncio.create_task(run_until_idle(app))

    async def progress() -> Any:
        return (await handle.find()).progress

    found = await until(progress)
    assert (round(found.fraction, 3), found.message, found.attempt, found.fence) == (0.4, "four of ten", 1, 1)
    enough.set()
    assert await working == {"succeeded": 1}
    assert (await handle.find()).progress is None
    assert await connection.fetchval("select count(*) from progress") == 0


async def test_progress_of_a_failed_attempt_stays_until_the_next_one_says_more(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=AT_ONCE)
    async def crunch(context: Context) -> None:
        if context.attempt == 1:
            context.progress(0.5, "half")
            await noted(frozen_app, context)
        raise ValueError

    handle = await crunch.submit()
    await run_until_idle(frozen_app)

    progress = (await handle.find()).progress
    assert progress is not None
    assert (progress.fraction, progress.attempt) == (0.5, 1)


@pytest.mark.parametrize("fraction", [-0.01, 1.01, float("nan"), float("inf"), "0.5", None, True, 10**400])
async def test_progress_is_a_number_from_0_to_1(frozen_app: Mainspring, fraction: Any) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=1))
    async def crunch(context: Context) -> None:
        context.progress(fraction)

    handle = await crunch.submit()
    await run_until_idle(frozen_app)

    with pytest.raises(RunFailed, match="must be a number from 0 to 1"):
        await handle.result(timeout=20)


async def test_a_message_is_bounded_and_cleaned(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=AT_ONCE)
    async def crunch(context: Context) -> None:
        context.progress(1, HOSTILE + "x" * 100_000)
        await noted(frozen_app, context)
        raise ValueError

    handle = await crunch.submit()
    await run_until_idle(frozen_app)

    progress = (await handle.find()).progress
    assert progress is not None
    assert len(progress.message) == 500
    assert progress.message.startswith("a\ufffdb \ufffd \x1b[31mx")


# ── log lines ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_lines_of_logging_belong_to_the_attempt_that_wrote_them(
    frozen_app: Mainspring, logger: logging.Logger, clock: FrozenClock
) -> None:
    @frozen_app.job
    async def speak(name: str) -> None:
        logger.info("I am %s", name)
        await asyncio.sleep(0)  # the others' turn
        await asyncio.gather(asyncio.to_thread(logger.warning, "thread of %s", name), say_more(name))

    async def say_more(name: str) -> None:
        logger.debug("unheard")
        logger.info("task of %s", name)

    @frozen_app.job
    def speak_in_thread(name: str) -> None:
        logger.error("I am %s", name)

    handles = [await speak.submit(name) for name in "abc"] + [await speak_in_thread.submit("d")]
    await run_until_idle(frozen_app)

    for handle, name in zip(handles[:3], "abc", strict=True):
        lines = await handle.logs()
        assert lines[0].text == f"I am {name}"
        assert {line.text for line in lines[1:]} == {f"thread of {name}", f"task of {name}"}
        assert {(line.attempt, line.fence, line.logger, line.at) for line in lines} == {(1, 1, logger.name, clock.at)}
    assert [(line.level, line.text) for line in await handles[3].logs()] == [("ERROR", "I am d")]


async def test_each_attempt_has_its_own_lines(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=AT_ONCE)
    async def fail(context: Context) -> None:
        context.log(f"try {context.attempt}", level="WARNING")
        raise ValueError

    handle = await fail.submit()
    await run_until_idle(frozen_app, travel=True)

    assert [(line.text, line.level) for line in await handle.logs()] == [(f"try {n}", "WARNING") for n in (1, 2, 3)]
    assert [line.text for line in await handle.logs(attempt=2)] == ["try 2"]


async def test_lines_are_seen_while_the_run_goes_on(
    app: Mainspring, logger: logging.Logger, going_on: list[asyncio.Task[Any]]
) -> None:
    @app.job
    async def speak(context: Context) -> None:
        logger.info("one")
        context.log("two")
        await asyncio.Event().wait()

    handle = await speak.submit()
    going_on.append(asyncio.create_task(run_until_idle(app)))

    lines = await until(handle.logs)
    assert [(line.logger, line.text) for line in lines] == [(logger.name, "one"), ("context", "two")]
    assert (await handle.find()).state == "running"


async def test_an_attempt_that_finishes_itself_keeps_its_last_lines_too(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        context.log("paying")
        async with connection.transaction():
            await context.finish(connection, "paid")
        context.log("paid")

    handle = await pay.submit()
    await run_until_idle(frozen_app)

    assert (await handle.find()).attempts[-1].result == "paid"
    assert [line.text for line in await handle.logs()] == ["paying", "paid"]


async def test_a_traceback_is_kept_with_its_line(frozen_app: Mainspring, logger: logging.Logger) -> None:
    @frozen_app.job
    async def speak() -> None:
        try:
            raise ValueError("no such thing")
        except ValueError:
            logger.exception("it went wrong")

    handle = await speak.submit()
    await run_until_idle(frozen_app)

    (line,) = await handle.logs()
    assert line.text.startswith("it went wrong\nTraceback")
    assert line.text.endswith("ValueError: no such thing")


def unconfigure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do without the handlers of pytest, which fail a test for a bad line."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])


async def test_a_line_that_cannot_be_formatted_costs_nothing_but_itself(
    frozen_app: Mainspring, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    unconfigure(monkeypatch)

    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no")

    @frozen_app.job
    async def speak(context: Context) -> str:
        logger.info("%d apples", "many")
        logger.info("%s", Hostile())
        logger.info(Hostile())
        context.log(Hostile())
        logger.info(HOSTILE)
        return "well"

    handle = await speak.submit()
    await run_until_idle(frozen_app)

    assert await handle.result(timeout=20) == "well"
    texts = [line.text for line in await handle.logs()]
    assert texts[0] == "(this line cannot be formatted) '%d apples'"
    assert texts[3:] == ["(its text cannot be had)", "a\ufffdb \ufffd \x1b[31m"]


async def test_the_log_of_an_attempt_has_a_largest_size_and_says_when_it_is_reached(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job
    async def babble(context: Context) -> None:
        for n in range(1_000):
            context.log(f"{n} " + "é" * 100_000)

    handle = await babble.submit()
    await run_until_idle(frozen_app)

    lines = await handle.logs()
    assert lines[-1].text.startswith("… truncated: an attempt keeps 262,144 bytes of log")
    assert [line.text[:2].strip() for line in lines[:-1]] == [str(n) for n in range(len(lines) - 1)]
    assert max(len(line.text) for line in lines) == 8_000
    assert await connection.fetchval("select sum(octet_length(lines::text)) from log") < MAX_LOG_BYTES + 10_000


async def test_capturing_can_be_turned_off_or_down_for_an_application_and_for_a_job(
    url: str, logger: logging.Logger
) -> None:
    app = Mainspring(url, capture_logs="off")

    def speak() -> None:
        logger.debug("quiet")
        logger.warning("loud")

    jobs = [
        app.job(name="silent")(speak),
        app.job(name="loud", capture_logs="warning")(speak),
        app.job(name="all", capture_logs="DEBUG")(speak),
    ]
    handles = [await job.submit() for job in jobs]
    await run_until_idle(app)

    assert [[line.text for line in await handle.logs()] for handle in handles] == [[], ["loud"], ["quiet", "loud"]]
    await app.close()


@pytest.mark.parametrize("level", ["chatty", 7, None, ""])
def test_an_unknown_level_is_refused(level: Any) -> None:
    with pytest.raises(InvalidInput, match="must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL, OFF") as refused:
        Mainspring("postgresql://nowhere", capture_logs=level)

    assert refused.value.code == "invalid-capture-logs"


async def test_what_is_said_outside_of_attempts_or_after_them_is_not_kept(
    frozen_app: Mainspring, logger: logging.Logger, connection: Connection
) -> None:
    later: list[asyncio.Task[None]] = []
    is_over = asyncio.Event()

    async def linger() -> None:
        await is_over.wait()
        logger.info("too late")

    @frozen_app.job
    async def leave_a_task() -> None:
        later.append(asyncio.create_task(linger()))

    handle = await leave_a_task.submit()
    logger.info("outside")
    await run_until_idle(frozen_app)
    is_over.set()
    await later[0]

    assert await handle.logs() == []
    assert await connection.fetchval("select count(*) from log") == 0


async def test_where_logging_is_not_configured_lines_are_kept_and_warnings_printed_as_before(
    frozen_app: Mainspring, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unconfigure(monkeypatch)
    logger = logging.getLogger("shop.nobody_configured_this")

    @frozen_app.job
    async def speak() -> None:
        logger.debug("unheard")
        logger.info("kept")
        logger.warning("kept and printed")

    handle = await speak.submit()
    await run_until_idle(frozen_app)

    assert [line.text for line in await handle.logs()] == ["kept", "kept and printed"]
    assert capsys.readouterr().err == "kept and printed\n"
    assert logging.getLogger().level == logging.WARNING


async def test_the_logging_configuration_is_as_it_was_afterwards(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    root = logging.getLogger()
    before = root.level, list(root.handlers)
    await nothing.submit()
    await run_until_idle(frozen_app)

    assert (root.level, root.handlers) == before


# ── checkpoints ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_the_next_attempt_gets_what_the_last_one_stored(
    frozen_app: Mainspring, connection: Connection, kind: str
) -> None:
    got: list[Any] = []

    @frozen_app.job(retry=AT_ONCE)
    async def count(context: Context) -> str:
        got.append(context.checkpointed)
        await context.checkpoint({"step": context.attempt})
        return finish(context)

    @frozen_app.job(retry=AT_ONCE)
    def count_in_thread(context: Context) -> str:
        got.append(context.checkpointed)
        context.checkpoint_sync({"step": 0})
        context.checkpoint_sync({"step": context.attempt})
        return finish(context)

    def finish(context: Context) -> str:
        if context.attempt < 3:
            raise ValueError
        return "done"

    handle = await (count if kind == "async" else count_in_thread).submit()
    await run_until_idle(frozen_app, travel=True)

    assert await handle.result(timeout=20) == "done"
    assert got == [None, {"step": 1}, {"step": 2}]
    assert await connection.fetchval("select count(*) from checkpoint") == 0


async def test_a_dead_letter_keeps_its_checkpoint(frozen_app: Mainspring, connection: Connection) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=1))
    async def fail(context: Context) -> None:
        await context.checkpoint([1, 2])
        raise ValueError

    handle = await fail.submit()
    await run_until_idle(frozen_app)
    await Sweeper(lanes=8).step(connection)

    assert await reports.checkpoint_of(connection, handle.id) == b"[1,2]"


async def test_many_checkpoints_at_once_share_their_commits(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=AT_ONCE)
    async def count(context: Context, n: int) -> int:
        if context.checkpointed is not None:
            return context.checkpointed["n"] * 10  # type: ignore[no-any-return]
        await asyncio.gather(*(context.checkpoint({"n": n, "round": each}) for each in range(3)))
        raise ValueError

    handles = await count.submit_many([{"n": n} for n in range(50)])
    await run_until_idle(frozen_app, travel=True)

    assert [await handle.result(timeout=20) for handle in handles] == [n * 10 for n in range(50)]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("x" * 65_536, "checkpoint-too-large"),
        (object(), "checkpoint-not-json"),
        ("a\x00b", "checkpoint-not-storable"),
        ([float("nan")], "checkpoint-not-json"),
    ],
)
async def test_a_checkpoint_is_small_storable_json(frozen_app: Mainspring, value: Any, code: str) -> None:
    codes = []

    @frozen_app.job
    async def store(context: Context) -> None:
        try:
            await context.checkpoint(value)
        except InvalidInput as error:
            codes.append(error.code)

    await store.submit()
    await run_until_idle(frozen_app)

    assert codes == [code]


async def test_the_blocking_twin_is_refused_where_it_would_block_the_loop(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=1))
    async def store(context: Context) -> None:
        context.checkpoint_sync(1)

    handle = await store.submit()
    await run_until_idle(frozen_app)

    with pytest.raises(RunFailed, match=r"await context\.checkpoint"):
        await handle.result(timeout=20)


async def test_a_checkpoint_is_refused_once_the_run_is_another_workers(
    app: Mainspring, connection: Connection, going_on: list[asyncio.Task[Any]]
) -> None:
    refused: asyncio.Future[LeaseLost] = asyncio.get_running_loop().create_future()
    taken = asyncio.Event()

    @app.job
    async def store(context: Context) -> None:
        await context.checkpoint("mine")
        started.set()
        await taken.wait()
        try:
            await context.checkpoint("stale")
        except LeaseLost as error:
            refused.set_result(error)

    started = asyncio.Event()
    handle = await store.submit()
    going_on.append(asyncio.create_task(run_until_idle(app)))
    await started.wait()
    await connection.execute("update lease set worker_id = gen_random_uuid()")
    taken.set()

    error = await refused
    assert error.code == "lease-lost"
    assert str(handle.id) in str(error)
    assert "fence 1" in str(error)
    assert await reports.checkpoint_of(connection, handle.id) == b'"mine"'


async def test_storing_checkpoints_and_settling_never_wait_for_each_other_in_a_circle(
    app: Mainspring, database: Database, connection: Connection, going_on: list[asyncio.Task[Any]]
) -> None:
    """Both lock several leases. The one that stores is first in line for the first; the other has nothing by then."""
    job = app.job(_nothing)
    await job.submit_many([{}] * 20)
    worker, lane = uuid4(), await connection.fetchval("select lane from ready group by lane having count(*) > 1")
    settling, storing, blocking = [await database.connect(raw_time=True) for _ in range(3)]
    works = [await _claimed_alone(settling, lane, worker, UUID(int=number)) for number in (1, 2)]
    places = [LeasedAttempt(lane, work.lease.id, 0, work.row["id"], 1, 1) for work in works]

    async with blocking.transaction():
        await blocking.execute("select from lease where id = $1 for update", works[0].lease.id)
        stored = reports.store_checkpoints(storing, worker, [reports.Checkpoint(place, b"1") for place in places])
        going_on.append(asyncio.create_task(stored))
        await until(lambda: _has_waiting(connection, 1))
        settled = leases.settle(settling, worker, [work.given_back(NOW) for work in reversed(works)])
        going_on.append(asyncio.create_task(settled))
        await until(lambda: _has_waiting(connection, 2))

    assert len(await going_on[0]) == 2
    assert (await going_on[1]).accepted == 2
    for each in (settling, storing, blocking):
        await each.close()


async def _nothing() -> None:
    pass


async def _claimed_alone(connection: Connection, lane: int, worker: UUID, lease: UUID) -> Work:
    await registered_worker(connection, worker)
    rows = await leases.claim(
        connection,
        lane=lane,
        line=await connection.fetchval("select id from line"),
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=1,
        lease_id=lease,
        worker_id=worker,
    )
    return Work(rows[0], leases.Lease(lane, lease, 1), 0, 1, worker, NOW, None)


async def _has_waiting(connection: Connection, sessions: int) -> bool:
    query = (
        "select count(distinct pid) from pg_locks where not granted and pid in"
        " (select pid from pg_stat_activity where datname = current_database())"
    )
    return bool(await connection.fetchval(query) >= sessions)


async def test_progress_and_lines_are_refused_once_the_run_is_another_workers(
    app: Mainspring, connection: Connection, going_on: list[asyncio.Task[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, over = asyncio.Event(), asyncio.Event()
    sent: list[float] = []
    note_progress = reports.note_progress

    async def note_and_tell(connection: Any, worker_id: Any, words: Any) -> None:
        await note_progress(connection, worker_id, words)
        sent.extend(word.fraction for word in words)

    monkeypatch.setattr(reports, "note_progress", note_and_tell)

    @app.job
    async def speak(context: Context) -> None:
        context.progress(0.1)
        context.log("mine")
        await taken.wait()
        context.progress(0.9)
        context.log("stale")
        over.set()
        await asyncio.Event().wait()

    handle = await speak.submit()
    going_on.append(asyncio.create_task(run_until_idle(app)))
    await until(handle.logs)
    await until(lambda: connection.fetchval("select count(*) from progress"))
    await connection.execute("update lease set worker_id = gen_random_uuid()")
    taken.set()
    await over.wait()
    await until(lambda: 0.9 in sent)  # the lines go first

    assert [line.text for line in await handle.logs()] == ["mine"]
    assert await connection.fetchval("select fraction from progress") == pytest.approx(0.1)


async def test_reports_wait_for_a_database_that_hangs_up(app: Mainspring, connection: Connection) -> None:
    hung_up: list[int] = []

    @app.job
    async def store(context: Context) -> int:
        for n in range(20):
            context.log(f"step {n}")
            context.progress(n / 20)
            await context.checkpoint(n)
            if n % 4 == 0:
                hung_up.append(await hang_up())
        return 20

    async def hang_up() -> int:
        """What reports are written with is idle, since a checkpoint was just stored: the next one finds it gone."""
        return len(
            await connection.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name like 'mainspring client%'"
            )
        )

    handle = await store.submit()
    assert await run_until_idle(app, timeout=100) == {"succeeded": 1}

    assert all(hung_up), "there was something to hang up"
    assert [line.text for line in await handle.logs()] == [f"step {n}" for n in range(20)]


# ── sweeping ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_run_left_that_ended_elsewhere_is_swept(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    @frozen_app.job(retry=AT_ONCE)
    async def fail(context: Context) -> None:
        context.progress(0.5)
        await context.checkpoint(1)
        await noted(frozen_app, context)
        raise ValueError

    cancelled, waiting = await fail.submit(), await fail.submit()
    await run_until_idle(frozen_app)
    await cancelled.cancel()
    assert await left(connection, cancelled) == (1, 1)

    await Sweeper(lanes=8).step(connection)
    assert await left(connection, cancelled) == (1, 1), "too fresh: someone may be about to put it somewhere"

    await clock.advance(timedelta(minutes=11))
    await Sweeper(lanes=8).step(connection)
    assert await left(connection, cancelled) == (0, 0)
    assert await left(connection, waiting) == (1, 1)


async def left(connection: Connection, handle: Handle[Any]) -> tuple[int, int]:
    counts = [
        await connection.fetchval(f"select count(*) from {table} where run_id = $1", handle.id)  # noqa: S608  our own names
        for table in ("progress", "checkpoint")
    ]
    return counts[0], counts[1]


# ── watching ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_watching_shows_everything_and_ends_with_the_run(
    app: Mainspring, going_on: list[asyncio.Task[Any]]
) -> None:
    was_seen = asyncio.Semaphore(0)

    @app.job
    async def speak(context: Context) -> str:
        for n in range(3):
            context.log(f"line {n}")
            context.progress(n / 2)
            await was_seen.acquire()
        context.log("last words")
        return "well"

    handle = await speak.submit()
    going_on.append(asyncio.create_task(run_until_idle(app)))

    sightings = []
    async for sighting in handle.watch():
        sightings.append(sighting)
        for _ in sighting.lines:
            was_seen.release()

    assert [line.text for sighting in sightings for line in sighting.lines] == [
        "line 0",
        "line 1",
        "line 2",
        "last words",
    ]
    assert [sighting.is_over for sighting in sightings] == [False] * (len(sightings) - 1) + [True]
    assert sightings[-1].run.attempts[-1].result == "well"
    assert any(sighting.run.progress is not None for sighting in sightings)


async def test_watching_a_dead_run_ends_at_once(frozen_app: Mainspring) -> None:
    @frozen_app.job(retry=RetryPolicy(max_attempts=1))
    async def fail() -> None:
        raise ValueError

    handle = await fail.submit()
    await run_until_idle(frozen_app)

    (sighting,) = [sighting async for sighting in handle.watch()]
    assert sighting.run.state == "dead"
