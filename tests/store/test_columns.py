"""The columns that statements are given are those of the tables, types and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from mainspring.model.run import PLAIN, NewRun
from mainspring.store.columns import CLAIMED, COPIED, RUN, AttemptRecord
from mainspring.store.leases import Lease
from mainspring.store.statements import load
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

# What each place knows of a run besides.
OWN = {
    "ready": {"ready_at", "rank", "gates"},
    "later": {"gates"},
    "held": {"reason", "held_at", "gates", "gate", "turn", "result"},
    "dead": {"died_at"},
}


async def columns_of(connection: Connection, relation: str) -> set[str]:
    """Of a table or a composite type."""
    rows = await connection.fetch(
        "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0 and not attisdropped",
        f"mainspring.{relation}",
    )
    return {row["attname"] for row in rows}


@pytest.mark.parametrize("place", OWN)
async def test_a_place_has_the_columns_of_a_run_and_its_own(connection: Connection, place: str) -> None:
    assert await columns_of(connection, place) == {"lane", *RUN} | OWN[place]


async def test_a_run_inside_a_lease_has_them_too(connection: Connection) -> None:
    assert await columns_of(connection, "run_row") == {*RUN, "ready_at"}


async def test_a_run_inside_a_lease_is_made_of_all_of_them(connection: Connection) -> None:
    """`run_of` takes them by name."""
    rows = await connection.fetch("select proargnames::text[] as names from pg_proc where proname = 'run_of'")

    assert max(({*row["names"]} for row in rows), key=len) == {*RUN, "ready_at"}


async def test_history_has_what_is_written_there(connection: Connection) -> None:
    of_its_index = {"is_covered", "covers"}
    assert await columns_of(connection, "attempt") == {*AttemptRecord._fields, "recorded_at"} | of_its_index


@pytest.mark.parametrize("name", ["runs/claim", "leases/find"])
async def test_a_claim_answers_with_the_columns_in_their_order(connection: Connection, name: str) -> None:
    """Workers read them by position."""
    prepared = await connection.prepare(load(name).text)

    assert tuple(each.name for each in prepared.get_attributes()) == CLAIMED


def test_what_is_copied_goes_into_the_columns_of_its_name() -> None:
    assert set(COPIED) <= {"lane", *RUN}
    assert COPIED[-len(PLAIN) :] == PLAIN == NewRun._fields[: len(PLAIN)]


def test_a_settled_run_is_recorded_in_the_order_of_the_columns() -> None:
    """The worker makes a plain tuple of what it claimed and what became of it."""
    row: Any = (*range(len(CLAIMED) - 1), None)  # it is not special
    work = Work(row, Lease(100, UUID(int=101), 1), 0, 102, UUID(int=103), (104,), None)
    work.started_at = (105,)
    record = AttemptRecord(*work.succeeded(b"106", (107,)).record)

    of_run = {name: CLAIMED.index(name) for name in AttemptRecord._fields if name in CLAIMED}
    of_attempt = {
        "lane": 100,
        "run_id": CLAIMED.index("id"),
        "attempt": CLAIMED.index("attempt") + 1,
        "line_id": 102,
        "outcome": "succeeded",
        "state": "succeeded",
        "claimed_at": (104,),
        "started_at": (105,),
        "finished_at": (107,),
        "worker_id": UUID(int=103),
        "error": None,
        "result": b"106",
    }
    assert record._asdict() == of_run | of_attempt


def test_what_is_claimed_comes_from_the_row_of_the_run() -> None:
    assert set(CLAIMED) <= {*RUN, "rank", "ready_at", "special"}
