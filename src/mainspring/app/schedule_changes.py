"""Where changes of schedules are made: in a transaction of ours, or on a caller's own connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mainspring.errors import ForeignDatabase
from mainspring.store.callers import callers_connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mainspring.app.mainspring import Mainspring
    from mainspring.control.schedule_transactions import PreparedChange, ScheduleTransactions

    T = TypeVar("T")
    Prepare = Callable[[ScheduleTransactions], Coroutine[Any, Any, PreparedChange[T]]]


async def change_on(app: Mainspring, connection: object, prepare: Prepare[T]) -> T:
    """Inside the caller's transaction, if that is one of the application's own database."""
    transactions = (await app.services()).schedule_transactions

    async def change() -> T:
        return await (await prepare(transactions)).make(callers_connection(connection))

    return await transactions.definitions.known_anew(change)


def change_on_sync(app: Mainspring, connection: object, prepare: Prepare[T]) -> T:
    """On a connection that blocks: prepared in the background loop, executed in the caller's thread."""
    transactions = app.blocking(app.services()).schedule_transactions
    generation = transactions.definitions.generation
    try:
        return app.blocking(prepare(transactions)).make_sync(callers_connection(connection))
    except ForeignDatabase:  # as Definitions.known_anew does it
        app.blocking(transactions.definitions.refresh(generation))
        return app.blocking(prepare(transactions)).make_sync(callers_connection(connection))
