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
