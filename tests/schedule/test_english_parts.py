"""Sentences put together from parts: each part has its effect, or the sentence is refused. None is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english import refusals
from mainspring.schedule.text import parse

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Schedule

NOW = datetime(2026, 11, 17, 6, 30, tzinfo=UTC)


@pytest.fixture
def without_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What might be written instead is read as well, and most of these sentences are refused."""
    monkeypatch.setattr(refusals, "MAX_TRIED", 0)


def understood(text: str, zone: str = "UTC") -> Schedule | None:
    try:
        return parse(text, zone=zone, now=NOW)
    except InvalidSchedule:
        return None


# ── steps, compared with a calculation of their own ─────────────────────────────────────────────────────────────

STEPS = {"every hour": 60, "every 2 hours": 120, "every 6 hours": 360, "every 15 minutes": 15}
PAST = {"": None, "at :15": {15}, "at :00 and :45": {0, 45}}
WINDOWS = {
    "": None,
    "from 02:00": (120, 1439),
    "between 08:00 and 18:00": (480, 1080),
    "from 08:30 to 18:15": (510, 1095),
}
BEGINNINGS = {
    "": None,
    "counted from 2026-11-01": None,
    "counted from 2026-11-01 02:00": 120,
    "counted from 2026-11-01 08:00": 480,
    "counted from 2026-11-01 02:10": 130,
    "counted from 2026-11-01 08:30": 510,
    "starting 2026-11-02 02:00": 120,
    "starting 2026-11-02 03:15": 195,
    "offset by 10 minutes": 10,
}


