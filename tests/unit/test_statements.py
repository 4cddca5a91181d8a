"""Statements: named parameters in, numbered parameters out; every file says what it does and is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mainspring
from mainspring.store.leases import Fate
from mainspring.store.statements import Statement, all_statements, load

STATEMENTS = list(all_statements())
NAMES = [statement.name for statement in STATEMENTS]


def test_parameters_are_numbered_in_the_order_they_appear() -> None:
    statement = Statement("x", "select :b::int, :a::text where lane = :b::int")

    assert statement.text == "select $1::int, $2::text where lane = $1::int"
    assert statement.parameters == ("b", "a")


def test_casts_and_comments_are_not_parameters() -> None:
    statement = Statement("x", "-- of :nobody\nselect '{}'::text[], 1::int -- :nothing")

    assert statement.text == "select '{}'::text[], 1::int"
    assert statement.parameters == ()


def test_arguments_go_by_name() -> None:
    assert Statement("x", "select :b::int, :a::int").arguments({"a": 1, "b": 2}) == [2, 1]


@pytest.mark.parametrize("values", [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_missing_and_surplus_arguments_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"x takes \('b', 'a'\)"):
        Statement("x", "select :b::int, :a::int").arguments(values)


def test_a_statement_is_loaded_once() -> None:
    assert load("runs/claim") is load("runs/claim")


def test_an_unknown_statement_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load("runs/juggle")


def test_runs_in_their_places_are_listed_alike_whichever_index_finds_them() -> None:
    """Two statements, as a condition that may be left out would let neither index be used; one answer."""
    of_all, of_jobs = (load(name).text.split("from ", 1)[1] for name in ("lists/placed", "lists/placed_of_jobs"))
    of_jobs = re.sub(r" and \w+\.job_id = pair\.job and \w+\.line_id = pair\.line", "", of_jobs)

    assert _without_scope(of_all) == _without_scope(of_jobs)


def _without_scope(text: str) -> str:
    inside = re.sub(r"\.lane = (lane\.lane|\$\d+::smallint)", "", text.split("cross join lateral", 1)[1])
    return re.sub(r"\$\d+|where lane\.lane = any \(.*\)|\s", "", inside)


@pytest.mark.parametrize("statement", STATEMENTS, ids=NAMES)
def test_a_file_begins_with_a_sentence_that_says_what_it_does(statement: Statement) -> None:
    assert re.match(r"-- [A-Z].", statement.source)


@pytest.mark.parametrize("statement", STATEMENTS, ids=NAMES)
def test_a_file_holds_one_statement_and_every_parameter_says_its_type(statement: Statement) -> None:
    assert ";" not in re.sub(r"'[^']*'", "''", statement.text)
    untyped = re.findall(r"\$\d+(?!\d|::)", statement.text)
    assert not untyped


def test_every_file_is_used() -> None:
    folder = Path(mainspring.__file__).parent
    source = "\n".join(file.read_text() for file in folder.rglob("*.py"))
    loaded = set(re.findall(r'load\(\s*"([^"]+)"', source))
    loaded |= {f"leases/{fate.value}" for fate in Fate if fate is not Fate.END}  # as leases.py does

    assert set(NAMES) == loaded
