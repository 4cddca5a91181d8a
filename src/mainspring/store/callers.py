"""A caller's own connection: asyncpg, psycopg or SQLAlchemy, told apart by where their classes come from.

All of them run the same SQL functions with text parameters; only the spelling of parameters differs. Nothing of these
libraries is imported here before a caller has brought it.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput, LeaseLost, MainspringError, RunCancelled
from mainspring.store.dependencies import items_by_lane, refuse_unknown
from mainspring.store.failures import said_by_server
from mainspring.store.submissions import Verdict, callers_statement, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from mainspring.model.run import NewRun

# Everything as text: what a parameter's type would be is something drivers disagree about.
FINISH = """select mainspring.finish_run(
    {}::text::uuid, {}::text::int, {}::text::int, {}::text::uuid, {}::text::int, {}::text::uuid, {}::text::timestamptz,
    {}::text)"""
ADD_DEPENDENCIES = """select * from mainspring.add_dependencies(
    {}::text::smallint, {}::text::int, {}::text::jsonb)"""
LEASE_LOST, ASKED_TO_STOP = "MS001", "MS002"  # the error codes of finish_run
NO_TRANSACTION = "25P01"  # a savepoint outside of a transaction: SQLAlchemy's AUTOCOMMIT
# A database without our schema, or with an older one, or a user who may not use it.
OF_OUR_SCHEMA = ("3F000", "42883", "42P01", "42501")
_PSYCOPG_IDLE = 0  # psycopg.pq.TransactionStatus.IDLE


class CallersConnection:
    """Submits or finishes runs inside whatever transaction the caller has open."""

    def __init__(self, connection: Any, driver: str) -> None:
        self._connection = connection
        self._driver = driver

    async def submit(self, ids: Sequence[UUID], runs: Sequence[NewRun], known: str) -> list[Verdict]:
        statement, values = callers_statement(ids, runs, known)
        with our_refusals():
            for lane, items in items_by_lane(ids, runs):
                unknown = await _settled(self.call(ADD_DEPENDENCIES, str(lane), str(runs[0].tenant_id), items))
                refuse_unknown(row[0] for row in unknown)
            while True:
                answers = verdicts(await _settled(self.call(statement, *values)), runs)
                if not _is_any_gone(answers):
                    return answers

    def submit_sync(self, ids: Sequence[UUID], runs: Sequence[NewRun], known: str) -> list[Verdict]:
        statement, values = callers_statement(ids, runs, known)
        with our_refusals():
            for lane, items in items_by_lane(ids, runs):
                added = self.call(ADD_DEPENDENCIES, str(lane), str(runs[0].tenant_id), items)
                refuse_unknown(row[0] for row in _checked_blocking(added).fetchall())
            while True:
                answers = verdicts(_checked_blocking(self.call(statement, *values)).fetchall(), runs)
                if not _is_any_gone(answers):
                    return answers

    async def execute(self, statement: str, *values: str) -> None:
        with our_refusals():
            await _settled(self.call(statement, *values))

    def execute_sync(self, statement: str, *values: str) -> None:
        with our_refusals():
            _checked_blocking(self.call(statement, *values)).fetchall()

    async def finish(self, *values: str | None) -> None:
        """Finish a run; raises LeaseLost or RunCancelled, and then nothing of this transaction will happen."""
        self.check_transaction()
        with our_refusals(values[0]):
            await _settled(self.call(FINISH, *values))

    def finish_sync(self, *values: str | None) -> None:
        self.check_transaction()
        with our_refusals(values[0]):
            _checked_blocking(self.call(FINISH, *values)).fetchall()

    def check_transaction(self) -> None:
        """By itself, what is done would say nothing about what was done elsewhere."""
        if self._driver == "asyncpg":
            is_open = self._connection.is_in_transaction()
        elif self._driver == "psycopg":
            is_open = not self._connection.autocommit or self._connection.info.transaction_status != _PSYCOPG_IDLE
        else:
            is_open = True  # SQLAlchemy begins one by itself, unless it was told not to, which the server says
        if not is_open:
            raise _no_transaction()

    def call(self, statement: str, *values: str | None) -> Any:
        count = range(1, len(values) + 1)
        if self._driver == "asyncpg":
            return self._connection.fetch(statement.format(*(f"${number}" for number in count)), *values)
        if self._driver == "psycopg":
            from psycopg.rows import tuple_row  # the caller's own row factory may make anything of a row

            cursor = self._connection.cursor(row_factory=tuple_row)
            return cursor.execute(statement.format(*("%s" for _ in count)), values)
        from sqlalchemy import text  # the caller has it: it is their connection

        spelled = (f"cast(:value{number} as text)" for number in count)
        named = {f"value{number}": value for number, value in zip(count, values, strict=True)}
        return self._connection.execute(text(statement.format(*spelled)), named)


@contextmanager
def our_refusals(run_id: str | None = None) -> Iterator[None]:
    """Say in our words what concerns us. What concerns the caller's transaction stays an error of its driver."""
    try:
        yield
    except MainspringError:
        raise
    except Exception as error:
        refusal = _refusal(error, run_id)
        if refusal is None:
            raise
        raise refusal from error


def _refusal(error: Exception, run_id: str | None) -> MainspringError | None:
    """What an error means that concerns us; None for any other."""
    code = next(
        (
            state
            for each in (error, getattr(error, "orig", None))  # SQLAlchemy wraps the driver's
            if (state := getattr(each, "sqlstate", None) or getattr(each, "pgcode", None))
        ),
        None,
    )
    if code == LEASE_LOST:
        return LeaseLost(
            f"Run {run_id} is no longer this worker's; nothing of this transaction happens.",
            hint="Let it roll back: whoever has the run now does its work.",
            run_id=run_id,
        )
    if code == ASKED_TO_STOP:
        return RunCancelled(
            f"Run {run_id} was asked to stop; nothing of this transaction happens.",
            hint="Let it roll back.",
            run_id=run_id,
        )
    if code == NO_TRANSACTION:
        return _no_transaction()
    return said_by_server(str(code), str(error)) if code in OF_OUR_SCHEMA else None


def _no_transaction() -> InvalidInput:
    return InvalidInput(
        "This is done inside a transaction, and the connection has none open.",
        code="no-transaction",
        hint="Call it inside `connection.transaction()`, where the work is done; with SQLAlchemy inside `begin()`, and "
        "not with the isolation level AUTOCOMMIT.",
        field="connection",
    )


def _checked_blocking(answer: Any) -> Any:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidInput(
            "An async connection was given to a blocking call.",
            code="connection-is-async",
            hint="Use the async call and await it, or give a blocking connection.",
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


async def rows_of(answer: Any, *, is_blocking: bool) -> list[dict[str, Any]]:
    """The rows behind whatever a driver's call returned, by the names of their columns."""
    if is_blocking:
        _checked_blocking(answer)
    elif inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, list):  # asyncpg
        return [dict(row) for row in answer]
    if hasattr(answer, "description"):  # psycopg
        names = [column.name for column in answer.description or ()]
    else:
        names = list(answer.keys()) if answer.returns_rows else []
    rows = (await _settled(answer)) if names else []
    return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


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
