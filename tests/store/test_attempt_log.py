"""The worker's log says what history says about attempts."""

from __future__ import annotations

import errno
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from mainspring import Context, RetryPolicy
from mainspring.errors import RunFailed
from mainspring.testing import run_until_idle
from mainspring.worker import attempt_log

from .working import working

if TYPE_CHECKING:
    from mainspring import Mainspring

PATIENCE = 60.0
TWICE = RetryPolicy(max_attempts=2, first_delay=timedelta(0))


def about_runs(lines: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (line["event"], line["job"], line["attempt"], line["error"], line["attempts_left"])
        for line in lines
        if line["log_level"] != "debug" and "run" in line
    ]


async def test_each_failed_attempt_has_a_line_and_the_last_says_that_the_run_is_dead(app: Mainspring) -> None:
    @app.job(retry=TWICE)
    def send() -> None:
        raise ConnectionError("no route to host")

    handle = await send.submit()
    with capture_logs() as lines:
        await run_until_idle(app)

    with pytest.raises(RunFailed):
        await handle.result(timeout=PATIENCE)
    assert about_runs(lines) == [
        ("an attempt failed", "send", 1, "ConnectionError: no route to host", 1),
        ("a run is dead", "send", 2, "ConnectionError: no route to host", 0),
    ]
    assert {line["run"] for line in lines if "run" in line} == {str(handle.id)}


async def test_a_run_that_finished_in_its_own_transaction_is_no_failure(app: Mainspring, url: str) -> None:
    """The worker settles it as not finished, which the database knows better."""

    @app.job(delivery="transactional", retry=TWICE)
    async def book(context: Context, is_finished: bool) -> None:
        if is_finished:
            async with own.transaction():
                await context.finish(own)

    own = await asyncpg.connect(url)
    await book.submit(is_finished=True)
    with capture_logs() as lines:
        await run_until_idle(app)
    assert about_runs(lines) == []

    await book.submit(is_finished=False)
    with capture_logs() as lines:
        await run_until_idle(app)
    assert [line[0] for line in about_runs(lines)] == ["an attempt failed", "a run is dead"]
    await own.close()


async def test_a_log_that_cannot_be_written_is_not_worth_the_worker(
    app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    @app.job(retry=TWICE)
    async def send() -> None:
        raise ConnectionError("no route to host")

    handle = await send.submit()
    monkeypatch.setattr(attempt_log, "_about", fail)
    async with working(app, keeper=True):
        with pytest.raises(RunFailed):
            await handle.result(timeout=PATIENCE)
