"""Only the store holds SQL and knows PostgreSQL's epoch. (That it alone imports the driver, import-linter says.)"""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import mainspring
from mainspring.store.instants import EPOCH, UNIX_TO_POSTGRES, instant_of, micros_of

PACKAGE = Path(mainspring.__file__).parent
# The test kit freezes the clock of a database, empties it, and checks it: with statements of its own, so that what is
# wrong in the store cannot hide there.
OUTSIDE = [
    file for file in sorted(PACKAGE.rglob("*.py")) if file.relative_to(PACKAGE).parts[0] not in ("store", "testing")
]
SQL = re.compile(  # in lower case, as ours is: sentences begin with a capital
    r"\s*(insert into |delete from |truncate |listen |notify |select .*\(|((select|with|update|create|alter|drop) "
    r".*\b(from|set|as|table|function)\b))",
    re.DOTALL,
)


def texts(source: str) -> list[str]:
    """All text in a program but its docstrings; of an f-string what is not computed."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


@pytest.mark.parametrize("file", OUTSIDE, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_there_is_no_sql_outside_the_store(file: Path) -> None:
    assert [text for text in texts(file.read_text()) if SQL.match(text)] == []


@pytest.mark.parametrize(
    "source",
    [
        'await connection.fetchval("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")',
        'x = f"delete from {table}"',
        'X = """\n    update lease set done = done"""',
        "create = \"create or replace function clock_now() returns timestamptz as 'select now()'\"",
    ],
)
def test_sql_would_be_found(source: str) -> None:
    assert any(SQL.match(text) for text in texts(source))


def test_postgresqls_epoch_is_written_down_once() -> None:
    pattern = re.compile(r"946_?684_?800|\(2000, 1, 1")
    files = [file for file in PACKAGE.rglob("*.py") if pattern.search(file.read_text())]

    assert [str(file.relative_to(PACKAGE)) for file in files] == ["store/instants.py"]


def test_instants_and_microseconds_are_told_apart() -> None:
    at = datetime(2031, 5, 6, 7, 8, 9, 123_456, tzinfo=UTC)

    assert instant_of(micros_of(at)) == at
    assert (micros_of(EPOCH), instant_of((1,)).microsecond) == ((0,), 1)
    assert EPOCH.timestamp() * 1_000_000 == UNIX_TO_POSTGRES
