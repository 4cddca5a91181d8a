"""A caller's own connection: asyncpg, psycopg or SQLAlchemy, told apart by where their classes come from.

All of them run the same SQL function with two text parameters; only the spelling of parameters differs. Nothing of
these libraries is imported here.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput
from mainspring.store.submissions import SUBMIT, Verdict, items_as_json, verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.model.run import NewRun


class CallersConnection:
    """Runs `submit` inside whatever transaction the caller has open."""

    def __init__(self, connection: Any, driver: str) -> None:
        self._connection = connection
        self._driver = driver

    async def submit(
        self, tenant_id: int, ids: Sequence[UUID], runs: Sequence[NewRun], wake_ups: Sequence[str]
    ) -> list[Verdict]:
        answer = self._call(items_as_json(tenant_id, ids, runs), list(wake_ups))
        return verdicts(await _settled(answer))

    def submit_sync(
        self, tenant_id: int, ids: Sequence[UUID], runs: Sequence[NewRun], wake_ups: Sequence[str]
    ) -> list[Verdict]:
        answer = self._call(items_as_json(tenant_id, ids, runs), list(wake_ups))
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise InvalidInput(
                "An async connection was given to a blocking call.",
                code="connection-is-async",
                hint="Use `await job.submit(…)`, or give a blocking connection.",
                field="connection",
            )
        return verdicts(answer.fetchall())

    def _call(self, items: str, wake_ups: list[str]) -> Any:
        if self._driver == "asyncpg":
            return self._connection.fetch(SUBMIT.format("$1", "$2"), items, wake_ups)
        if self._driver == "psycopg":
            return self._connection.execute(SUBMIT.format("%s", "%s"), (items, wake_ups))
        from sqlalchemy import text  # the caller has it: it is their connection

        statement = text(SUBMIT.format("cast(:items as text)", "cast(:wake_ups as text[])"))
        return self._connection.execute(statement, {"items": items, "wake_ups": wake_ups})


async def _settled(answer: Any) -> Any:
    """The rows behind whatever a driver's call returned."""
    if inspect.isawaitable(answer):
        answer = await answer
    fetch_all = getattr(answer, "fetchall", None)
    if fetch_all is None:
        return answer
    rows = fetch_all()
    return await rows if inspect.isawaitable(rows) else rows


def callers_connection(connection: object) -> CallersConnection:
    if isinstance(connection, CallersConnection):
        return connection
    for kind in type(connection).__mro__:
        driver = kind.__module__.partition(".")[0]
        if driver in ("asyncpg", "psycopg", "sqlalchemy"):
            return CallersConnection(connection, driver)
    raise InvalidInput(
        f"connection is a {type(connection).__module__}.{type(connection).__qualname__}.",
        code="invalid-connection",
        hint="Give an open asyncpg, psycopg or SQLAlchemy connection or session.",
        field="connection",
    )
