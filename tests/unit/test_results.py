"""Results come back from JSON as what they were, and are checked against what the handler promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from tests.values import ADDRESS, AT, CASES, Address, Order

from mainspring import Mainspring, Snooze
from mainspring.errors import InvalidInput, InvalidResult
from mainspring.model.results import ReturnType
from mainspring.testing import inline


@pytest.mark.parametrize(("annotation", "value"), CASES, ids=str)
def test_a_result_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    returns = ReturnType("send", annotation)

    came_back = returns.decode(returns.encode(value))

    assert came_back == value
    assert type(came_back) is (float if annotation is float else type(value))


def test_a_result_that_cannot_be_kept_is_refused_where_it_is_annotated() -> None:
    with pytest.raises(InvalidInput, match="send: what it returns is annotated list") as caught:
        ReturnType("send", list[Fraction])

    assert (caught.value.code, caught.value.fields["field"]) == ("unsupported-type", "return")


@pytest.mark.parametrize(
    ("annotation", "result", "message"),
    [
        (int, "five", "send: the result does not fit int: Expected `int`, got `str` (it is 'five')."),
        (
            Address,
            None,
            "send: the result does not fit tests.values.Address: Expected `object`, got `null` (it is None).",
        ),
        (None, 5, "send: the result does not fit None: Expected `null`, got `int` (it is 5)."),
    ],
)
def test_a_result_that_does_not_fit_is_an_error_that_says_why(annotation: Any, result: Any, message: str) -> None:
    with pytest.raises(InvalidResult) as caught:
        ReturnType("send", annotation).encode(result)

    assert (caught.value.message, caught.value.code) == (message, "invalid-result")
    assert caught.value.hint is not None


def test_an_error_inside_a_result_says_where() -> None:
    with pytest.raises(InvalidResult, match=r"does not fit list\[tests.values.Order\] at \[0\]\.no: ") as caught:
        ReturnType("send", list[Order]).encode([{"no": -1, "at": AT}])

    assert caught.value.fields["field"] == "[0].no"


def test_what_has_the_same_json_fits() -> None:
    returns = ReturnType("send", Address)

    assert returns.decode(returns.encode({"street": "Elm", "number": 3})) == ADDRESS


def test_whatever_a_validator_raises_means_that_the_result_does_not_fit() -> None:
    @dataclass
    class Fussy:
        number: int

        def __post_init__(self) -> None:
            raise LookupError("not in the book")

    with pytest.raises(InvalidResult, match="not in the book"):
        ReturnType("send", Fussy).encode({"number": 1})


@pytest.mark.parametrize("annotation", [Any, object])
def test_without_a_promise_results_are_plain_json(annotation: Any) -> None:
    returns = ReturnType("send", annotation)

    assert returns.decode(returns.encode({"at": AT, "who": ADDRESS})) == {
        "at": "2031-01-02T03:04:05.000678Z",
        "who": {"street": "Elm", "number": 3},
    }


def test_what_was_kept_when_the_job_promised_something_else_is_not_passed_off_as_what_it_promises() -> None:
    with pytest.raises(InvalidResult, match="As plain JSON, the run's last attempt has it"):
        ReturnType("send", Address).decode(None)


async def test_a_handler_may_promise_a_result_or_steer() -> None:
    app = Mainspring("postgresql://nobody@nowhere.invalid/nothing")

    @app.job
    def count(n: int) -> int | Snooze:
        return n

    with inline(app):
        assert await (await count.submit(5)).result() == 5
