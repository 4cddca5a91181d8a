"""Cron expressions in words: days first when times are named, times first when it is said how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import DAY, Hashed, LastDay, LastWeekday, NearestWeekday, Nth, ranges_of
from mainspring.schedule.walls import month_length
from mainspring.schedule.words.clocks import BY_NAME, can_be_joined, times_phrase
from mainspring.schedule.words.phrases import (
    MONTHS,
    WEEKDAYS,
    WHERE_THERE_IS_ONE,
    listed,
    months,
    ordinal,
    runs,
    step_of,
    weekdays,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.schedule.cron import Cron
    from mainspring.schedule.cron_fields import CronField, Special

NTH = ("", "first", "second", "third", "fourth", "fifth")


def cron_words(crons: Sequence[Cron]) -> str:
    """One expression; or several that differ in their times only."""
    times, days, years = times_phrase(crons), days_of(crons[0]), _years(crons[0].fields[6])
    if years:
        days = days.removeprefix("every year ")
    if times.names_times:
        return f"{days} {times.words}{years}"
    return (times.words if days == "every day" else f"{times.words}, {days.removesuffix(',')}") + years


def is_of_whole_days(cron: Cron) -> bool:
    """Whether it is every second of its days, as what is left out may be."""
    return all(field.is_full for field in cron.fields[:3])


def whole_day_words(cron: Cron) -> str:
    """The days of such an expression: `on 25 December 2026`, `on the 1st of every month`."""
    numbers = [field.values for field in cron.fields[3:7]]
    if [len(each) for each in numbers] == [1, 1, 7, 1]:
        return f"on {numbers[0][0]} {MONTHS[numbers[1][0] - 1]} {numbers[3][0]}"
    return f"{days_of(cron).removeprefix('every year ').removesuffix(',')}{_years(cron.fields[6])}"


def _years(year: CronField) -> str:
    """`, in 2026`, `, in 2026 to 2028`, `, in every 2nd year from 2026 to 2198`; nothing for every year."""
    if year.is_full:
        return ""
    step = step_of(year.values)
    if step is not None and step > 1 and len(year.values) > 2:
        return f", in every {ordinal(step)} year from {year.values[0]} to {year.values[-1]}"
    return f", in {runs(year.values, [str(each) for each in year.values])}"


def joined(crons: Sequence[Cron]) -> list[list[Cron]]:
    """Expressions of equal days in one group, if their times can be told together."""
    groups: dict[tuple[CronField, ...], list[list[Cron]]] = {}
    order: list[list[Cron]] = []
    for cron in crons:
        same_days = groups.setdefault(cron.fields[3:], [])
        if same_days and can_be_joined([*same_days[-1], cron]):
            same_days[-1].append(cron)
        else:
            same_days.append([cron])
            order.append(same_days[-1])
    return order


def days_of(cron: Cron) -> str:
    """`every day`, `every weekday`, `on the 15th of every month`, `every year on 24 December`."""
    day, month, weekday = cron.fields[3:6]
    by_day, by_weekday = not _is_any(day), not _is_any(weekday)
    if by_day and by_weekday:
        return _both(day, month, weekday)
    if _either_will_do(day, weekday):  # and one of them, such as 1-31, holds on every day
        return f"every day{_in(month)}"
    if by_day:
        return _by_day(day, month)
    if by_weekday:
        return _by_weekday(weekday, month)
    return f"every day{_in(month)}"


def _is_any(field: CronField) -> bool:
    return field.is_full and not field.specials


def _both(day: CronField, month: CronField, weekday: CronField) -> str:
    on_day, on_weekday = (words.removesuffix(",") for words in (_by_day(day, month), _by_weekday(weekday, month)))
    if _either_will_do(day, weekday):
        return f"{on_day}, and also {on_weekday},"
    return f"{on_day}, if it is {_a_weekday(weekday)},"


def _either_will_do(day: CronField, weekday: CronField) -> bool:
    """Vixie cron's rule: either will do, unless one of the fields began with a star; then both must hold."""
    return not (day.star or weekday.star)


def _a_weekday(weekday: CronField) -> str:
    if weekday.specials:
        return _listed_days(weekday)
    return (
        "a weekday"
        if set(weekday.values) == {1, 2, 3, 4, 5}
        else f"a {_or([WEEKDAYS[each] for each in weekday.values])}"
    )


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _by_day(day: CronField, month: CronField) -> str:
    if len(day.values) == 1 and not day.specials and not month.is_full and not month.specials:
        number = day.values[0]
        having = [each for each in month.values if number <= month_length(2000, each)] or month.values
        missing = WHERE_THERE_IS_ONE if number == 29 and 2 in having else ""
        return f"every year on {listed([f'{number} {MONTHS[each - 1]}' for each in having])}{missing}"
    if isinstance(day.items[0], Hashed) and len(day.items) == 1:
        of = _of(month).removesuffix(BY_NAME).rstrip()  # which is said once for both
        return f"on {_special(day.items[0], 'day').replace(BY_NAME, f'{of} {BY_NAME}')}"
    return _days_of_months(day, month)


