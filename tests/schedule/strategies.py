"""Schedules for property tests: every form, in odd zones, near jumps."""

# ruff: noqa: DTZ001 - hypothesis takes naive limits, and walls are naive

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from hypothesis import strategies as st

from mainspring.schedule.calendar import BlackoutPolicy, Calendar, CalendarUse, Use
from mainspring.schedule.cron import Cron
from mainspring.schedule.instants import Instants
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Except, When, union_of
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll",
         "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo", "Asia/Gaza"]  # fmt: skip

instants = st.one_of(
    st.datetimes(datetime(1970, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)).map(
        lambda at: at.replace(microsecond=0)
    ),
    st.builds(  # within two days of a jump of Berlin
        lambda at, seconds: at + timedelta(seconds=seconds),
        st.sampled_from([datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]),
        st.integers(-172_800, 172_800),
    ),
)


def _field(least: int, most: int) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.builds("{}-{}".format, number, number),
        st.builds("*/{}".format, st.integers(1, most - least + 1)),
        st.builds("{}-{}/{}".format, st.just(least), st.just(most), st.integers(1, most - least + 1)),
        st.lists(number, min_size=1, max_size=4).map(lambda numbers: ",".join(map(str, numbers))),
    )


_days = st.one_of(_field(1, 28), st.sampled_from(["L", "L-3", "LW", "15W", "1W", "31", "31W", "L,15"]))
_weekdays = st.one_of(_field(0, 6), st.sampled_from(["5L", "2#1", "MON-FRI", "FRI-MON", "7", "0L,3#2"]))
cron_texts = st.one_of(
    st.builds("{} {} {} {} {}".format, _field(0, 59), _field(0, 23), _days, _field(1, 12), _weekdays),
    st.builds("{} {} {} {} * *".format, _field(0, 59), _field(0, 59), _field(0, 23), _days),
    st.builds("{} {} * * *".format, st.integers(0, 59), st.integers(0, 4)),
)
crons = cron_texts.map(Cron.parse)
intervals = st.one_of(
    st.builds(
        Interval, months=st.integers(1, 30), anchor=st.none() | st.datetimes(datetime(1999, 1, 1), datetime(2030, 1, 1))
    ),
    st.builds(Interval, days=st.integers(1, 40), anchor=st.none() | instants),
    st.builds(
        Interval, elapsed=st.integers(1, 400_000).map(lambda n: timedelta(seconds=n)), anchor=st.none() | instants
    ),
)
lists = st.lists(instants, min_size=1, max_size=6).map(lambda found: Instants(tuple(found)))
rules = st.builds(
    lambda text, starts, zone: replace(Rule.parse(text, starts), zone=zone),
    st.sampled_from(
        [
            "FREQ=DAILY", "FREQ=DAILY;INTERVAL=3;BYHOUR=2,9",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH", "FREQ=WEEKLY;WKST=SU",
            "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=MONTHLY;BYMONTHDAY=31", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "FREQ=HOURLY;INTERVAL=5",
            "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10", "FREQ=MINUTELY;INTERVAL=90", "FREQ=DAILY;COUNT=20",
            "FREQ=DAILY;UNTIL=20301224T000000Z",
            "FREQ=HOURLY;BYDAY=SU;BYMINUTE=0,30", "FREQ=SECONDLY;INTERVAL=7;BYHOUR=2", "FREQ=MONTHLY;BYDAY=FR,1MO",
            "FREQ=DAILY;BYHOUR=2;BYMINUTE=30 RDATE:20261025T013000Z,20260101 EXDATE:20260329T023000,20260330",
        ]
    ),
    st.datetimes(datetime(1997, 1, 1), datetime(2027, 1, 1)).map(lambda at: at.replace(microsecond=0)),
    st.sampled_from([None, None, "America/New_York"]),
)  # fmt: skip
forms = st.one_of(crons, crons, intervals, lists, rules)
whens: st.SearchStrategy[When] = st.recursive(
    forms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(union_of),
        st.builds(Except, inner, lists),
    ),
    max_leaves=3,
)
_dates = st.dates(date(2025, 1, 1), date(2027, 12, 31))
calendars = st.builds(
    Calendar,
    name=st.sampled_from(["holidays", "freeze"]),
    dates=st.frozensets(_dates, max_size=4),
    weekdays=st.frozensets(st.integers(0, 6), max_size=3),
    ranges=st.lists(
        st.tuples(_dates, st.integers(0, 40)).map(lambda r: (r[0], r[0] + timedelta(days=r[1]))), max_size=2
    ).map(tuple),
    yearly=st.frozensets(st.sampled_from([(12, 24), (1, 1), (2, 29)]), max_size=2),
    windows=st.sampled_from(
        [(), ((time(8), time(18)),), ((time(22), time(6)),), ((time(1, 30), time(2, 30)), (time(23), time(0)))]
    ),
)
uses = st.one_of(
    st.builds(CalendarUse, calendar=calendars, use=st.sampled_from(list(Use))),
    st.builds(CalendarUse, calendar=calendars, use=st.just(Use.BLACKOUT), then=st.just(BlackoutPolicy.MOVE)),
)
plain_schedules = st.builds(
    Schedule,
    when=whens,
    zone=st.sampled_from(ZONES),
    gap=st.sampled_from(list(GapPolicy)),
    repeat=st.sampled_from(list(RepeatPolicy)),
)
schedules = st.builds(
    Schedule,
    when=whens,
    zone=st.sampled_from(ZONES),
    gap=st.sampled_from(list(GapPolicy)),
    repeat=st.sampled_from(list(RepeatPolicy)),
    calendars=st.lists(uses, max_size=2).map(tuple),
    starts_at=st.none() | st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC)),
    ends_at=st.none() | st.datetimes(datetime(2026, 6, 1), datetime(2029, 1, 1), timezones=st.just(UTC)),
    spread=st.none() | st.integers(1, 7200).map(lambda n: timedelta(seconds=n)),
)
