"""What H picks: every choice that can happen, and no other."""

from __future__ import annotations

import calendar
from collections import Counter

import pytest
from tests.schedule.asking import utc, walls

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.text import parse

JOBS = [f"job-{number}" for number in range(400)]


def picked(text: str, place: int) -> Counter[int]:
    """How often each number is picked, and that all jobs fire."""
    schedule = parse(text)
    assert [job for job in JOBS if schedule.never_fires(job=job) is not None] == []
    crons = [Cron.parse(schedule.when.text).resolved(job) for job in JOBS]
    return Counter(value for cron in crons for value in cron.fields[place].values)


def months_with(day: int) -> set[int]:
    return {month for month in range(1, 13) if calendar.monthrange(2024, month)[1] >= day}


@pytest.mark.parametrize("day", [1, 28, 29, 30, 31])
def test_h_picks_a_month_that_has_the_day(day: int) -> None:
    assert set(picked(f"0 0 {day} H *", 4)) == months_with(day)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("0 0 H(28-31) 2 *", 3, {28, 29}),
        ("0 0 H(28-31) 4 *", 3, {28, 29, 30}),
        ("0 0 H(28-31) 2,5 *", 3, {28, 29, 30, 31}),
        ("0 0 31W H *", 4, {1, 3, 5, 7, 8, 10, 12}),
        ("0 0 31 H(4-6) *", 4, {5}),
        ("0 0 * * H(1-7)", 5, {0, 1, 2, 3, 4, 5, 6}),
        ("0 0 * * H(5-7)", 5, {0, 5, 6}),
        ("0 0 0 29 H(1-3) * 2026", 4, {1, 3}),  # no leap year
        ("0 0 0 29 H(1-3) * 2028", 4, {1, 2, 3}),
        ("0 0 0 */31 1 H 2026", 5, {4}),  # a star: 1 January and the weekday; it is a Thursday
    ],
)
def test_h_picks_what_can_happen(text: str, place: int, expected: set[int]) -> None:
    found = picked(text, place)

    assert set(found) == expected
    assert min(found.values()) > len(JOBS) / len(expected) / 3  # evenly


def test_h_in_several_fields_agrees() -> None:
    found = {
        tuple(
            int(part)
            for part in walls(parse("0 0 H(30-31) H(2-4) *"), "2026-01-01", "2027-01-01", job=job)[0][5:10].split("-")
        )
        for job in JOBS
    }

    assert found == {(3, 30), (3, 31), (4, 30)}


def test_a_job_that_could_fire_keeps_its_number() -> None:
    free, bound = (Counter({job: Cron.parse(text).resolved(job).fields[4].values[0] for job in JOBS})
                   for text in ("0 0 1 H *", "0 0 31 H *"))  # fmt: skip

    assert [job for job in JOBS if free[job] in months_with(31) and free[job] != bound[job]] == []


def test_a_job_on_sunday_fires_on_sundays() -> None:
    days = {utc(walls(parse("0 0 * * H(7-7)"), "2026-01-01", "2026-01-10", job=job)[0]).weekday() for job in JOBS[:5]}

    assert days == {6}


@pytest.mark.parametrize("text", ["0 0 H(30-31) 2 *", "0 0 31 H(4-4) *", "0 0 0 29 H(2-2) * 2026"])
def test_what_no_job_can_do_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)

    assert caught.value.code == "never-fires"


def test_whether_it_ever_fires_is_asked_for_the_job_that_will_run() -> None:
    text = "0 0 H * * starts=2026-02-01 ends=2026-02-11"
    outcomes = Counter[bool]()
    for job in JOBS:
        day = Cron.parse("0 0 H * *").resolved(job).fields[3].values[0]
        try:
            parse(text, job=job)
        except InvalidSchedule as error:
            assert error.code == "never-fires"  # noqa: PT017 - both outcomes are checked
            assert day > 10
            outcomes[False] += 1
        else:
            assert day <= 10
            outcomes[True] += 1
    assert len(outcomes) == 2