def minutes_of_day(step: int, past: set[int] | None, window: tuple[int, int] | None, begins: int | None) -> set[int]:
    """Every minute of a day is asked: is it a step from the beginning, or one of the minutes of an hour that is?"""
    if begins is None:
        begins = window[0] if window else 0
    first, last = window or (0, 1439)
    if past is None:
        return {each for each in range(first, last + 1) if (each - begins) % step == 0}
    hours = {hour for hour in range(24) if (60 * (hour - begins // 60)) % step == 0}
    return {each for each in range(first, last + 1) if each // 60 in hours and each % 60 in past}


@pytest.mark.usefixtures("without_offers")
def test_steps_begin_where_it_is_said_or_are_refused() -> None:
    day = datetime(2026, 11, 20, tzinfo=UTC)
    accepted = 0
    for step, past, window, begins, days in product(STEPS, PAST, WINDOWS, BEGINNINGS, ("", "on fridays")):
        text = " ".join(filter(None, (step, past, window, days, begins)))
        if (schedule := understood(text)) is None:
            continue
        accepted += 1
        found = [each.nominal_at for each in schedule.between(day, day + timedelta(days=1))]
        wanted = minutes_of_day(STEPS[step], PAST[past], WINDOWS[window], BEGINNINGS[begins])
        assert {at.hour * 60 + at.minute for at in found} == wanted, text
    assert accepted > 150


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("every 6 hours at :15 counted from 2026-01-01 02:00", "15 2-20/6 * * *"),
        ("every 6 hours at :15 counted from 2026-01-01 08:15", "15 2-20/6 * * *"),
        ("every 6 hours at :15 from 02:00", "15 2-20/6 * * *"),
        ("every hour at :15 counted from 2026-01-01 02:30", "15 * * * *"),
    ],
)
def test_what_hours_are_counted_from_says_in_which_hours_the_minutes_are(text: str, cron: str) -> None:
    assert parse(text).text == cron


@pytest.mark.parametrize(
    ("text", "problem", "offered"),
    [
        ("every 6 hours at :15 counted from 2026-01-01 02:30", "not clear in which hour", "begin with a full hour"),
        ("every 6 hours at :15 from 02:30", "not clear in which hour", "'every 6 hours at :15 from 02:00'"),
        ("every 30 minutes between 9am and 5pm counted from 2026-01-01 09:10", "do not agree", "Say it once"),
        ("every 30 minutes between 9am and 5pm starting 2026-01-01 09:10", "do not agree", "from 2026-01-01 09:10'"),
        ("every 7 hours between 9am and 5pm counted from 2026-01-01", "do not agree", "Say it once"),
        ("every 6 hours offset by 1 hour counted from 2026-01-01 02:00", "do not agree", "Say it once"),
        ("every other day at 09:00 counted from 2026-01-01 03:00", "none of its times", "Leave out that time"),
        ("every 1 june at 09:00 in july", "names months twice", "every year on"),
        ("every hour on the last day of the quarter in july", "a quarter and a month", "every quarter on"),
        ("every month on the last day of the quarter at 09:00", "a quarter and a month", "every quarter on"),
        ("every hour on the 1st of the month except sundays", "goes with days of the week", "every day except"),
        ("tomorrow at 9am in july", "go with what recurs", "starting 2027-01-01"),
        ("in 15 minutes except sundays", "go with what recurs", "starting 2027-01-01"),
        ("tomorrow at 9am every day", "both one day and how often", "starting 2027-01-01"),
    ],
)
def test_what_says_two_things_is_refused(text: str, problem: str, offered: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        parse(text, now=NOW)
    assert problem in refused.value.message
    assert offered in (refused.value.hint or "")


# ── every part has its effect, and is told again ────────────────────────────────────────────────────────────────

OFTEN = (
    *("every 6 hours", "every 15 minutes", "every 7 hours", "every day at 09:00", "every other day at 09:00"),
    *("every 2 weeks on monday at 09:00", "every 2 months on the 2nd at 09:00", "every quarter on the 2nd at 09:00"),
    *("every 2 quarters on the last day at 09:00", "every monday at 09:00", "every 15th of the month at 09:00"),
    *("every last day of the quarter at 09:00", "every year on 1 june at 09:00", "tomorrow at 09:00", "in 15 minutes"),
)
PARTS = {  # each changes whatever it goes with
    "time": ("at :15",),
    "window": ("between 8am and 6pm", "from 02:30"),
    "day": ("on tuesdays", "on the 3rd of the month", "on the last friday of the month"),
    "month": ("in july and august",),
    "exception": ("except mondays and tuesdays", "except in march to june and august to december"),
    "beginning": ("counted from 2026-11-02 01:10", "offset by 70 minutes", "starting 2027-02-03 03:10"),
    "end": ("until 2027-09-01", "10 times", "for 300 days"),
}


@pytest.mark.usefixtures("without_offers")
@pytest.mark.parametrize("often", OFTEN)
def test_no_part_of_a_sentence_is_left_out_silently(often: str) -> None:
    texts: dict[tuple[str, ...], str | None] = {(): _canonical(often)}
    for count in (1, 2):
        for kinds in combinations(PARTS, count):
            for parts in product(*(PARTS[kind] for kind in kinds)):
                text = texts[parts] = _canonical(" ".join((often, *parts)))
                without = [texts[parts[:at] + parts[at + 1 :]] for at in range(count)]
                assert text is None or text not in without, parts


def _canonical(text: str) -> str | None:
    """Of what is understood; and then its words mean the same again."""
    found = understood(text, "Europe/Berlin")
    if found is None:
        return None
    again = parse(found.words, now=NOW)
    assert _firsts(again) == _firsts(found), found.words
    return found.text


def _firsts(schedule: Schedule) -> list[datetime]:
    """Some instants before and after its zone's clock changed."""
    found = []
    for at in (
        datetime(2026, 11, 17, tzinfo=UTC),
        datetime(2027, 6, 30, tzinfo=UTC),
        datetime(2028, 3, 25, tzinfo=UTC),
    ):
        nominal = at
        for _ in range(10):
            following = schedule.next_after(nominal)
            if following is None:
                break
            nominal = following.nominal_at
            found.append(nominal)
    return found


# ── every other … ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("every other day at 06:00 and 17:00", "17:17 19:06 19:17 21:06"),
        ("every 2 weeks on tuesday at 06:00 and 17:00", "17:17 01:06 01:17 15:06"),
        ("every 2 months on the 1st and 20th at 09:00", "20:09 01:09 20:09 01:09"),
        ("every other day at 09:00 starting 2026-12-01 10:00", "03:09 05:09 07:09 09:09"),
        ("every 2 weeks on monday at 09:00 and 17:00 starting 2026-12-07 10:00", "07:17 21:09 21:17 04:09"),
    ],
)
def test_all_times_of_every_other_day_are_on_the_same_days(text: str, days: str) -> None:
    schedule, found, at = parse(text, now=NOW), [], NOW
    for _ in range(4):
        following = schedule.next_after(at)
        assert following is not None
        at = following.nominal_at
        found.append(f"{at:%d:%H}")
    assert " ".join(found) == days


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("every 2 quarters on the 1st at 09:00", "2027-01-01"),
        ("every other quarter on the last day at 09:00", "2026-12-31"),
        ("every 2 quarters on the first monday at 09:00 counted from 2027-02-01", "2027-04-05"),
    ],
)
def test_every_other_quarter_is_counted_in_quarters(text: str, first: str) -> None:
    schedule = parse(text, now=NOW)
    found = schedule.next_after(NOW)
    assert found is not None
    assert f"{found.nominal_at:%Y-%m-%d}" == first
