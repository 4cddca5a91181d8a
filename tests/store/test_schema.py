"""`schema.sql` is what the migrations come to, and both speak the words of model/lifecycle.py."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import pytest

from mainspring.model.lifecycle import ENDS, MOVES, PLACES, STAGED, VERBS, Move, Outcome, State
from mainspring.store.database import Database
from mainspring.store.functions import all_functions, digest
from mainspring.store.migrate import known_migrations
from mainspring.store.statements import all_statements

from .reading import moves_of, written

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.statements import Statement

    Catalog = dict[str, set[tuple[str, ...]]]

STATEMENTS = list(all_statements())
HISTORY = "attempt"

# What there is to know about a schema, as rows of text. History's partitions are made by the day and not part of it.
CATALOG = {
    "tables": """
        select relname, relkind, relpersistence, relreplident, reloptions, pg_get_partkeydef(oid),
               (select toast.reloptions from pg_class as toast where toast.oid = ours.reltoastrelid)
        from ours where relkind in ('r', 'p')""",
    "columns": """
        select relname, row_number() over (partition by attrelid order by attnum), attname,
               format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, attstorage, attcompression,
               attcollation::regcollation, pg_get_expr(adbin, adrelid)
        from ours join pg_attribute on attrelid = ours.oid and attnum > 0 and not attisdropped
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where relkind in ('r', 'p', 'c')""",
    "constraints": """
        select relname, conname, pg_get_constraintdef(pg_constraint.oid)
        from ours join pg_constraint on conrelid = ours.oid where contype <> 'n'  -- not null: see the columns""",
    "indexes": "select relname, pg_get_indexdef(oid), reloptions from ours where relkind in ('i', 'I')",
    "functions": """
        select oid::regprocedure, regexp_replace(pg_get_functiondef(oid), '\\s+', ' ', 'g'), proacl
        from pg_proc where pronamespace = 'mainspring'::regnamespace""",
    "enums": """
        select typname, array_agg(enumlabel order by enumsortorder) from pg_enum join pg_type on pg_type.oid = enumtypid
        where typnamespace = 'mainspring'::regnamespace group by typname""",
    "triggers": "select relname, tgname from ours join pg_trigger on tgrelid = ours.oid",
    "tenants": "select id, name, (select last_value from tenant_id_seq) from tenant",
}
OURS = """
    with ours as (
        select * from pg_class where relnamespace = 'mainspring'::regnamespace and not relispartition)"""

CHANGES = (
    "alter table ready alter column tags set storage external",
    "alter table ready set (fillfactor = 90)",
    "alter table lease set (toast.autovacuum_vacuum_threshold = 1)",
    "alter table later alter column revision drop default",
    "alter table later alter column headers set not null",
    "alter table held drop constraint priority_is_0_to_9",
    "drop index ready_expiry_idx",
    "create index on attempt (worker_id)",
    "alter type attempt_outcome add value 'skipped'",
    "alter type run_row add attribute colour text",
    "create or replace function clock_now() returns timestamptz language sql volatile as 'select now()'",
    "grant execute on function add_history_partition(date) to public",
    "alter table log replica identity default",
    "create table spare (id int)",
)


async def catalog_of(connection: asyncpg.Connection[asyncpg.Record]) -> Catalog:
    rows = {what: await connection.fetch(f"{OURS} {query}") for what, query in CATALOG.items()}
    return {what: {tuple(str(value) for value in row) for row in some} for what, some in rows.items()}


# ── the shape ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_schema_sql_is_what_the_migrations_come_to(
    empty_url: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    migrated = await catalog_of(connection)
    other = await Database(empty_url).connect("test")
    await other.execute(resources.files("mainspring.store").joinpath("sql", "schema.sql").read_text())
    for function in all_functions().values():
        await other.execute(function)
    shown = await catalog_of(other)
    await other.close()

    for what in CATALOG:
        assert shown[what] - migrated[what] == set(), f"only in schema.sql: {what}"
        assert migrated[what] - shown[what] == set(), f"only in the migrations: {what}"


async def test_no_difference_goes_unnoticed(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    before = await catalog_of(connection)
    for change in CHANGES:
        change_and_back = connection.transaction()
        await change_and_back.start()
        await connection.execute(change)
        assert await catalog_of(connection) != before, change
        await change_and_back.rollback()


def test_a_change_of_functions_comes_with_a_migration_that_creates_them() -> None:
    named = [migration.functions for migration in known_migrations() if migration.functions]

    assert named[-1] == digest(), f"a new migration has to say: -- functions: {digest()}"


# ── the words ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "words"), [("run_state", State), ("attempt_outcome", Outcome)])
async def test_sql_and_python_know_the_same_words(
    connection: asyncpg.Connection[asyncpg.Record], name: str, words: type[State | Outcome]
) -> None:
    labels = await connection.fetchval(
        "select array_agg(enumlabel::text order by enumsortorder) from pg_enum where enumtypid = $1::text::regtype",
        name,
    )

    assert labels == [word.value for word in words]


# ── the moves ───────────────────────────────────────────────────────────────────────────────────────────────────


def carriers(verb: str) -> list[Statement]:
    return [statement for statement in STATEMENTS if verb in moves_of(statement)]


def places(move: Move) -> set[str]:
    """Where a move takes runs from and to. Only who withdraws knows what is staged as something of its own."""
    known = {PLACES[state] for state in move.sources | move.targets if state in PLACES}
    return known | {STAGED} if move.verb == "withdraw" else known


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_header_names_moves_that_exist(statement: Statement) -> None:
    assert set(moves_of(statement)) <= set(VERBS)
    assert ("Moves:" in statement.source) == bool(moves_of(statement))


@pytest.mark.parametrize("verb", [move.verb for move in MOVES if move.verb != "submit"])
def test_a_move_is_carried_by_statements_that_touch_its_places(verb: str) -> None:
    touched = {table for statement in carriers(verb) for table in written(statement)}

    assert touched >= places(VERBS[verb])


@pytest.mark.parametrize(
    "statement", [each for each in STATEMENTS if moves_of(each)], ids=lambda statement: statement.name
)
def test_a_statement_writes_only_to_the_places_of_its_moves(statement: Statement) -> None:
    moves = [VERBS[verb] for verb in moves_of(statement)]
    allowed = set().union(*map(places, moves))

    assert written(statement) & set(PLACES.values()) <= allowed
    if HISTORY in written(statement):
        assert any(move.targets & ENDS for move in moves)


def test_nothing_enters_or_leaves_a_place_without_saying_so() -> None:
    silent = {each.name for each in STATEMENTS if not moves_of(each)}
    moving = {each.name for each in STATEMENTS if written(each, "insert", "delete") & set(PLACES.values())}

    assert silent & moving == {"leases/close"}, "a lease whose runs are all done holds nobody"
