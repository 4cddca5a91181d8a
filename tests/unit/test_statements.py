"""Statements: named parameters in, numbered parameters out; every file says what it does and is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mainspring
from mainspring.model.lifecycle import ENDS, PLACES
from mainspring.store import statements
from mainspring.store.columns import CARRIED, FRAGMENTS
from mainspring.store.functions import all_functions
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


# ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "FRAGMENTS", {"some": ("a", "b", "c")})


@pytest.mark.usefixtures("fragments")
@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("select {some}", "select a, b, c"),
        ("select {some of run}", "select run.a, run.b, run.c"),
        ("select f({some by name})", "select f(a => a, b => b, c => c)"),
        ("select f({some by name of run except b})", "select f(a => run.a, c => run.c)"),
        ("select {some except b}", "select a, c"),
        ("select {some of run except\n a, b}", "select run.c"),
        ("select '{}', '{1,2}'", "select '{}', '{1,2}'"),
        ("select :b::int, {some} -- {nothing}", "select $1::int, a, b, c"),
    ],
)
def test_columns_in_braces_are_filled_in(text: str, expanded: str) -> None:
    assert Statement("x", text).text == expanded


@pytest.mark.usefixtures("fragments")
@pytest.mark.parametrize("text", ["{somes}", "{some except d}", "{some except a, a}"])
def test_columns_that_are_not_there_are_an_error(text: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        Statement("x", text)


def test_every_fragment_is_used() -> None:
    used = {name for each in STATEMENTS for name in re.findall(r"\{([a-z]+)[ }]", each.source)}

    assert used == set(FRAGMENTS)


def test_no_brace_is_left() -> None:
    assert [each.name for each in STATEMENTS if re.search(r"\{[a-z]", each.text)] == []


def test_a_new_attribute_reaches_every_statement_that_moves_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once where the row is written and once where its value comes from, for each place and for history."""
    monkeypatch.setattr(statements, "FRAGMENTS", {name: (*columns, "colour") for name, columns in FRAGMENTS.items()})
    moving = {f"insert into {table} (" for table in (*PLACES.values(), "attempt")} - {"insert into lease ("}
    for each in STATEMENTS:
        text = Statement(each.name, each.source).text
        written = sum(text.count(insert) for insert in moving)
        assert len(re.findall(r"\bcolour\b", text)) >= 2 * written, each.name


def test_columns_of_runs_are_not_spelled_in_statements() -> None:
    """Four in a row of those that a run carries everywhere: then it is the run's row, and there is a name for that."""
    row = re.compile(rf"(?:\b(?:[a-z]+\.)?(?:{'|'.join(CARRIED)})\b,\s*){{4}}")

    assert [each.name for each in STATEMENTS if row.search(re.sub(r"\{[^}]*\}", "", each.source))] == []


def test_the_ends_are_not_spelled_in_statements() -> None:
    ends = "|".join(ENDS)
    spelled = re.compile(rf"'({ends})',\s*'(?!\1)({ends})'")

    assert [each.name for each in STATEMENTS if spelled.search(each.source)] == []
    assert all_functions()["rerun_runs"].count("in ('succeeded', 'cancelled', 'expired', 'lost')") == 1


def test_a_statement_is_loaded_once() -> None:
    assert load("runs/claim") is load("runs/claim")


def test_an_unknown_statement_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load("runs/juggle")


def test_runs_in_their_places_are_listed_alike_whichever_index_finds_them() -> None:
    """Two statements, as a condition that may be left out would let neither index be used; one answer."""
    of_all, of_jobs = (_without_scope(load(name).text) for name in ("lists/placed", "lists/placed_of_jobs"))
    of_jobs = re.sub(r"and\w+\.job_id=pair\.joband\w+\.line_id=pair\.line", "", of_jobs)
    _, _, elsewhere = of_all.partition("unionall")

    assert elsewhere == of_jobs.removeprefix("(")


def test_runs_in_line_are_listed_alike_whichever_index_finds_them() -> None:
    """What is shown, and what makes a match: the whole lane, its newest, or whole lines."""
    of_all, newest, along_lines = (
        re.sub(r"\$\d+|\s", "", load(f"lists/{name}").text).replace("run.", "ready.")
        for name in ("placed", "ready_of_jobs", "ready_along_lines")
    )
    shown, match = (
        _between(of_all, "selectcase", "ready.tenant_id="),
        _between(of_all, "ready.tenant_id=", "asis_match"),
    )

    assert shown in newest
    assert shown in along_lines
    assert match in newest
    assert match in along_lines


def _between(text: str, begin: str, end: str) -> str:
    return begin + text.split(begin, 1)[1].split(end, 1)[0]


def test_schedules_are_listed_alike_whichever_index_finds_them() -> None:
    of_all, of_job = (re.sub(r"\$\d+", "$", load(f"schedules/{name}").text) for name in ("list", "list_of_job"))

    assert of_all == of_job.replace("schedule.job_id = $::int and ", "")


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
