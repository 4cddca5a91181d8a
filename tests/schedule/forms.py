"""Schedules of every kind, for tests that must hold for all of them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import BlackoutPolicy, Calendar, CalendarUse, Use
from mainspring.schedule.cron import Cron
from mainspring.schedule.daylight import GapPolicy, RepeatPolicy
from mainspring.schedule.instants import Instants
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Except, When, union_of

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")


def _field(least: int, most: int, *specials: str) -> st.SearchStrategy[str]:
    number = st.integers(least, most).map(str)
    span = st.tuples(st.integers(least, most), st.integers(least, most)).map(lambda ends: f"{ends[0]}-{ends[1]}")
    step = st.builds("{}/{}".format, st.just("*") | span, st.integers(1, most))
    item = st.one_of(number, span, step, *(st.just(special) for special in specials))
    return st.just("*") | st.lists(item, min_size=1, max_size=4).map(",".join)


MINUTE, HOUR = _field(0, 59, "H", "H/7", "H(0-29)"), _field(0, 23, "H", "H(8-17)/2")
DAY = _field(1, 31, "L", "L-3", "LW", "15W", "1W", "H")
MONTH, WEEKDAY = _field(1, 12), _field(0, 6, "5L", "1#2", "0#5", "H")
CRON_TEXTS = st.tuples(MINUTE, HOUR, DAY, MONTH, WEEKDAY).map(" ".join) | st.tuples(
    _field(0, 59), MINUTE, HOUR, DAY, MONTH, WEEKDAY
).map(" ".join)

INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
WALLS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda at: at.replace(microsecond=0))  # noqa: DTZ001
DATES = st.dates(date(2020, 1, 1), date(2035, 1, 1))


def _valid(build: Callable[[], When]) -> When | None:
    try:
        return build()
    except InvalidSchedule:
        return None


def _made(texts: st.SearchStrategy[Callable[[], When]]) -> st.SearchStrategy[When]:
    return texts.map(_valid).filter(lambda made: made is not None).map(_certain)


def _certain(made: When | None) -> When:
    assert made is not None
    return made


CRONS = _made(CRON_TEXTS.map(lambda text: partial(Cron.parse, text)))
INTERVALS: st.SearchStrategy[When] = st.one_of(
    st.builds(lambda n, at: Interval(months=n, anchor=at), st.integers(1, 60), st.none() | WALLS | INSTANTS),
    st.builds(lambda n, at: Interval(days=n, anchor=at), st.integers(1, 500), st.none() | WALLS | INSTANTS),
    st.builds(
        lambda n, at: Interval(elapsed=timedelta(seconds=n), anchor=at),
        st.integers(1, 10**6),
        st.none() | WALLS | INSTANTS,
    ),
)
MOMENTS: st.SearchStrategy[When] = st.lists(INSTANTS, min_size=1, max_size=20).map(lambda at: Instants(tuple(at)))

_PARTS = st.fixed_dictionaries(
    {"FREQ": st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])},
    optional={
        "INTERVAL": st.integers(1, 20).map(str),
        "BYMONTH": st.lists(st.integers(1, 12), min_size=1, max_size=3).map(lambda each: ",".join(map(str, each))),
        "BYMONTHDAY": st.sampled_from(["1", "15", "-1", "1,15,-2", "31"]),
        "BYDAY": st.sampled_from(["MO", "MO,TU,WE,TH,FR", "1MO", "-1FR", "SA,SU", "2TU,-1TH"]),
        "BYYEARDAY": st.sampled_from(["1", "100,-1"]),
        "BYWEEKNO": st.sampled_from(["1", "20,-1"]),
        "BYHOUR": st.sampled_from(["9", "8,12,18", "0"]),
        "BYMINUTE": st.sampled_from(["0", "0,30", "1,2,3,4,5,6,7,8"]),
        "BYSETPOS": st.sampled_from(["1", "-1", "2,-2"]),
        "COUNT": st.integers(1, 9).map(str),
        "UNTIL": st.just("20300101T000000"),
    },
)
RULES = _made(
    st.tuples(_PARTS, WALLS).map(
        lambda made: partial(Rule.parse, ";".join(f"{key}={value}" for key, value in made[0].items()), made[1])
    )
)
FORMS = st.one_of(CRONS, CRONS, INTERVALS, MOMENTS, RULES)
WHENS = st.recursive(
    FORMS,
    lambda inner: st.lists(inner, min_size=2, max_size=5).map(union_of) | st.builds(Except, inner, inner),
    max_leaves=6,
)

CALENDARS = st.builds(
    Calendar,
    name=st.sampled_from(["holidays", "freeze", "office-hours"]),
    dates=st.frozensets(DATES, max_size=5),
    weekdays=st.frozensets(st.integers(0, 6), max_size=3),
    yearly=st.frozensets(st.sampled_from([(1, 1), (12, 25), (2, 29)])),
    windows=st.sampled_from([(), ((time(9), time(17)),), ((time(22), time(6)),)]),
)
USES = st.one_of(
    st.builds(CalendarUse, calendar=CALENDARS, use=st.sampled_from(Use)),
    st.builds(CalendarUse, calendar=CALENDARS, use=st.just(Use.BLACKOUT), then=st.just(BlackoutPolicy.MOVE)),
)
SCHEDULES = st.builds(
    Schedule,
    when=WHENS,
    zone=st.sampled_from(ZONES),
    gap=st.sampled_from(GapPolicy),
    repeat=st.sampled_from(RepeatPolicy),
    calendars=st.lists(USES, max_size=2).map(tuple),
    starts_at=st.none() | INSTANTS,
    spread=st.none() | st.sampled_from([timedelta(minutes=5), timedelta(hours=1)]),
)
