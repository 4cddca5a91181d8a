"""Arguments are checked when a run is submitted, and an error names the argument."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from mainspring.errors import InvalidArguments, InvalidInput
from mainspring.model.arguments import Arguments
from mainspring.model.context import Context  # noqa: TC001  # read at run time, from the annotations

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction


@dataclass
class Address:
    street: str
    number: int


async def send(to: str, copies: int = 1, *, tags: list[str] = []) -> None: ...  # noqa: B006


@pytest.fixture
def arguments() -> Arguments:
    return Arguments("send", send)


def refusal(call: Callable[[], Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("positional", "named", "expected"),
    [
        (("a",), {}, (("a", 1), {"tags": []})),
        (("a", 2), {"tags": ["x"]}, (("a", 2), {"tags": ["x"]})),
        ((), {"to": "a", "copies": 3}, (("a", 3), {"tags": []})),
    ],
)
def test_what_fits_comes_back_as_it_went_in(
    arguments: Arguments, positional: tuple[Any, ...], named: dict[str, Any], expected: Any
) -> None:
    assert arguments.decode(arguments.encode(positional, named)) == expected


def test_rich_values_come_back_as_their_types() -> None:
    def handler(at: datetime, price: Decimal, who: UUID, where: Address) -> None: ...

    values = (datetime(2031, 1, 1, tzinfo=UTC), Decimal("1.10"), UUID(int=7), Address("Elm", 3))
    arguments = Arguments("handler", handler)

    assert arguments.decode(arguments.encode(values, {})) == (values, {})


@pytest.mark.parametrize(
    ("positional", "named", "field"),
    [
        ((7,), {}, "to"),
        (("a", "two"), {}, "copies"),
        (("a",), {"tags": ["x", 5]}, "tags"),
        (("a",), {"copies": None}, "copies"),
        (("a",), {"cc": "b"}, "cc"),
        ((), {}, "to"),
        (("a",), {"to": "b"}, "to"),
    ],
)
def test_an_error_names_the_argument(
    arguments: Arguments, positional: tuple[Any, ...], named: dict[str, Any], field: str
) -> None:
    error = refusal(lambda: arguments.encode(positional, named))

    assert isinstance(error, InvalidArguments)
    assert error.fields["field"] == field
    assert f"'{field}'" in str(error)
    assert "It takes (to: str, copies: int = 1, *, tags: list[str] = [])." in str(error)


def test_an_error_inside_a_value_says_where_and_what_it_found(arguments: Arguments) -> None:
    error = refusal(lambda: arguments.encode(("a",), {"tags": ["x", 5]}))

    assert error.message == "send: argument 'tags'[1] does not fit: Expected `str`, got `int` (it is ['x', 5])."


def test_too_many_arguments_are_refused(arguments: Arguments) -> None:
    assert "too many positional" in str(refusal(lambda: arguments.encode(("a", 1, 2), {})))


@pytest.mark.parametrize("payload", [b"[]", b"{}", b'{"to":"a","cc":1}'])
def test_a_stored_payload_is_checked_like_a_call(arguments: Arguments, payload: bytes) -> None:
    assert refusal(lambda: arguments.decode(payload)).code == "unfit-arguments"


def test_arguments_that_come_as_data_are_checked_like_a_call(arguments: Arguments) -> None:
    assert arguments.encode_mapping({"to": "a"}) == b'{"to":"a"}'
    assert refusal(lambda: arguments.encode_mapping({"to": "a", "cc": 1})).fields["field"] == "cc"


def test_a_default_that_can_change_is_not_shared_between_runs(arguments: Arguments) -> None:
    arguments.decode(b'{"to":"a"}')[1]["tags"].append("x")

    assert arguments.decode(b'{"to":"a"}') == (("a", 1), {"tags": []})


def test_a_context_is_injected_and_not_stored() -> None:
    def handler(context: Context, n: int) -> None: ...

    arguments = Arguments("handler", handler)

    assert arguments.wants_context
    assert arguments.names == ("n",)
    assert arguments.encode((1,), {}) == b'{"n":1}'


def test_arguments_without_annotations_take_any_json() -> None:
    def handler(anything): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, RUF100

    assert Arguments("handler", handler).encode(({"a": [1, None]},), {}) == b'{"anything":{"a":[1,null]}}'


@pytest.mark.parametrize("handler", [lambda *a: 0, lambda **k: 0, lambda a, /: 0])
def test_open_ended_signatures_are_refused(handler: Callable[..., Any]) -> None:
    assert refusal(lambda: Arguments("handler", handler)).code == "invalid-handler"


def test_annotations_that_exist_only_for_type_checkers_are_refused() -> None:
    def handler(part: Fraction) -> None: ...

    error = refusal(lambda: Arguments("handler", handler))

    assert error.code == "invalid-handler"
    assert "Fraction" in error.message


def test_equal_sets_become_equal_payloads() -> None:
    """Else one idempotency key would mean two contents: processes hash texts, and so order sets, differently."""

    async def notify(groups: set[int]) -> None: ...

    one, other = {8, 0}, {0, 8}  # the same bucket of a small set: the order is that of insertion
    assert list(one) != list(other)
    arguments = Arguments("notify", notify)
    assert arguments.encode((one,), {}) == arguments.encode((other,), {}) == b'{"groups":[0,8]}'
    assert arguments.encode_mapping({"groups": one}) == arguments.encode_mapping({"groups": other})
