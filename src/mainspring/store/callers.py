"""A caller's own connection: asyncpg, psycopg or SQLAlchemy, told apart by where their classes come from.

All of them run the same SQL function with two text parameters; only the spelling of parameters differs. Nothing of
these libraries is imported here before a caller has brought it.
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
        items = items_as_json(tenant_id, ids, runs)
        while True:
            answers = verdicts(await _settled(self._call(items, list(wake_ups))))
            if not _is_any_gone(answers):
                return answers

    def submit_sync(
        self, tenant_id: int, ids: Sequence[UUID], runs: Sequence[NewRun], wake_ups: Sequence[str]
    ) -> list[Verdict]:
        items = items_as_json(tenant_id, ids, runs)
        while True:
            answers = verdicts(_checked_blocking(self._call(items, list(wake_ups))).fetchall())
            if not _is_any_gone(answers):
                return answers

    def _call(self, items: str, wake_ups: list[str]) -> Any:
        if self._driver == "asyncpg":
            return self._connection.fetch(SUBMIT.format("$1", "$2"), items, wake_ups)
        if self._driver == "psycopg":
            from psycopg.rows import tuple_row  # the caller's own row factory may make anything of a row

            cursor = self._connection.cursor(row_factory=tuple_row)
            return cursor.execute(SUBMIT.format("%s", "%s"), (items, wake_ups))
        from sqlalchemy import text  # the caller has it: it is their connection

        statement = text(SUBMIT.format("cast(:items as text)", "cast(:wake_ups as text[])"))
        return self._connection.execute(statement, {"items": items, "wake_ups": wake_ups})


def _checked_blocking(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidInput(
            "An async connection was given to a blocking call.",
            code="connection-is-async",
            hint="Use `await job.submit(…)`, or give a blocking connection.",
            field="connection",
        )
    return answer


def _is_any_gone(answers: Sequence[Verdict]) -> bool:
    """Whether a key was forgotten just now. Only a run that is submitted alone has one, so all is to be done again."""
    return any(each.verdict == "gone" for each in answers)


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
