"""The words that are understood, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")

WORKDAYS = frozenset(range(1, 6))
WEEKEND = frozenset({0, 6})

DAY_NUMBERS = (
    {name: number for number, name in enumerate(WEEKDAYS)}
    | {name[:3]: number for number, name in enumerate(WEEKDAYS)}
    | {"tues": 2, "weds": 3, "thur": 4, "thurs": 4}
)
MONTH_NUMBERS = (
    {name: number for number, name in enumerate(MONTHS, 1)}
    | {name[:3]: number for number, name in enumerate(MONTHS, 1)}
    | {"sept": 9}
)
UNIT_WORDS = {name + plural: name for name in UNITS for plural in ("", "s")} | {
    "sec": "second",
    "secs": "second",
    "min": "minute",
    "mins": "minute",
    "hr": "hour",
    "hrs": "hour",
}
SHORT_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}  # after a figure only: 5m
ADVERBS = {
    "everyday": ("day", 1),
    "minutely": ("minute", 1),
    "hourly": ("hour", 1),
    "daily": ("day", 1),
    "weekly": ("week", 1),
    "fortnightly": ("week", 2),
    "monthly": ("month", 1),
    "quarterly": ("quarter", 1),
    "yearly": ("year", 1),
    "annually": ("year", 1),
}
_NUMBER_NAMES = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
NUMBERS = {name: number for number, name in enumerate(_NUMBER_NAMES, 1)}
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
ORDINALS = {name: number for number, name in enumerate(("first", "second", "third", "fourth", "fifth"), 1)}


@dataclass(frozen=True, slots=True)
class PartOfDay:
    """Which times of day are in it, a usual one, and whether it goes on after midnight."""

    begin: time
    end: time
    usual: str
    half: str | None = None  # what `at 8 in the morning` says: am or pm

    def holds(self, at: time) -> bool:
        if self.begin <= self.end:
            return self.begin <= at <= self.end
        return at >= self.begin or at <= self.end


PARTS_OF_DAY = {
    "morning": PartOfDay(time(0), time(12), "08:00", "am"),
    "afternoon": PartOfDay(time(12), time(18), "15:00", "pm"),
    "evening": PartOfDay(time(16), time(23, 59, 59), "18:00", "pm"),
    "night": PartOfDay(time(18), time(6), "22:00"),
}


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """What a word may mean; what to write in its place; and examples of what else may have been meant."""

    meaning: str
    instead: tuple[str, ...]
    examples: tuple[str, ...]


TWICE_A_WEEK = ("twice a week on monday and thursday at 09:00",)
TWICE_A_MONTH = ("twice a month on the 1st and 15th at 09:00",)
TWICE_A_YEAR = ("twice a year on 1 january and 1 july at 09:00",)
AMBIGUOUS = {
    "biweekly": Ambiguous("every 2 weeks or twice a week", ("every 2 weeks", "twice a week"), TWICE_A_WEEK),
    "bimonthly": Ambiguous("every 2 months or twice a month", ("every 2 months", "twice a month"), TWICE_A_MONTH),
    "biannually": Ambiguous("every 2 years or twice a year", ("every 2 years", "twice a year"), TWICE_A_YEAR),
    "semimonthly": Ambiguous("no days in particular", ("twice a month",), TWICE_A_MONTH),
    "semiannually": Ambiguous("no days in particular", ("twice a year",), TWICE_A_YEAR),
    "biannual": Ambiguous("no days in particular", ("twice a year",), TWICE_A_YEAR),
    "noonish": Ambiguous("no time in particular", ("noon", "at noon"), ("every day at 12:00",)),
    "eod": Ambiguous("no time in particular", ("at 18:00",), ("every day at 18:00",)),
    "sometimes": Ambiguous("no time in particular", ("every day",), ("every day at 09:00",)),
}

_OTHERS = (
    "every each other at on in of the and or between from to through before last day weekday weekdays weekend weekends "
    "noon midnight am pm except starting today tonight tomorrow after nearest past half utc until for times once twice "
    "business a an per end month only most"
)
EVERYTHING = {
    *(*DAY_NUMBERS, *MONTH_NUMBERS, *UNIT_WORDS, *ADVERBS, *NUMBERS, *TENS, *ORDINALS, *PARTS_OF_DAY),
    *(f"{name}s" for name in WEEKDAYS),
    *_OTHERS.split(),
}

# One of each form; the nearest of them are offered to whoever wrote something else. A test reads them all.
FORMS = (
    "every day at 09:00",
    "every day at 09:00 and 17:30",
    "every weekday at 09:00",
    "every monday at 09:00",
    "every monday and thursday at 09:00",
    "every day except sunday at 09:00",
    "on weekends at 10:00",
    "every other tuesday at noon",
    "every 2 weeks on monday at 09:00",
    "every other day at 09:00",
    "every minute",
    "every 15 minutes",
    "every 30 seconds",
    "every hour",
    "every 2 hours",
    "every hour at 15 minutes past the hour",
    "every 15 minutes between 8am and 6pm",
    "every hour from 9am to 5pm on weekdays",
    "monthly on the 15th at 02:00",
    "on the 1st and 15th of the month at 02:00",
    "last day of the month at 23:00",
    "last friday of the month at 18:00",
    "first monday of the month at 09:00",
    "first weekday of the month at 09:00",
    "weekday nearest the 15th of the month at 09:00",
    "quarterly on the 1st at 06:00",
    "last day of the quarter at 18:00",
    "every 2 months on the 1st at 09:00",
    "every year on 24 december at 18:00",
    "every weekday at 09:00 in june and july",
    "every weekday at 09:00 in Europe/Berlin",
    "every weekday at 09:00 starting 2027-01-01",
    "every weekday at 09:00 until 2027-03-01",
    "every weekday at 09:00 for 2 weeks",
    "every weekday at 09:00, 10 times",
    "tomorrow at 3pm",
    "today at 18:00",
    "in 15 minutes",
    "in 3 days at 09:00",
    "on 2026-12-24 at 18:00",
    "on 24 december 2026 at 18:00",
)
