"""One place where runs end: whatever writes an end into history also does what else has to happen then."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

import mainspring
from mainspring.store.functions import all_functions
from mainspring.store.statements import all_statements

STORE = Path(mainspring.__file__).parent / "store"
WRITES_HISTORY = re.compile(r"insert\s+into\s+attempt\b")
ENDS_RUNS = re.compile(r"perform\s+end_runs\s*\(")
# Functions that write ends and leave the rest to whoever calls them, and who that is.
LEFT_TO_CALLERS = {
    "complete_whole_leases": "store/completions.py: the worker knows which of its runs are special, most are not",
    "complete_leases": "programs before migration 17, which know of no limits",
}
# Python that writes history by COPY or through such a function, and where it ends runs.
CALLERS = {"leases.py": "record_attempts(", "completions.py": "COMPLETE.fetchval("}


TOLD_OF_DEAD = ("free_slots", "tell_children", "tell_chains")


def functions() -> dict[str, str]:
    """Every SQL function by its name, as it is by now."""
    schema = resources.files("mainspring.store").joinpath("sql", "schema.sql").read_text(encoding="utf-8")
    others = re.findall(r"create function (\w+)\(.*?\$\$(.*?)\$\$;", schema, re.DOTALL)
    return {**dict(others), **all_functions()}


def careless(sql: str) -> bool:
    return bool(WRITES_HISTORY.search(sql)) and not ENDS_RUNS.search(sql)


def test_every_function_that_writes_history_ends_runs_in_the_one_place() -> None:
    assert {name for name, sql in functions().items() if careless(sql)} == set(LEFT_TO_CALLERS)


@pytest.mark.parametrize("name", ["cancel_runs", "expire_runs", "purge_runs", "rescue_leases", "finish_run"])
def test_the_reader_finds_what_is_missing(name: str) -> None:
    """The control: without its call, each of them would be found."""
    sql = functions()[name]

    assert not careless(sql)
    assert careless(ENDS_RUNS.sub("perform something_else(", sql))


def silent(sql: str) -> bool:
    """Whether it makes dead letters of runs without a word to those that wait for them, or that follow them."""
    return "insert into dead" in sql and not all(f"perform {each}(" in sql for each in TOLD_OF_DEAD)


def test_every_function_that_buries_runs_tells_those_that_wait_for_them_or_follow_them() -> None:
    assert {name for name, sql in functions().items() if silent(sql)} == set()


@pytest.mark.parametrize("told", TOLD_OF_DEAD)
@pytest.mark.parametrize("name", ["join_children", "rescue_leases"])
def test_the_reader_finds_who_is_silent(name: str, told: str) -> None:
    assert silent(functions()[name].replace(f"perform {told}(", "perform something_else("))


def test_no_statement_writes_history_by_itself() -> None:
    assert [each.name for each in all_statements() if WRITES_HISTORY.search(each.text)] == []


@pytest.mark.parametrize("module", CALLERS)
def test_whoever_writes_history_from_here_ends_runs_in_the_one_place(module: str) -> None:
    source = (STORE / module).read_text()

    assert CALLERS[module] in source
    assert "END_RUNS.execute(" in source


def test_nobody_else_writes_history_from_here() -> None:
    writing = {
        file.name
        for file in STORE.parent.rglob("*.py")
        if any(call in file.read_text() for call in CALLERS.values()) and file.name != "history.py"
    }

    assert writing == set(CALLERS)
