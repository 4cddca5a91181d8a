"""Which occurrence a run is for travels as one short text, and reads as the headers that people know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.headers import checked_headers, read_headers
from mainspring.model.occurrence import PACKED, RunOccurrence, occurrence_of

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def test_a_packed_occurrence_reads_as_headers() -> None:
    document = '{"@occurrence": "3 1794916800 3600 nightly report"}'

    assert read_headers(document) == {
        "schedule": "nightly report",
        "schedule_version": "3",
        "occurrence": "2026-11-17T12:00:00.000000Z",
        "previous_occurrence": "2026-11-17T11:00:00.000000Z",
    }
    assert occurrence_of(read_headers(document)) == RunOccurrence(
        schedule="nightly report", version=3, nominal_at=NOON, due_at=NOON, previous_at=NOON - timedelta(hours=1)
    )


def test_the_first_occurrence_has_none_before_it() -> None:
    occurrence = occurrence_of(read_headers('{"@occurrence": "1 1794916800 - first"}'))

    assert occurrence is not None
    assert occurrence.interval == (None, NOON)


@pytest.mark.parametrize(
    ("seconds", "instant"),
    [
        ("1794916800.000001", NOON + timedelta(microseconds=1)),
        ("-1.5", datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)),
        ("253402300799.999999", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_instants_are_exact_to_the_microsecond(seconds: str, instant: datetime) -> None:
    occurrence = occurrence_of(read_headers(f'{{"@occurrence": "1 {seconds} - exact"}}'))

    assert occurrence is not None
    assert occurrence.nominal_at == instant


def test_what_is_spread_says_when_it_was_due() -> None:
    headers = read_headers('{"@occurrence": "1 1794916800 - spread", "@due": "12.345"}')
    occurrence = occurrence_of(headers)

    assert headers["occurrence_due"] == "2026-11-17T12:00:12.345000Z"
    assert occurrence is not None
    assert occurrence.due_at == NOON + timedelta(seconds=12, milliseconds=345)


def test_other_headers_stay_as_they_are() -> None:
    assert read_headers(None) == {}
    assert read_headers('{"traceparent": "00-aa-bb-01"}') == {"traceparent": "00-aa-bb-01"}
    long = {"schedule": "a", "schedule_version": "1", "occurrence": "2026-11-17T12:00:00.000000Z"}
    assert occurrence_of(long) == RunOccurrence(schedule="a", version=1, nominal_at=NOON, due_at=NOON, previous_at=None)


def test_nobody_can_give_a_run_a_packed_occurrence() -> None:
    with pytest.raises(InvalidInput):
        checked_headers({PACKED: "1 1794916800 - mine"})
