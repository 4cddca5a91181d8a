"""What a limit tells runs apart by: paths into arguments, texts around them, and nothing that could be executed."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.limit_key import MAX_EXPRESSION_LENGTH, MAX_KEY_LENGTH, limit_key

ORDER: dict[str, Any] = {
    "customer": "Acme",
    "order": {"id": 7, "items": [{"sku": "a1"}, {"sku": "b2"}], "express": True, "weight": 1.5},
    "nobody": None,
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("customer", "Acme"),
        ("order.id", "7"),
        ("order.items.1.sku", "b2"),
        ("order.express", "true"),
        ("order.weight", "1.5"),
        ("{customer}", "Acme"),
        ("{customer|lower}/{order.id}", "acme/7"),
        ("{ customer | upper }", "ACME"),
        ("{nobody or everybody}", "everybody"),
        ("{missing.path or none at all}", "none at all"),
        ("{customer|lower or nobody}", "acme"),
        ("shop-{order.id}", "shop-7"),
    ],
)
def test_an_expression_comes_to_text(source: str, value: str) -> None:
    assert limit_key(source).of(ORDER) == value


@pytest.mark.parametrize(
    "source",
    [
        "",
        "a" * (MAX_EXPRESSION_LENGTH + 1),
        "__import__('os').system('ls')",
        "customer()",
        "customer; drop table ready",
        "customer[0]",
        "a..b",
        ".a",
        "7",
        "{customer",
        "customer}",
        "{customer|reversed}",
        "{{customer}}",
        "no path at all",
        "{a}\n{b}",
        ".".join(["a"] * 11),
        "".join(["{a}"] * 9),
        None,
        7,
    ],
)
def test_what_is_no_expression_is_refused(source: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        limit_key(source)

    assert refusal.value.code == "invalid-limit-key"
    assert refusal.value.hint is not None


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("missing", ORDER),
        ("nobody", ORDER),
        ("order", ORDER),
        ("order.items", ORDER),
        ("order.items.7.sku", ORDER),
        ("order.items.99999999999999999999.sku", ORDER),
        ("customer.name", ORDER),
        ("customer", {"customer": "x" * (MAX_KEY_LENGTH + 1)}),
        ("customer", {"customer": "x" * 1_000_000}),
        ("customer", {"customer": ""}),
        ("customer", "a text instead of arguments"),
    ],
)
def test_arguments_that_it_fails_on_are_named(source: str, arguments: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        limit_key(source).of(arguments)

    assert refusal.value.code == "limit-key-fails"
    assert source in refusal.value.message
    assert len(refusal.value.message) < 1_000


def test_a_key_is_one_line_and_keeps_different_values_apart() -> None:
    key = limit_key("customer")
    values = ["a\nb", "a\\nb", "a\\u000ab", "a\tb", "a\u2028b", "a b"]

    found = [key.of({"customer": value}) for value in values]

    assert len({*found}) == len(values)
    assert all(each.isprintable() for each in found)