def _by_weekday(weekday: CronField, month: CronField) -> str:
    if not weekday.specials:
        return f"every {weekdays(weekday.values)}{_in(month)}"
    if any(isinstance(each, Hashed) for each in weekday.specials):
        return f"on {_listed_days(weekday)}{_in(month)}"
    return _days_of_months(weekday, month)


def _days_of_months(days: CronField, month: CronField) -> str:
    """`on the last Friday of every month`; of some months only, they come every year."""
    often = "" if _is_any(month) or month.specials else "every year "
    missing = WHERE_THERE_IS_ONE if _may_be_missing(days, month) else ""
    return f"{often}on {_listed_days(days)} {_of(month)}{missing}"


def _may_be_missing(days: CronField, month: CronField) -> bool:
    """Whether some of the months, in some years, do not have one of the days: a 31st, a fifth Monday."""
    alone = [each.first for each in ranges_of(days.values) if each.first == each.last] if days.unit is DAY else []
    numbers = [*alone, *map(_day_needed, days.specials)]  # of 1-31 or */3, everybody knows where months end
    is_fifth = any(isinstance(each, Nth) and each.nth == 5 for each in days.specials)
    return is_fifth or any(_lacks(month, number) for number in numbers)


def _lacks(month: CronField, number: int) -> bool:
    """Whether one of the months may be too short. H picks no month that always is."""
    return any(number > month_length(2001, each) for each in month.values) or (bool(month.specials) and number == 29)


def _day_needed(special: Special) -> int:
    """How many days a month must have for a special day of the month."""
    match special:
        case LastDay(back) | NearestWeekday(None, back):
            return back + 1
        case NearestWeekday(day):
            return day or 0
        case _:
            return 0


def _of(month: CronField) -> str:
    return "of every month" if _is_any(month) else f"of {_months(month)}"


def _in(month: CronField) -> str:
    return "" if _is_any(month) else f" in {_months(month)}"


def _months(month: CronField) -> str:
    named = [months(month.values)] if month.values else []
    return listed([*named, *(_special(each, "month") for each in month.specials)])


def _listed_days(field: CronField) -> str:
    """The numbers and the special days of a field."""
    return listed([*_numbers(field), *(_special(each, field.unit.name) for each in field.specials)])


def _numbers(field: CronField) -> list[str]:
    values = field.values
    if not values:
        return []
    if field.unit.name == "day of week":
        return [f"every {weekdays(values)}"]
    step = step_of(values)
    if step is not None and step > 1 and len(values) > 4:
        return [f"every {ordinal(step)} day from the {ordinal(values[0])} to the {ordinal(values[-1])}"]
    return [f"the {runs(values, [ordinal(value) for value in values])}"]


def _special(special: Special, unit: str) -> str:
    match special:
        case LastDay(0):
            return "the last day"
        case LastDay(back) if back < 5:
            return f"the {NTH[back + 1]} to last day"
        case LastDay(back):
            return f"the {ordinal(back)} day before the last day"
        case NearestWeekday(None, 0):
            return "the last weekday"
        case NearestWeekday(None, back):
            return f"the weekday nearest {_special(LastDay(back), unit)}"
        case NearestWeekday(1):
            return "the first weekday"
        case NearestWeekday(day):
            return f"the weekday nearest the {ordinal(day or 0)}"
        case Nth(weekday, nth):
            return f"the {NTH[nth]} {WEEKDAYS[weekday]}"
        case LastWeekday(weekday):
            return f"the last {WEEKDAYS[weekday]}"
        case Hashed(step=None):
            return f"a {_plain(unit)}{_range(special, unit)} {BY_NAME}"
        case Hashed(step=step):
            within = f" ({_range(special, unit).strip()})" if not special.whole else ""
            return f"every {ordinal(step or 1)} {_plain(unit)}{within} from one {BY_NAME}"


def _range(hashed: Hashed, unit: str) -> str:
    """From where to where the name decides: ` from Friday to Sunday`."""
    if hashed.whole:
        return ""
    match unit:
        case "month":
            names = [MONTHS[number - 1] for number in (hashed.first, hashed.last)]
        case "day of week":
            names = [WEEKDAYS[number % 7] for number in (hashed.first, hashed.last)]
        case _:
            names = [f"the {ordinal(number)}" for number in (hashed.first, hashed.last)]
    return f" from {names[0]} to {names[1]}"


def _plain(unit: str) -> str:
    return unit.removesuffix(" of month").replace("of week", "of the week")
