"""The columns that statements are given are those of the tables, types and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.store.columns import ATTEMPT, CLAIMED, RUN

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

# What each place knows of a run besides.
OWN = {
    "ready": {"ready_at", "rank"},
    "later": set[str](),
    "held": {"reason", "held_at"},
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
    assert await columns_of(connection, "attempt") == {*ATTEMPT, "recorded_at"}


def test_what_is_claimed_comes_from_the_row_of_the_run() -> None:
    assert set(CLAIMED) <= {*RUN, "rank", "ready_at", "special"}
