"""Runs may lie in `ready` ahead of their instant. Whoever reads that table either knows the run, or looks at ranks."""

from __future__ import annotations

import pytest

from mainspring.model.lifecycle import STAGED
from mainspring.store.statements import Statement, all_statements

from .reading import Touch, touches
from .routines import inside

# Statements that read `ready` neither by the run's id nor with an eye on its rank, and why they may.
STAGED_OR_NOT = {
    "health/lanes": "how full lanes are: what is staged is in them, too",
    "restoring/lift_fences": "every run that waits, whatever for",
    "restoring/waiting": "every run that waits, whatever for",
    "runs/expire": "by when runs are too old: that comes after their instant",
    "runs/lanes_to_tidy": "by when runs are too old: that comes after their instant",
    "runs/lines_in_use": "where there is anything; whoever looks there looks at ranks",
    "lists/ready_of_jobs": "where a look ends, staged or not; what it shows says which",
    "runs/of_job": "for tests of applications: every run there is",
}
STATEMENTS = list(all_statements())


def careless(statement: Statement) -> bool:
    """Whether a statement, or a function that it calls, takes all that lies in `ready` for what may start."""
    return any(
        touch.table == STAGED and touch.how != "insert" and not (_is_by_key(touch) or _knows_rank(touch))
        for each in (statement, *inside(statement))
        for touch in touches(each)
    )


def _is_by_key(touch: Touch) -> bool:
    names = ("id", f"{touch.alias}.id")
    return any(word in names and after == "=" for word, after in _pairs(touch))


def _knows_rank(touch: Touch) -> bool:
    """It compares the rank with something later, or hands it on to who does."""
    names = ("rank", f"{touch.alias}.rank")
    selected = touch.level[: touch.level.index("from")] if "from" in touch.level else ()
    return any(word in names and (after in ("<=", ">") or word in selected) for word, after in _pairs(touch))


def _pairs(touch: Touch) -> zip[tuple[str, str]]:
    return zip(touch.level, touch.level[1:], strict=False)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_knows_that_what_is_in_line_may_be_staged(statement: Statement) -> None:
    assert careless(statement) == (statement.name in STAGED_OR_NOT)


def test_every_exception_exists() -> None:
    assert set(STAGED_OR_NOT) <= {statement.name for statement in STATEMENTS}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select id from ready where lane = 0 order by rank limit 1", True),
        ("select id from ready where lane = 0 and rank >= 7", True),
        ("select count(*) from (select from ready where lane = 0) as few", True),
        ("with few as (select rank from later) select id from ready where lane = 0", True),
        ("delete from ready where job_id = :id::int", True),
        ("select id from ready where lane = 0 and rank <= rank_now()", False),
        ("select case when ready.rank > rank_now() then 'scheduled' else 'ready' end from ready", False),
        ("select count(*) from (select rank from ready where lane = 0) as few where few.rank <= rank_now()", False),
        ("select from ready where lane = 0 and id = any (:ids::uuid[])", False),
        ("delete from ready where lane = 0 and ready.id = :id::uuid", False),
        ("insert into ready (lane) select lane from later", False),
    ],
)
def test_the_reader_finds_the_careless(sql: str, found: bool) -> None:
    assert careless(Statement("made up", sql)) is found
