"""Whatever is offered instead of a text can be taken: it is a schedule, is not over, and says all that was written."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from tests.schedule import test_cron, test_cron_eventbridge, test_english, test_english_hints, test_forms

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english.reader import Token, tokens_of
from mainspring.schedule.english.vocabulary import DAY_NUMBERS, MONTH_NUMBERS, WEEKDAYS
from mainspring.schedule.text import parse
from mainspring.schedule.zone_letters import LETTERS
from mainspring.schedule.zones import zone_names

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENING = datetime(2026, 11, 16, 20, 0, tzinfo=UTC)
AUDITED = """
@quarterly
@fortnightly
@biweekly
@sunday
@dialy zone=Asia/Tokyo
0 9 * * mon..fri
0 9 * * mon..fri Europe/Berlin
CRON_TZ=Europe/Berlin 0 9 * * mon..fri spread=5m
0 0 * * 5#-1
H(0-29 * * * *
* ? * * *
0 0 ?/2 * *
H(5-3) * * * *
24/7
1-5/10 * * * *
* * * * * * * *
0 9 * * * EST
every 15 minutes until 6pm
every 15 minutes until 6pm in Europe/Berlin
every day at 9 zone=Europe/Berlin ends=2027-03-01
every day at 9 until 1 march in Europe/Berlin
every hour between 9am and 9am in Europe/Berlin until 1 march
every hour except between 1am and 5am zone=Europe/Berlin
tomorrow at 9am or 5pm in Europe/Berlin
tomorrow at 9am in Asia/Tokyo for 10 days
on 2026-12-24 18:00, 5 times
tomorrow at 9am in Asia/Tokyo and on 2026-12-24 at 10am, 5 times
this morning at 3am in Europe/Berlin
every weekend at 9am in Asia/Tokyo until 1 march
every second monday at 9am in Asia/Tokyo until 1 march
every hour on the 15th in Asia/Tokyo until 1 march
every 4 hours starting at 8am in Asia/Tokyo until 1 march
every 10 minutes from 02:00 on mondays in Asia/Tokyo
twice a day in Asia/Tokyo until 1 march
weekly at 9am in Asia/Tokyo until 1 march
next friday at 9am in Asia/Tokyo
monthly on the 31st at 9am in Asia/Tokyo until 1 march
every 31st at 9am in Asia/Tokyo
every tuseday at noon in Asia/Tokyo
tridaily at 9am
biyearly on 1 march at 9am
every friday at midnight in Asia/Tokyo
0 8 * * * | every weekday at 9
every day at 9 but not 0 9 1 1 *
"""
TEXTS = sorted(
    {
        *AUDITED.strip().splitlines(),
        *test_english_hints.TEXTS,
        *(row[0] for row in test_cron.REFUSED),
        *(row[0] for row in test_cron_eventbridge.MISREAD),
        *(row[0] for row in test_english.REFUSED),
        *(row[0] for row in test_forms.REFUSED),
    }
)
ABOUT_ITSELF = {  # where what is unclear is the very part that the offer goes without
    "every hour between 9am and 9am",
    "every hour between 9am and 9am in Europe/Berlin until 1 march",
    "every 30 minutes from 9am to 9am",
    "every 4 hours starting at 8am",
    "every 4 hours starting at 8am in Asia/Tokyo until 1 march",
    "every 2 hours starting at noon",
    "every 10 minutes from 02:00",
    "every 10 minutes from 02:00 on mondays in Asia/Tokyo",
    "every 5 minutes starting at 10:00",
    "tomorrow at 9am or 5pm",
}


def offers_of(error: InvalidSchedule) -> list[str]:
    """What the hint says to write, or asks whether it was meant; not its examples."""
    hint = (error.hint or "").partition("For example: ")[0].partition("Allowed here: ")[0]
    written = re.search(r"Write (.*)\.", hint)
    asked = re.search(r"Did you mean '(.*)'\?", hint)
    named = error.code in ("unknown-zone", "unknown-calendar") and not error.fields.get("suggestion")
    return [*re.findall(r"'([^']+)'", written[1] if written else ""), *([asked[1]] if asked and not named else [])]


def said(text: str) -> set[str]:
    """The zones, dates, times, weekdays, months and lengths that a text names, in one spelling each."""
    tokens = tokens_of(text)
    zones = {word.lower() for word in re.split(r"[\s=]", text) if word in zone_names() and word.lower() not in LETTERS}
    lengths = set(re.findall(r"\d+ times(?! a)|for \d+ \w+|\b[a-z]+=\S+", text.lower()))
    return {*zones, *lengths, *(fact for token in tokens for fact in facts_of(token, tokens[token.place + 1 :]))}


def facts_of(token: Token, following: list[Token]) -> Iterator[str]:
    word, half = token.text, following[0].text if following else ""
    if word.rstrip("s") in WEEKDAYS or word in DAY_NUMBERS:
        yield WEEKDAYS[(DAY_NUMBERS | {f"{name}s": number for name, number in DAY_NUMBERS.items()})[word]]
    if word in MONTH_NUMBERS:
        yield f"month {MONTH_NUMBERS[word]}"
    if token.kind == "date":
        yield from facts_of_date(word)
    if word in ("noon", "midday"):
        yield "at 12:00"
    if token.kind == "time" or (token.kind == "number" and half in ("am", "pm")):
        yield from facts_of_time(word, half)


def facts_of_date(text: str) -> Iterator[str]:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return  # that is what is wrong with it
    yield from (text, WEEKDAYS[day.isoweekday() % 7], f"month {day.month}")


def facts_of_time(text: str, half: str) -> Iterator[str]:
    hour, minute = (*map(int, text.split(":")), 0)[:2]
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            return
        hour = hour % 12 + 12 * (half == "pm")
    if hour < 24 and minute < 60:
        yield f"at {hour:02}:{minute:02}"


def refusal(text: str, now: datetime) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text, zone="UTC", now=now, calendars=test_forms.KNOWN)
    return caught.value


@pytest.mark.parametrize("now", [test_english_hints.NOW, EVENING], ids=["at night", "in the evening"])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_offered_can_be_taken_and_loses_nothing(text: str, now: datetime) -> None:
    error = refusal(text, now)
    offers = offers_of(error)
    assert str(error.fields.get("suggestion", "")) in ("", *offers[:1])
    for offer in offers:
        schedule = parse(offer, zone="UTC", now=now, calendars=test_forms.KNOWN)
        assert schedule.next_after(now) is not None, f"{offer!r} is over"
        lost = said(text) - said(offer)
        assert not lost or text in ABOUT_ITSELF, f"{offer!r} says nothing of {lost}"


def test_the_walk_finds_what_is_lost() -> None:
    """A control: what the audit found would not pass."""
    assert said("monday at 5pm in Asia/Tokyo") - said("on 2026-11-23 at 17:00") == {"asia/tokyo"}
    assert said("biweekly on friday at 17:00") - said("every monday and thursday at 09:00") == {"friday", "at 17:00"}
    assert said("every day at 9am until 1 march") - said("every day at 09:00") == {"month 3"}


def test_many_texts_have_something_to_offer() -> None:
    assert sum(bool(offers_of(refusal(text, EVENING))) for text in TEXTS) > 120
