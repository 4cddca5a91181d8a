"""Run ids: when they were made, and which lane they belong to, for life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from mainspring.errors import InvalidInput
from mainspring.model.ids import lane_of, lane_of_key, made_at, parse_run_id, run_id_bytes

NOON = datetime(2031, 5, 1, 12, tzinfo=UTC)

MAX_LANES = 1 << 12  # so many bits of an id say the lane
lanes = some.integers(0, MAX_LANES - 1)
instants = some.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=some.just(UTC))  # noqa: DTZ001


def one_id(lane: int = 0, now: datetime = NOON) -> UUID:
    return UUID(bytes=run_id_bytes(1, lane, now)[0])


@given(lane=lanes, now=instants)
def test_an_id_tells_its_lane_and_its_millisecond(lane: int, now: datetime) -> None:
    run_id = one_id(lane, now)

    assert lane_of(run_id) == lane
    assert abs(made_at(run_id) - now) < timedelta(milliseconds=2)


@given(lane=lanes)
def test_an_id_is_a_version_8_uuid(lane: int) -> None:
    assert one_id(lane).version == 8


@given(first=instants, second=instants)
def test_ids_sort_by_when_they_were_made(first: datetime, second: datetime) -> None:
    if abs(second - first) > timedelta(milliseconds=2):
        assert (one_id(now=first) < one_id(now=second)) == (first < second)


def test_ids_of_one_batch_differ() -> None:
    assert len(set(run_id_bytes(10_000, 3, NOON))) == 10_000


@given(key=some.text(), count=some.integers(1, MAX_LANES))
def test_a_key_has_one_lane_everywhere(key: str, count: int) -> None:
    lane = lane_of_key(1, key, count)

    assert 0 <= lane < count
    assert lane == lane_of_key(1, key, count)


def test_the_lane_of_a_key_never_changes_between_releases() -> None:
    assert [lane_of_key(1, f"invoice-{n}", 8) for n in range(8)] == [0, 2, 2, 1, 5, 2, 7, 7]


def test_a_run_id_is_read_from_text_as_people_paste_it() -> None:
    run_id = one_id()

    assert parse_run_id(str(run_id)) == parse_run_id(str(run_id).upper()) == parse_run_id(run_id) == run_id


@pytest.mark.parametrize(
    "text", ["", "x", "0199a1b2", UUID(int=7), "00000000-0000-4000-8000-000000000007", 5, None, "0" * 5_000]
)
def test_what_is_not_a_run_id_is_refused_by_name(text: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a run id") as caught:
        parse_run_id(text)
    assert caught.value.code == "invalid-run-id"
    assert len(str(caught.value)) < 300
