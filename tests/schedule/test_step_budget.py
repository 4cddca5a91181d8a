"""Any text ends in a schedule or in an error with a code, after a number of steps that its length bounds."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english.sentence import MAX_LENGTH as MAX_SENTENCE
from mainspring.schedule.english.vocabulary import EVERYTHING
from mainspring.schedule.text import MAX_LENGTH, parse

NOW = datetime(2026, 11, 16, 3, 7, 42, tzinfo=UTC)
BUDGET = 1_500_000  # calls and returns; the worst that is known takes a third
CODES = {
    "invalid-schedule", "invalid-english", "invalid-cron", "invalid-interval", "invalid-rrule", "invalid-instant",
    "schedule-too-large", "schedule-too-sparse", "contradictory-bounds", "max-runs-needs-start", "never-fires",
    "unknown-zone", "unknown-calendar",
}  # fmt: skip


def steps_of(text: str) -> tuple[int, str | None]:
    """How many calls and returns reading takes, and the code of the error."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse(text, zone="Europe/Berlin", now=NOW)
        code = None
    except InvalidSchedule as error:
        code = error.code
    finally:
        sys.setprofile(before)
    return steps, code


OTHERS = ["1", "2", "15", "9", "31st", "9am", "09:00", "2027-01-01", "1st", ",", ";", "/", "-", "..", "UTC", "EST",
          "zz", "Europe/Berlin", "tuseday", "until", "twice", "1h", "*", "|", "but not", "(", ")", "RRULE:",
          "FREQ=DAILY", "PT1M", "zone=UTC", "\x00", "٣"]  # fmt: skip
PIECES = st.lists(st.sampled_from([*sorted(EVERYTHING), *OTHERS]), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(st.text(max_size=MAX_SENTENCE), PIECES.map(" ".join), PIECES.map("".join)),
    st.integers(1, MAX_SENTENCE),
    st.sampled_from([MAX_SENTENCE, MAX_LENGTH]),
)
@example("1h", 500, MAX_SENTENCE)
@example("on the 1h", 500, MAX_SENTENCE)
@example("zzzz ", 100, MAX_SENTENCE)
@example("1st, ", 500, MAX_SENTENCE)
@example("every day at 9 and ", 100, MAX_SENTENCE)
@example("every 1st,2nd monday,tuesday,", 100, MAX_SENTENCE)
def test_any_text_is_read_or_refused_within_the_budget(text: str, times: int, limit: int) -> None:
    steps, code = steps_of((text * times)[:limit])

    assert steps < BUDGET
    assert code is None or code in CODES


@pytest.mark.parametrize("words", ["every monday at 9am and ", "first and ", "9am, ", "from 9 to ", "in "])
def test_twice_the_text_takes_no_more_than_a_few_times_the_steps(words: str) -> None:
    """Reading goes back, but not by powers of two."""
    half, _ = steps_of(f"every day at 9 {words * 10}"[: MAX_SENTENCE // 2])
    whole, _ = steps_of(f"every day at 9 {words * 20}"[:MAX_SENTENCE])

    assert whole < 8 * half
