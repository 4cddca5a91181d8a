"""What a job may say about the jobs it follows, and what is refused when the code is read."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from mainspring import After, Debounce, Mainspring, Unique
from mainspring.errors import InvalidInput
from mainspring.model.chain import checked_after, cycle_through, depth_of, headers_after, payload_after, triggered_by
from mainspring.model.dependency import Condition
from mainspring.model.job import JobDefinition, definition_of


def test_a_name_a_list_and_an_after_say_the_same() -> None:
    expected = (After("load"),)

    assert checked_after("load") == checked_after(["load"]) == checked_after(After("load")) == expected
    assert checked_after(["a", "b"], "failure") == (After("a", "failure"), After("b", Condition.FAILURE))


@pytest.mark.parametrize(
    ("after", "on", "code"),
    [
        (7, None, "invalid-after"),
        ([], None, "invalid-after"),
        (["load", "load"], None, "invalid-after"),
        ([f"job{number}" for number in range(21)], None, "invalid-after"),
        ("load", "sunday", "invalid-on"),
        (None, "success", "invalid-on"),
        (After("load"), "end", "invalid-on"),
    ],
)
def test_what_makes_no_sense_is_refused(after: Any, on: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked_after(after, on)

    assert caught.value.code == code


def test_a_result_needs_a_success() -> None:
    with pytest.raises(InvalidInput) as caught:
        After("load", on="end", result="rows")

    assert caught.value.code == "result-without-success"


def test_a_definition_comes_back_as_it_was_stored() -> None:
    definition = JobDefinition(name="report", after=(After("load", result="rows"), After("other", on="failure")))

    assert definition_of(definition.as_document()) == definition
    assert "after" not in JobDefinition(name="plain").as_document()  # no new version of what was there before


@pytest.mark.parametrize("name", ["", "x" * 101, "no spaces", "new\nline"])
def test_names_of_jobs_are_checked(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        JobDefinition(name="report", after=(After(name),))

    assert caught.value.code == "invalid-after"


def test_a_job_does_not_follow_itself() -> None:
    with pytest.raises(InvalidInput, match="load → load") as caught:
        JobDefinition(name="load", after=(After("load"),))

    assert caught.value.code == "chain-cycle"


def test_a_circle_is_found_and_named() -> None:
    follows = {"a": ["b", "x"], "b": ["c"], "c": ["a"], "x": ["y"]}

    assert cycle_through("a", follows) == ["a", "b", "c", "a"]
    assert cycle_through("x", follows) is None


def test_a_circle_inside_an_application_is_refused_at_once() -> None:
    app = Mainspring()

    @app.job(after="b")
    async def a() -> None: ...

    with pytest.raises(InvalidInput, match="b → a → b"):

        @app.job(after="a")
        async def b() -> None: ...


@pytest.mark.parametrize("options", [{"unique": Unique()}, {"debounce": Debounce(30)}])
def test_unique_runs_do_not_follow_others(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        JobDefinition(name="report", after=(After("load"),), **options)

    assert caught.value.code == "unique-and-chained"


def test_arguments_that_nobody_would_give_are_refused() -> None:
    app = Mainspring()

    with pytest.raises(InvalidInput, match="'day'") as caught:

        @app.job(after=After("load", result="rows"))
        async def report(rows: list[str], day: str) -> None: ...

    assert caught.value.code == "chain-arguments"
    with pytest.raises(InvalidInput, match="no such parameter"):

        @app.job(after=After("load", result="lines"))
        async def other(rows: list[str]) -> None: ...

    @app.job(after=After("load", result="rows"))
    async def fine(rows: list[str], day: str = "today") -> None: ...


def test_headers_say_what_came_before() -> None:
    first, second = uuid4(), uuid4()
    once = headers_after(first, {"traceparent": "00-x", "other": "y"})
    twice = headers_after(second, once)

    assert once == {"traceparent": "00-x", "triggered_by": str(first), "chain_depth": "1"}
    assert (triggered_by(twice), depth_of(twice)) == (second, 2)
    assert triggered_by({"triggered_by": "somebody else's"}) is None
    assert depth_of({"chain_depth": "many"}) == 0


def test_arguments_are_the_result_or_nothing() -> None:
    assert payload_after(None, b"[1]") == b"{}"
    assert payload_after("rows", b"[1]") == b'{"rows":[1]}'
    assert payload_after("rows", None) == b'{"rows":null}'
