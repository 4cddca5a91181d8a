"""Waiting for results: each waiter is told the truth about its own run, whatever happens to the others."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from tests.waiting import until

from mainspring import Mainspring
from mainspring.errors import InvalidInput, MainspringError, ResultTimeout, RunNotFound
from mainspring.model.ids import run_id_bytes
from mainspring.store import history
from mainspring.store.connection import transaction
from mainspring.testing import FrozenClock, run_until_idle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Connection

PATIENCE = 60.0
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
YEAR_10889 = UUID("ffffffff-ffff-8000-8000-000000000000")


def unknown_id(made_at: datetime | None = None) -> UUID:
    """An id that nobody has given to a run."""
    return UUID(bytes=run_id_bytes(1, 0, made_at or datetime.now(UTC))[0])


@pytest.fixture
def double(app: Mainspring) -> Any:
    @app.job
    async def double(n: int) -> int:
        return 2 * n

    return double


class Looks:
    """Sees each look at the database, and lets it fail if it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.errors: list[BaseException] = []
        self.always: BaseException | None = None
        self.seen: list[str | None] = []
        self._look = history.ends_of
        monkeypatch.setattr(history, "ends_of", self._ends_of)

    async def _ends_of(self, connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int) -> Any:
        self.count += 1
        self.seen.append(WHOSE.get())
        if self.always is not None:
            raise self.always
        if self.errors:
            raise self.errors.pop(0)
        return await self._look(connection, run_ids, tenant_id=tenant_id)

    async def more(self, count: int = 2) -> None:
        """Wait until so many more have begun: of two, one is over and began after this was asked."""
        wanted = self.count + count
        await until(lambda: self.count >= wanted)


WHOSE: ContextVar[str | None] = ContextVar("whose", default=None)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_id_as_text_is_as_good_as_any(app: Mainspring, double: Any) -> None:
    handle = await double.submit(21)
    await run_until_idle(app)

    assert await app.runs.result(str(handle.id), timeout=PATIENCE) == 42


@pytest.mark.parametrize("nonsense", ["nonsense", "", None, 7, UUID(int=7), YEAR_10889])
async def test_nonsense_is_refused_and_harms_nobody_who_waits(app: Mainspring, double: Any, nonsense: Any) -> None:
    handle = await double.submit(21)
    waiting = asyncio.create_task(handle.result(timeout=PATIENCE))
    await asyncio.sleep(0)

    with pytest.raises(InvalidInput, match="is not a run id"):
        await app.runs.result(nonsense)
    await run_until_idle(app)
    assert await waiting == 42


async def test_an_unknown_id_is_said_to_be_one_when_the_time_is_over(app: Mainspring) -> None:
    for timeout in (0, 0.02):
        with pytest.raises(RunNotFound, match="There is no run"):
            await app.runs.result(unknown_id(), timeout=timeout)


async def test_an_unknown_id_that_is_old_is_said_to_be_one_at_once(app: Mainspring) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(RunNotFound):
            await app.runs.result(unknown_id(LONG_AGO))


async def test_a_young_id_may_still_be_inside_an_open_transaction(
    app: Mainspring, double: Any, connection: Any, looks: Looks
) -> None:
    async with transaction(connection):
        handle = await double.options(connection=connection).submit(21)
        waiting = asyncio.create_task(handle.result())
        await looks.more()
        assert not waiting.done()

    await run_until_idle(app)
    async with asyncio.timeout(PATIENCE):
        assert await waiting == 42


async def test_an_id_that_grew_old_and_is_still_nowhere_is_given_up(url: str, looks: Looks) -> None:
    clock = FrozenClock()
    async with Mainspring(url, clock=clock) as app:
        waiting = asyncio.create_task(app.runs.result(unknown_id(clock.at)))
        await looks.more()
        assert not waiting.done(), "it is young"

        await clock.advance(timedelta(seconds=61))

        async with asyncio.timeout(PATIENCE):
            with pytest.raises(RunNotFound):
                await waiting


