"""What is offered to whoever wrote something else: every offer is understood, and says what may have been meant."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice

import pytest
from tests.schedule.test_english import REFUSED
from tests.schedule.test_english_forms import SENTENCES

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english.reader import Rewrite
from mainspring.schedule.english.refusals import MAX_TRIED, Refusal
from mainspring.schedule.text import parse

NOW = datetime(2026, 11, 16, 3, 7, 42, tzinfo=UTC)
OTHERS = """
once a day
2nd,third mon,wed,thu of march 17:00
1st monday of sep,oct,nov 17:00
1 of jan,april,july,oct 00:00
every 24 hours synchronized
every 5 mins synchronized
every 20 mins starting on the 7th min
after 5 minutes
at 5:00 pm
every weekend at 9am
weekly at 9am
daily
weekly
monthly
yearly
quarterly
semiannually
annually
weekday 09:00
Mon *-*-* 09:00:00
Mon,Wed 09:00
sat,sun 10:00
every day at 0900
every day at 9h
every day at 9 o'clock
every day by 9am
all days at 9am
midnight
12 midnight
twice a day
every month on the 1st at midnight
beginning of the month
month end at 18:00
every hour during business hours
every 15 minutes during working hours
every hour between 9 and 17
every hour between 9 and 5
every hour from 9-17
every hour from 9 to 5
every hour from 9 before 5pm
every hour from 2027-01-01 9 to 5pm
tomorrow 9 to 5pm
every couple of hours
every few minutes
every 1w
every 5 minutes starting at 10:00
every 5 minutes starting now
every 6 hours offset by 2 hours at :15
every 12 hours offset by 90 minutes at :15
every hour at :15 offset by 30 minutes
every 2 hours at :15 from 9am to 5pm offset by 30 minutes
tomorrow
now
right now
immediately
tomorrow for 10 days
in 15 minutes, 5 times
in 15 minutes for 10 days
tomorrow at 9am and 2026-12-24 at 10am, 5 times
at 2026-12-24 18:00
24/12/2026 18:00
12/24/2026 at 18:00
christmas at 09:00
every christmas
new year's day at 09:00
every leap day at 09:00
first monday at 09:00
first monday of january at 9am
2nd to last friday of the month at 9am
the third thursday at 9am
mon, wed, fri at 9am
mon/wed/fri at 9am
mon wed fri at 9am
m-f at 9am
mwf at 9am
every day excluding holidays at 9am
every weekday at 9am until december
every weekday at 9am until the end of the year
every weekday at 9am after 2026-12-01
every day at 9am 5x
every day at 9am EST
every day at 9am in EST
every day at 9am in est
every day at 9am PST
every day at 9am PDT
every day at 9am CET
every day at 9am BST
every day at 9am IST
every day at 9am in new york
every day at 9am new york time
every day at 9am eastern time
every day at 9am pacific time
every day at 9am local time
every day at 9am Z
every day at 9am UTC+2
every day at 9am +02:00
quarterly on the 31st at 18:00
every 3 months on the 31st at 18:00
every hour between 9am and 9am
every 30 minutes from 9am to 9am
every day at 24:00
weekly on the 15th at 09:00
summer
sunrise
every sunset
random
sometime
whenever
never
reboot
every time
every
every hour except at noon
every hour except midnight
every hour except 3am
bi-weekly on monday at 9am
semi-monthly
semimonthly
semi-annually
biannual
every week at monday 9am
on monday at 9am
monday 9am
this monday at 9am
hourly at 15
at half past nine every day
every day at half past nine
every day at nine
every day at 9pm-ish
every day around 9am
at 9
at 09:00 on day-of-month 15
At 09:00 on Monday.
every 15 minutes past the hour
every 25 december
on the 1st of january, april, july and october at 9am
every 3rd day at 9am
every fifth minute
every 10th minute
every 2nd hour
every third hour
every second hour
every second week on monday at 9am
every 15 minutes on the hour
24.12.2026 18:00
01/02/2027 at 9am
every friday night at 2am
every morning at 6pm
every 10 minutes from 02:00
every weekday at 09:00 until 2027-03-01 and every sunday at 11:00
every 5 minutes until 1 March 2027 at 09:00
"""
TEXTS = sorted({*(row[0] for row in REFUSED), *OTHERS.strip().splitlines()})


def error_of(text: str) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text, zone="Europe/Berlin", now=NOW)
    return caught.value


def offers_of(text: str) -> list[str]:
    """The sentences that the hint quotes; the words of `Allowed here` are none."""
    hint = re.sub(r"Allowed here: .*?\.(?= For example|$)", "", error_of(text).hint or "")
    return re.findall(
        r"'([^']+)'", hint[hint.index("Write ") :] if "Write '" in hint else hint.partition("For example")[2]
    )


@pytest.mark.parametrize("text", TEXTS)
def test_every_offer_is_understood(text: str) -> None:
    error = error_of(text)
    suggestion = str(error.fields["suggestion"])
    for offer in [*offers_of(text), *([suggestion] if suggestion else [])]:
        assert parse(offer, zone="Europe/Berlin", now=NOW).never_fires() is None, offer


def test_almost_every_hint_has_an_offer() -> None:
    without = [text for text in TEXTS if not offers_of(text)]

    assert len(TEXTS) > 150
    assert len(without) <= 5, without


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("monday 9am", ["every monday 9am", "on 2026-11-23 9am"]),
        ("at 9", ["every day at 09:00", "today at 09:00", "tomorrow at 09:00", "every day at 21:00"]),
        ("hourly at 15", ["hourly at :15"]),
        ("every day at 9 o'clock", ["every day at 09:00", "every day at 21:00"]),
        ("every weekend at 9am", ["every saturday and sunday at 9am", "every saturday at 9am", "every sunday at 9am"]),
        ("weekly", ["weekly on monday at 09:00", "weekly on monday at 00:00"]),
        (
            "every 3 months on the 31st at 18:00",
            ["every 3 months on the last day at 18:00", "every 3 months on the 31st, where there is one, at 18:00"],
        ),
        ("every third hour", ["every 3 hours"]),
        ("evry tuseday at noon", ["every tuesday at noon"]),
        ("01/02/2027 at 9am", ["2027-02-01 at 9am", "2027-01-02 at 9am"]),
        ("every hour from 9 to 5pm", ["every hour from 09:00 to 5pm", "every hour from 21:00 to 5pm"]),
        ("every 8 hours from 9 to 5am", ["every 8 hours from 09:00 to 5am", "every 8 hours from 21:00 to 5am"]),
        (
            "every 12 hours from 8 to 10 am",
            ["every 12 hours from 08:00 to 10 am", "every 12 hours from 20:00 to 10 am"],
        ),
        ("every 4 hours from one to 3am", ["every 4 hours from 01:00 to 3am", "every 4 hours from 13:00 to 3am"]),
        ("every 12 hours from 6 to 11am on weekdays", ["every 12 hours from 06:00 to 11am on weekdays"]),
        (
            "every hour starting at 10 to 5am",
            ["every hour starting at 10:00 to 5am", "every hour starting at 22:00 to 5am"],
        ),
    ],
)
def test_what_is_offered_is_the_sentence_with_one_part_made_clear(text: str, offers: list[str]) -> None:
    assert offers_of(text) == offers
    assert error_of(text).fields["suggestion"] == offers[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("every 6 hours offset by 2 hours at :15", "an offset and minutes past the hour both say"),
        ("every hour at :15 offset by 30 minutes", "an offset and minutes past the hour both say"),
        ("tomorrow at 9am and 2026-12-24 at 10am, 3 times", "'3 times' goes with what recurs, and nothing here does"),
        ("in 15 minutes and tomorrow at 9am for 2 days", "'for 2 days' goes with what recurs, and nothing here does"),
        ("in 15 minutes, 5 times", "'5 times' goes with what recurs, and nothing here does"),
        ("every 6 hours offset by 6 hours", "an offset is shorter than the step"),
    ],
)
def test_a_part_that_another_contradicts_is_refused_and_not_dropped(text: str, problem: str) -> None:
    assert problem in error_of(text).message


@pytest.mark.parametrize("now", [NOW, datetime(2028, 2, 29, 3, tzinfo=UTC)])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("in 474 years at 9am", "that day is after the year 2499"),
        ("in 10000 years at 9am", "that day is after the year 2499"),
        ("every hour starting in 992 years", "that day is after the year 2499"),
        ("every hour until in 992 years", "that day is after the year 2499"),
        ("every hour for 992 years", "'for 992 years' is beyond the year 2499"),
        ("on 2600-01-01 at 09:00", "2600 is not a year of schedules"),
        ("every day at 09:00 until 2500-01-01", "2500 is not a year of schedules"),
        ("every day at 09:00 starting 1 march 2999", "2999 is not a year of schedules"),
        ("every day at 09:00 starting 1969-12-31", "1969 is not a year of schedules"),
    ],
)
def test_a_year_beyond_those_of_schedules_is_refused_on_every_day(text: str, problem: str, now: datetime) -> None:
    with pytest.raises(InvalidSchedule, match=problem) as refused:
        parse(text, zone="Europe/Berlin", now=now)
    assert refused.value.code == "invalid-instant"
    assert "Schedules end with the year 2499" in (refused.value.hint or "")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_the_last_day_of_schedules_can_be_written(zone: str) -> None:
    assert parse("on 2499-12-31 at 09:00", zone=zone).text.startswith("2499-12-31")
    assert parse("every day at 09:00 until 2499-12-31", zone=zone).ends_at is not None


def test_offers_that_are_refused_are_not_shown() -> None:
    """The filter itself: an offer with a fault of its own gives way to what is offered for that, or to nothing."""
    asked = []

    def refusal_of(text: str) -> Refusal | None:
        asked.append(text)
        if text == "half":
            return Refusal(text, 0, "unclear", rewrites=(Rewrite("good"), Rewrite("bad")))
        return None if text == "good" else Refusal(text, 0, "unclear", rewrites=(Rewrite("bad"),))

    error = Refusal("x", 0, "unclear", rewrites=(Rewrite("bad"), Rewrite("half"))).as_error(refusal_of, str)
    assert error.hint == "Describe it as a cron expression."
    assert len(asked) == MAX_TRIED, "offers for offers for offers end"
    assert Refusal("x", 0, "unclear", rewrites=(Rewrite("half"),)).as_error(refusal_of, str).hint == "Write 'good'."


# ── there and back ──────────────────────────────────────────────────────────────────────────────────────────


COMPOSED = [
    "every year on 29 february at 9am",
    "monthly on the 31st where there is one at 9am",
    "every 15 minutes between 9am and 5pm except in august",
    "every hour at half past in june and july",
    "every hour on 24 december",
    "every 15 minutes from 2026-12-01 to 2026-12-31",
    "every day at 09:00 UTC",
    "every other tuesday at noon, 5 times",
    "every 90 minutes starting 2026-12-01 08:00",
    "on 2026-12-24 at 9am and 5pm",
]


@pytest.mark.parametrize("text", [*SENTENCES, *COMPOSED])
def test_the_words_for_a_sentence_are_refused_or_mean_the_same(text: str) -> None:
    schedule = parse(text, zone="Europe/Berlin", now=NOW)
    try:
        again = parse(schedule.words, now=NOW)
    except InvalidSchedule as error:
        assert "once, or every time" in error.message, schedule.words  # noqa: PT017 - it may as well be read
        return
    end = datetime(2029, 1, 1, tzinfo=UTC)
    found = [each.nominal_at for each in islice(schedule.between(NOW, end), 50)]
    assert [each.nominal_at for each in islice(again.between(NOW, end), 50)] == found, schedule.words


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("every 1,5 hours", ["every 1.5 hours"]),
        ("in 2,5 hours", ["in 2.5 hours"]),
        ("every hour for 1,5h", ["every hour for 1.5h"]),
        ("every hour from june 1 to august 31", ["every hour in june to august", "from 2027-06-01 to 2027-08-31"]),
        ("every hour between 1 june and 31 august", ["every hour in june to august", "from 2027-06-01 to 2027-08-31"]),
        ("every hour from 15 november to 10 february", ["from 2027-11-15 to 2028-02-10", "only=NAME"]),
    ],
)
def test_what_people_of_other_habits_write_is_offered_as_it_is_written_here(text: str, offers: list[str]) -> None:
    hint = error_of(text).hint or ""
    assert all(offer in hint for offer in offers), hint


@pytest.mark.parametrize("text", ["every hour from 1 june 2027 to 31 august 2027", "every 1,500 minutes"])
def test_a_year_or_thousands_leave_nothing_open(text: str) -> None:
    assert parse(text, now=NOW).text


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("every christmas at 09:00", 6),
        ("every year on new year's day at 09:00", 14),
        ("every weekday at 09:00 except thanksgiving", 30),
        ("good friday at noon", 0),
        ("on holidays at 09:00", 3),
    ],
)
def test_days_that_only_calendars_know_are_refused_with_a_word_about_calendars(text: str, position: int) -> None:
    error = error_of(text)
    assert error.fields["position"] == position
    assert "calendar" in (error.hint or "")
    assert "not=holidays" in (error.hint or "")
