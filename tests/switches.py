"""Single mechanisms that a test switches off in its own process, so that a control can show that it would notice.

`@with_and_without("confirmation")` runs a test as it is and, if there is a switch of that name, once more without the
mechanism: the fixture `without` is then its name, and the test says what must be different.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from mainspring.store import submissions
from mainspring.store.connection import transaction
from mainspring.store.database import SETTINGS
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mainspring.store.connection import Connection


def _no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is answered at once, whether or not a standby has it."""
    monkeypatch.setattr(load("runs/confirm"), "text", "select from lane where lane = $1::smallint and false")
    found = "where verdict = 'new' or set_config('synchronous_commit', 'local', true) is not null"
    monkeypatch.setattr(submissions.SUBMIT, "text", f"{submissions.SUBMIT.text} {found}")
    monkeypatch.setattr(submissions, "SUBMIT_IN_LANE", f"{submissions.SUBMIT_IN_LANE} {found}")


def _no_late_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wake-ups are part of the transaction that they tell of."""

    @asynccontextmanager
    async def waking(connection: Connection) -> AsyncIterator[None]:
        async with transaction(connection):
            yield
            await connection.execute("set local lock_timeout = '20ms'; notify mainspring_later")

    for module in ("accepting", "runs", "run_changes", "dead"):
        monkeypatch.setattr(f"mainspring.control.{module}.transaction", waking)
    woken = f"{submissions.SUBMIT_IN_LANE}, pg_notify('mainspring_later', '')"
    monkeypatch.setattr(submissions, "SUBMIT_IN_LANE", woken)


SWITCHES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "confirmation": _no_confirmation,
    "late_wake_ups": _no_late_wake_ups,
}


def with_and_without(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("without", ["", name] if name in SWITCHES else [""], indirect=True)


BOUNDS = {
    "mainspring.control.accepting.STATEMENT_SECONDS": 3.0,
    "mainspring.control.accepting.ACCEPT_SECONDS": 6.0,
    "mainspring.control.submitter.KEY_SECONDS": 2.0,
}


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those give up soon who would wait long for what does not come in this test."""
    for name, seconds in BOUNDS.items():
        monkeypatch.setattr(name, seconds)
    monkeypatch.setitem(SETTINGS, "lock_timeout", "500ms")
