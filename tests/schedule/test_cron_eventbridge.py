"""EventBridge's own forms: read in their dialect, stored in ours, and never mistaken for cron."""

from __future__ import annotations

import pytest
from tests.schedule.asking import walls

from mainspring.errors import InvalidSchedule
from mainspring.schedule.text import parse


@pytest.mark.parametrize(
    ("text", "canonical", "words"),
    [
        ("cron(0 10 * * ? *)", "0 10 * * *", "Every day at 10:00"),
        ("cron(15 12 * * ? *)", "15 12 * * *", "Every day at 12:15"),
        ("cron(0 18 ? * MON-FRI *)", "0 18 * * 1-5", "Every weekday at 18:00"),
        ("cron(0 18 ? * 2-6 *)", "0 18 * * 1-5", "Every weekday at 18:00"),
        ("cron(0 9 ? * 1,7 *)", "0 9 * * 0,6", "Every Saturday and Sunday at 09:00"),
        ("cron(0 9 ? * L *)", "0 9 * * 6", "Every Saturday at 09:00"),
        ("cron(0 8 1 * ? *)", "0 8 1 * *", "On the 1st of every month at 08:00"),
        ("cron(0/15 * * * ? *)", "0-45/15 * * * *", "Every 15 minutes"),
        ("cron(0/5 8-17 ? * MON-FRI *)", "0-55/5 8-17 * * 1-5",
         "Every 5 minutes from 08:00 through 17:55, every weekday"),
        ("cron(0 9 ? * 2#1 *)", "0 9 * * 1#1", "On the first Monday of every month at 09:00"),
        ("cron(15 10 ? * 6L 2026-2028)", "0 15 10 * * 5L 2026-2028",
         "On the last Friday of every month at 10:15, in 2026 to 2028"),
        ("cron(0 9 3W * ? *)", "0 9 3W * *", "On the weekday nearest the 3rd of every month at 09:00"),
        ("cron(0 9 L-3 * ? 2027)", "0 0 9 L-3 * * 2027", "On the fourth to last day of every month at 09:00, in 2027"),
        ("CRON( 0 9 24 DEC ? 2026 )", "0 0 9 24 12 * 2026", "On 24 December at 09:00, in 2026"),
        ("rate(1 minute)", "PT1M", "Every minute of elapsed time"),
        ("rate(5 minutes)", "PT5M", "Every 5 minutes of elapsed time"),
        ("rate(1 day)", "PT24H", "Every 24 hours of elapsed time"),
        ("at(2026-12-24T18:00:00)", "2026-12-24T18:00:00Z", "Once, on 24 December 2026 at 18:00"),
    ],
)  # fmt: skip
def test_what_was_pasted_is_understood(text: str, canonical: str, words: str) -> None:
    schedule = parse(text)

    assert schedule.text == canonical
    assert schedule.words == f"{words}, UTC."
    assert parse(canonical) == schedule


def test_they_can_be_parts_and_have_zones() -> None:
    schedule = parse("cron(0 9 ? * 2 *) | 0 8 * * 1", zone="Europe/Berlin")
    once = parse("at(2026-07-01T18:00:00) Europe/Berlin")

    assert walls(schedule, "2026-11-16", "2026-11-18") == ["2026-11-16 08:00", "2026-11-16 09:00"]
    assert once.text == "2026-07-01T16:00:00Z zone=Europe/Berlin"


MISREAD = [
    ("0 10 * * ? *", 9, "'?' stands for a day of month or a day of week only", "cron(0 10 * * ? *)"),
    ("0 10 ? * MON *", 5, "'?' stands for a day of month or a day of week only", "cron(0 10 ? * MON *)"),
    ("0 10 L * ? 2026", 9, "'?' stands for a day of month or a day of week only", "cron(0 10 L * ? 2026)"),
    ("? 9 * * *", 0, "minute: '?' stands for a whole day", "* 9 * * *"),
    ("0 ? * * *", 2, "hour: '?' stands for a whole day", "0 * * * *"),
    ("0 9 * ? *", 6, "month: '?' stands for a whole day", "0 9 * * *"),
    ("0 9 ?/2 * *", 4, "day of month: '?' stands for a whole day", "0 9 */2 * *"),
    ("0 0 9 ? * 2 2026", 10, "Quartz counts from Sunday = 1, cron from 0", ""),
    ("0 0 9 ? * 2", 10, "Quartz counts from Sunday = 1, cron from 0", ""),
    ("0 0 9 ? * MON-6", 10, "Quartz counts from Sunday = 1, cron from 0", ""),
    ("0 0 9 1 1 * H", 12, "'H' is no year", ""),
    ("0 0 9 1 1 * 1969", 12, "1969 is no year", ""),
    ("0 0 9 1 1 * 2030-2026", 12, "years do not come around again", "0 0 9 1 1 * 2026-2030"),
    ("cron(0 10 * * ?)", 5, "6 fields; this has 5", ""),
    ("cron(0 10 * * * *)", 14, "exactly one of day-of-month and day-of-week must be ?", "cron(0 10 * * ? *)"),
    ("cron(0 10 ? * ? *)", 14, "exactly one of", ""),
    ("cron(0 10 1 * MON *)", 14, "exactly one of", ""),
    ("cron(0 10 ? * 0 *)", 14, "0 is no day of week", ""),
    ("cron(0 10 ? * 8 *)", 14, "8 is no day of week", ""),
    ("cron(H 10 ? * 2 *)", 5, "'H' is no minute", ""),
    ("cron(0 10 * * ? 2200)", 16, "2200 is no year", ""),
    ("cron(0 10 * * ? 2026", 20, "the bracket is not closed", ""),
    ("rate(1 minutes)", 7, "singular after 1", "rate(1 minute)"),
    ("rate(5 minute)", 7, "plural after other numbers", "rate(5 minutes)"),
    ("rate(0 minutes)", 5, "a whole number above 0", ""),
    ("rate(5 weeks)", 5, "minute(s), hour(s) or day(s)", ""),
    ("at(2026-12-24 18:00)", 3, "no date and time", ""),
    ("at(2026-12-24T18:00:00Z)", 3, "no date and time", ""),
]


@pytest.mark.parametrize(("text", "position", "problem", "suggestion"), MISREAD)
def test_what_would_be_misread_is_refused(text: str, position: int, problem: str, suggestion: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)

    assert problem in str(caught.value)
    assert caught.value.code == "invalid-cron"
    assert caught.value.fields["position"] == position
    assert caught.value.fields["suggestion"] == suggestion
    assert caught.value.fields["allowed"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 0 9 ? * TUE#1", "0 9 * * 2#1"),
        ("0 0 9 ? * FRIL 2031", "0 0 9 * * 5L 2031"),
        ("0 0 9 ? * MON-FRI", "0 9 * * 1-5"),
        ("0 0 9 2 * ?", "0 9 2 * *"),
    ],
)
def test_with_seconds_and_a_question_mark_weekdays_have_names(text: str, canonical: str) -> None:
    assert parse(text).text == canonical
