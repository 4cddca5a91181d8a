"""The words that are understood, and what they stand for."""

from __future__ import annotations

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
    | {"tues": 2, "thur": 4, "thurs": 4}
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
ADVERBS = {
    "hourly": ("hour", 1),
    "daily": ("day", 1),
    "weekly": ("week", 1),
    "fortnightly": ("week", 2),
    "monthly": ("month", 1),
    "quarterly": ("quarter", 1),
    "yearly": ("year", 1),
    "annually": ("year", 1),
}
NUMBERS = {
    name: number
    for number, name in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
ORDINALS = {name: number for number, name in enumerate(("first", "second", "third", "fourth", "fifth"), 1)}

# Words that mean two things to two people, and what to write instead.
AMBIGUOUS = {
    "biweekly": (
        "every 2 weeks or twice a week",
        ("every other monday at 09:00", "every monday and thursday at 09:00"),
    ),
    "bimonthly": (
        "every 2 months or twice a month",
        ("every 2 months on the 1st at 09:00", "monthly on the 1st and 15th at 09:00"),
    ),
    "biannually": (
        "every 2 years or twice a year",
        ("every 2 years on 1 january at 09:00", "every year on 1 january and 1 july at 09:00"),
    ),
    "noonish": ("no time in particular", ("every day at 12:00",)),
    "tonight": ("no time in particular", ("today at 20:00", "every day at 20:00")),
    "morning": ("no time in particular", ("every day at 08:00",)),
    "afternoon": ("no time in particular", ("every day at 15:00",)),
    "evening": ("no time in particular", ("every day at 18:00",)),
    "night": ("no time in particular", ("every day at 22:00",)),
    "nightly": ("no time in particular", ("every day at 02:00",)),
    "twice": ("no times in particular", ("every day at 09:00 and 17:00",)),
    "thrice": ("no times in particular", ("every day at 08:00, 12:00 and 18:00",)),
    "sometimes": ("no time in particular", ("every day at 09:00",)),
}

EVERYTHING = (
    {*DAY_NUMBERS, *MONTH_NUMBERS, *UNIT_WORDS, *ADVERBS, *NUMBERS, *ORDINALS}
    | {name + "s" for name in WEEKDAYS}
    | {"every", "each", "other", "at", "on", "in", "of", "the", "and", "between", "from", "to", "through", "before"}
    | {
        "last",
        "day",
        "weekday",
        "weekdays",
        "weekend",
        "weekends",
        "noon",
        "midnight",
        "am",
        "pm",
        "except",
        "starting",
    }
    | {"today", "tomorrow", "after", "nearest", "past", "half", "utc"}
)

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
    "every 2 months on the 1st at 09:00",
    "every year on 24 december at 18:00",
    "every weekday at 09:00 in june and july",
    "every weekday at 09:00 in Europe/Berlin",
    "every weekday at 09:00 starting 2027-01-01",
    "tomorrow at 3pm",
    "today at 18:00",
    "in 15 minutes",
    "in 3 days at 09:00",
    "on 2026-12-24 at 18:00",
    "on 24 december 2026 at 18:00",
)
