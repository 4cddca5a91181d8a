"""What a payload may be: JSON, not too large, not too deep, free of what PostgreSQL cannot store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.errors import InvalidInput
from mainspring.model.payload import MAX_DEPTH, check_encoded, decode, encode, printable

LIMIT = 1_000

texts = some.text(some.characters(min_codepoint=1, codec="utf-8"))
json_values = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: some.lists(inner) | some.dictionaries(texts, inner),
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def code_of(value: Any, limit: int = LIMIT) -> str:
    with pytest.raises(InvalidInput) as caught:
        encode(value, what="payload", limit=limit)
    return caught.value.code


@given(value=json_values)
def test_json_comes_back_as_it_went_in(value: Any) -> None:
    assert decode(encode(value, what="payload", limit=1_000_000)) == value


def test_as_large_as_allowed_and_one_byte_more() -> None:
    assert len(encode("x" * (LIMIT - 2), what="payload", limit=LIMIT)) == LIMIT
    assert code_of("x" * (LIMIT - 1)) == "payload-too-large"


def test_the_error_for_something_large_says_how_large_and_what_to_do() -> None:
    with pytest.raises(
        InvalidInput, match=r"it has 2,002 bytes; at most 1,000 are allowed\. Store large data elsewhere"
    ):
        encode("x" * 2_000, what="payload", limit=LIMIT)


def test_as_deep_as_allowed_and_one_level_more() -> None:
    assert encode(nested(MAX_DEPTH), what="payload", limit=LIMIT)
    assert code_of(nested(MAX_DEPTH + 1)) == "payload-too-deep"


def test_endlessly_deep_values_are_refused_and_not_followed() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert code_of(nested(100_000)) == "payload-too-deep"
    assert code_of(loop) == "payload-too-deep"


def test_brackets_inside_text_are_not_depth() -> None:
    assert encode(["[{" * 100, '"[' * 100], what="payload", limit=LIMIT)


@pytest.mark.parametrize("value", ["\0", "a\0b", {"a\0": 1}, [["\0"]], "\\\0"])
def test_nul_is_refused_wherever_it_is(value: Any) -> None:
    assert code_of(value) == "payload-not-storable"


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", "a\\u0000b"])
def test_text_that_only_looks_like_nul_is_kept(value: str) -> None:
    assert decode(encode(value, what="payload", limit=LIMIT)) == value


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, ["a\ud800b"]])
def test_lone_surrogates_are_refused(value: Any) -> None:
    assert code_of(value) == "payload-not-storable"


@pytest.mark.parametrize("value", [object(), 1j, {(1, 2): 3}, lambda: None])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    assert code_of(value) == "payload-not-json"


def test_a_result_is_named_as_such() -> None:
    with pytest.raises(InvalidInput, match="The result cannot be kept") as caught:
        encode(object(), what="result", limit=LIMIT)
    assert caught.value.code == "result-not-json"


def test_encoded_payloads_are_held_to_the_same_rules() -> None:
    check_encoded(b'["\\\\u0000"]', what="payload", limit=LIMIT)
    with pytest.raises(InvalidInput, match="NUL"):
        check_encoded(b'["\\\\\\u0000"]', what="payload", limit=LIMIT)


def test_an_unknown_codec_is_not_guessed() -> None:
    with pytest.raises(InvalidInput, match="Codec 7 is not known"):
        decode(b"{}", codec=7)


@given(text=some.text(some.characters(codec=None)), limit=some.integers(1, 50))
def test_printable_text_can_be_stored_and_is_never_long(text: str, limit: int) -> None:
    shown = printable(text, limit)

    assert len(shown) <= limit
    assert "\0" not in shown
    shown.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1.5, -float("inf")]}, [None, (float("nan"),)]])
def test_what_json_would_turn_into_null_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="NaN or infinity") as caught:
        encode(value, what="result", limit=1_000)
    assert caught.value.code == "result-not-json"


def test_null_itself_is_fine() -> None:
    assert encode({"a": None, "b": [1.5]}, what="payload", limit=1_000) == b'{"a":null,"b":[1.5]}'
