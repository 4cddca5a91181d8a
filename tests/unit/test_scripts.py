"""SQL scripts are cut between their statements, and nowhere else."""

from __future__ import annotations

import pytest

from mainspring.store.migrate import known_migrations
from mainspring.store.scripts import statements_of

WHOLE = (
    "select 'a;b', E'it\\'s; so', 'it''s; so'",
    'select ";" from "a"";b"',
    "create function f() returns int language sql as $$ select 1; select 2; $$",
    "do $outer$ begin execute $$ select ';' $$; end $outer$",
    "select $1",
    "select 1 -- one; two",
    "select /* one; two */ 1",
    "select a$$b, c$$d",  # a dollar inside a name quotes nothing
)


@pytest.mark.parametrize("statement", WHOLE)
def test_a_statement_stays_whole(statement: str) -> None:
    assert statements_of(f"{statement}\n;\nselect 2;") == [statement, "select 2"]


def test_comments_stay_with_what_follows_and_are_no_statement() -> None:
    assert statements_of("-- first; of all\nselect 1;;\n-- then\nselect 2;\n-- over;\n") == [
        "-- first; of all\nselect 1",
        "-- then\nselect 2",
    ]


def test_what_stands_in_dollars_may_begin_and_end_a_statement() -> None:
    assert statements_of("do $$ begin end $$; do $$ begin end $$") == ["do $$ begin end $$"] * 2


def test_nothing_of_a_migration_is_lost() -> None:
    for migration in known_migrations():
        pieces = statements_of(migration.sql)

        assert "".join("".join(pieces).replace(";", "").split()) in "".join(migration.sql.replace(";", "").split())
        assert all(first_word(piece) in KNOWN_WORDS for piece in pieces), migration.name


KNOWN_WORDS = {"alter", "create", "do", "drop", "grant", "insert", "revoke", "select", "update", "delete"}


def first_word(statement: str) -> str:
    lines = [line for line in statement.splitlines() if not line.startswith("--")]
    return "\n".join(lines).split()[0]
