"""Days that have names and no rule here: `christmas`, `thanksgiving`, `public holidays`. Calendars know them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.schedule.english.reader import Reader, Token

HOLIDAYS = ("holiday", "holidays", "vacation", "vacations")
NAMES = {
    *("christmas", "xmas", "thanksgiving", "easter", "halloween", "pentecost", "hanukkah", "diwali", "ramadan", "eid"),
    *HOLIDAYS,
}
PAIRS = {
    *(("new", "year"), ("new", "years"), ("good", "friday"), ("boxing", "day"), ("independence", "day")),
    *(("memorial", "day"), ("labor", "day"), ("labour", "day"), ("veterans", "day"), ("black", "friday")),
}
REMEDY = (
    "Name its date; or keep such days in a calendar and write its name behind the schedule, as in "
    "'every day at 09:00 only=holidays' or 'every weekday at 09:00 not=holidays'."
)
DATED = ("every year on 25 december at 09:00",)


def holiday_in(reader: Reader) -> Token | None:
    """Where the first of them is named."""
    pairs = zip(reader.tokens, reader.tokens[1:], strict=False)
    return next((first for first, second in pairs if first.text in NAMES or (first.text, second.text) in PAIRS), None)
