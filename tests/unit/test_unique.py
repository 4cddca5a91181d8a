"""Which runs are one: what people may say about it, and which keys come of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mainspring import Debounce, Unique
from mainspring.errors import InvalidInput
from mainspring.model.job import JobDefinition, definition_of
from mainspring.model.options import SubmitOptions
from mainspring.model.unique import MAX_BYTES, Wish, key_after_change, shown, unique_key, unique_key_in

MINUTE = timedelta(minutes=1)
NUMBER: Any = 30
TEXT: Any = "5m"


def payload(**arguments: Any) -> bytes:
    return msgspec.json.encode(arguments)


# ── what may be said ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Unique("no key!"), "invalid-unique-key"),
        (lambda: Unique(NUMBER), "invalid-unique-key"),
        (lambda: Unique("a", while_="running"), "invalid-while"),
        (lambda: Unique("a", within=0), "invalid-within"),
        (lambda: Unique("a", within=timedelta(days=400)), "invalid-within"),
        (lambda: Unique("a", within=TEXT), "invalid-within"),
        (lambda: Unique("a", within=5, while_="waiting"), "unique-while-and-within"),
        (lambda: Unique("a", on_conflict="ignore"), "invalid-on-conflict"),
        (lambda: Debounce(0), "invalid-period"),
        (lambda: Debounce(True), "invalid-period"),
        (lambda: Debounce(10, most_wait=5), "invalid-most-wait"),
        (lambda: Debounce(10, key="{a"), "invalid-unique-key"),
        (lambda: JobDefinition(name="j", unique=TEXT), "invalid-unique"),
        (lambda: JobDefinition(name="j", unique=NUMBER), "invalid-unique"),
        (lambda: JobDefinition(name="j", debounce=NUMBER), "invalid-debounce"),
        (lambda: JobDefinition(name="j", unique=Unique(), debounce=Debounce(3)), "unique-and-debounce"),
        (lambda: SubmitOptions.checked(unique=True), "invalid-unique"),
        (lambda: SubmitOptions.checked(unique=Unique(), debounce=Debounce(3)), "unique-and-debounce"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(make: Any, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.code == code


@pytest.mark.parametrize(
    "definition",
    [
        JobDefinition(name="j"),
        JobDefinition(name="j", unique=Unique("a.b", on_conflict="refuse")),
        JobDefinition(name="j", unique=Unique(within=MINUTE)),
        JobDefinition(name="j", debounce=Debounce(MINUTE, key="a")),
    ],
)
def test_a_definition_is_stored_and_read(definition: JobDefinition) -> None:
    document = msgspec.json.decode(msgspec.json.encode(definition.as_document()))

    assert definition_of(document) == definition
    assert ("unique" in document) == (definition.unique is not None), "or every job would get a new version for nothing"


def test_a_debounced_run_waits_for_ten_periods_unless_told() -> None:
    assert Debounce(MINUTE).most_wait == 10 * MINUTE
    assert Debounce(timedelta(days=300)).most_wait == timedelta(days=366)
    assert Debounce(MINUTE, most_wait=MINUTE).most_wait == MINUTE


def test_options_replace_what_the_job_says_as_a_whole() -> None:
    job = JobDefinition(name="j", unique=Unique("a"))
    last, other = Debounce(3), Unique("b")

    for options, wanted in (
        ({}, job.unique),
        ({"unique": False}, None),
        ({"debounce": False}, None),
        ({"unique": other}, other),
        ({"debounce": last}, last),
        ({"unique": False, "debounce": last}, last),
    ):
        assert SubmitOptions.checked(**options).uniqueness_for(job) == wanted


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_wish_says_the_key_and_the_rule() -> None:
    given = payload(customer="acme", n=1)

    assert Unique("customer").wish_for(given) == Wish("customer\tacme", "waiting_or_running", None, None, False)
    assert Unique("customer", while_="waiting").wish_for(given).rule == "waiting"
    assert Unique("{n}", within=MINUTE, on_conflict="refuse").wish_for(given) == Wish(
        "{n}\t1", "within", 60, None, True
    )
    assert Debounce(3, key="n").wish_for(given) == Wish("n\t1", "debounce", 3, 30, False)
    assert Debounce(3).wish_for(given).key == "*\t"


def test_all_arguments_are_compared_whatever_their_order() -> None:
    one, other = b'{"a": 1, "b": {"c": 2, "d": 3}}', b'{"b":{"d":3,"c":2},"a":1}'

    assert Unique().wish_for(one) == Unique().wish_for(other)
    assert Unique().wish_for(one) != Unique().wish_for(b'{"a":1}')


def test_a_long_key_fits_an_index_and_is_still_itself() -> None:
    long, longer = (unique_key("a", payload(a="\u0001" * 199 + end)) for end in ("x", "y"))

    assert len(long.encode()) <= MAX_BYTES
    assert long != longer
    assert long.startswith("a\t")


def test_a_run_carries_its_key_in_its_headers() -> None:
    assert unique_key_in(None) is None
    assert unique_key_in('{"traceparent": "x"}') is None
    assert unique_key_in('{"@unique": "within a b\\tc d"}') == "a b\tc d"
    assert shown("a b\tc d") == "a b=c d"


def test_other_arguments_have_another_key_if_they_differ_in_it() -> None:
    assert key_after_change("customer\tacme", payload(customer="acme", n=2)) == "customer\tacme"
    assert key_after_change("customer\tacme", payload(customer="bolt")) == "customer\tbolt"
    assert key_after_change("*\t", payload(n=3)) == "*\t"
    everything = Unique().wish_for(payload(n=1)).key
    assert key_after_change(everything, payload(n=1)) == everything
    assert key_after_change(everything, payload(n=2)) != everything