async def test_an_old_run_that_is_there_is_waited_for(url: str, looks: Looks) -> None:
    clock = FrozenClock()
    async with Mainspring(url, clock=clock) as app:

        @app.job
        async def nothing() -> str:
            return "done"

        handle = await nothing.submit()
        await clock.advance(timedelta(hours=1))
        waiting = asyncio.create_task(handle.result())
        await looks.more()
        assert not waiting.done()

        await run_until_idle(app)
        assert await waiting == "done"


# ── timeouts ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_one_look_always_happens_whatever_the_timeout(app: Mainspring, double: Any) -> None:
    handle = await double.submit(21)
    with pytest.raises(ResultTimeout, match="has not ended after 0 s"):
        await handle.result(timeout=0)

    await run_until_idle(app)
    assert await handle.result(timeout=0) == 42
    assert await handle.result(timeout=1e-9) == 42


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "5", True])
async def test_a_timeout_that_is_none_is_refused(double: Any, timeout: Any) -> None:
    handle = await double.submit(21)

    with pytest.raises(InvalidInput, match="0 or more") as caught:
        await handle.result(timeout=timeout)
    assert caught.value.code == "invalid-timeout"


# ── looks that fail ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [RuntimeError("?"), ValueError(), KeyError(), asyncio.CancelledError(), OSError()])
async def test_the_poller_outlives_every_error(
    app: Mainspring, double: Any, looks: Looks, error: BaseException
) -> None:
    looks.errors = [error, error]
    handles = [await double.submit(n) for n in range(3)]
    waiting = [asyncio.create_task(handle.result(timeout=PATIENCE)) for handle in handles]

    await run_until_idle(app)

    assert await asyncio.gather(*waiting) == [0, 2, 4]
    assert looks.count >= 3


async def test_nobody_is_told_that_a_run_has_not_ended_by_a_look_that_failed(
    app: Mainspring, double: Any, looks: Looks
) -> None:
    handle = await double.submit(21)
    await run_until_idle(app)
    looks.always = RuntimeError("the moon is in the way")

    with pytest.raises(ResultTimeout, match="could not be found out within 0 s: the moon is in the way"):
        await handle.result(timeout=0)


async def test_a_row_that_cannot_be_read_is_told_to_who_waits_for_it_only(
    app: Mainspring, double: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = await double.submit(21), await double.submit(22)
    await run_until_idle(app)
    look = history.ends_of

    async def ends_of(connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int) -> Any:
        rows = [dict(row) for row in await look(connection, run_ids, tenant_id=tenant_id)]
        rows.sort(key=lambda row: row["run_id"] != bad.id)
        return [row | ({"state": "transcended"} if row["run_id"] == bad.id else {}) for row in rows]

    monkeypatch.setattr(history, "ends_of", ends_of)
    results = await asyncio.gather(bad.result(timeout=PATIENCE), good.result(timeout=PATIENCE), return_exceptions=True)

    assert isinstance(results[0], ValueError)
    assert results[1] == 42


async def test_the_poller_does_not_work_in_the_context_of_whoever_came_first(
    app: Mainspring, double: Any, looks: Looks
) -> None:
    """Else what it logs would be kept as log lines of that handler's run."""
    handle = await double.submit(21)
    await run_until_idle(app)
    WHOSE.set("the first one's")

    await handle.result(timeout=PATIENCE)

    assert set(looks.seen) == {None}


async def test_one_waiter_that_gives_up_leaves_the_others_waiting(app: Mainspring, double: Any, looks: Looks) -> None:
    handle = await double.submit(21)
    first, second = (asyncio.create_task(handle.result()) for _ in range(2))
    await looks.more()
    first.cancel()

    await run_until_idle(app)

    assert await second == 42
    assert first.cancelled()


async def test_whoever_still_waits_when_the_application_is_closed_is_told(url: str, looks: Looks) -> None:
    async with Mainspring(url) as app:

        @app.job
        async def nothing() -> None: ...

        waiting = asyncio.create_task((await nothing.submit()).result())
        await looks.more()

    with pytest.raises(MainspringError, match="was closed meanwhile") as caught:
        await waiting
    assert caught.value.code == "application-closed"
