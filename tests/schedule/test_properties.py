"""What holds for every schedule, whatever it says."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.schedule import strategies as some

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.document import schedule_of
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Except, When, union_of
from mainspring.schedule.text import parse
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.schedule.zones import segment_at, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK = timedelta(microseconds=1)
quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@contextmanager
def refusing_sparse() -> Iterator[None]:
    """A search may be given up, with a reason; then there is nothing to compare."""
    try:
        yield
    except InvalidSchedule as error:
        if error.code != "schedule-too-sparse":
            raise
        assume(False)


def after(schedule: Schedule, instant: datetime, count: int) -> list[datetime]:
    return [
        found.nominal_at for found in islice(schedule.between(instant + TICK, datetime(2400, 1, 1, tzinfo=UTC)), count)
    ]


@quick
@given(some.schedules, some.instants)
def test_next_is_later_prev_is_earlier_and_they_lead_back(schedule: Schedule, instant: datetime) -> None:
    with refusing_sparse():
        following, before = schedule.next_after(instant), schedule.prev_before(instant)
        if following is not None:
            assert following.nominal_at > instant
            assert schedule.is_due(following.nominal_at)
            back = schedule.prev_before(following.nominal_at)
            assert back is None or back.nominal_at <= instant
            assert back == (before if not schedule.is_due(instant) else schedule.prev_before(instant + TICK))
        if before is not None:
            assert before.nominal_at < instant
            assert schedule.is_due(before.nominal_at)
            forth = schedule.next_after(before.nominal_at)
            assert forth is None or forth.nominal_at >= instant


@quick
@given(some.schedules, some.instants)
def test_walking_back_meets_what_walking_forth_met(schedule: Schedule, instant: datetime) -> None:
    with refusing_sparse():
        forth = after(schedule, instant, 12)
        assert all(a < b for a, b in pairwise(forth))
        back, at = [], forth[-1] + TICK if forth else instant
        for _ in forth:
            found = schedule.prev_before(at)
            assert found is not None
            back.append(at := found.nominal_at)
        assert back[::-1] == forth


@quick
@given(some.schedules, some.instants, st.integers(0, 5))
def test_it_does_not_matter_from_where_one_asks(schedule: Schedule, instant: datetime, place: int) -> None:
    with refusing_sparse():
        forth = after(schedule, instant, 6)
        assume(len(forth) > place)
        found, earlier = forth[place], forth[place - 1] if place else instant
        middle = earlier + (found - earlier) / 2
        answer = schedule.next_after(middle)
        assert answer is not None
        assert answer.nominal_at == found


@quick
@given(some.forms, some.forms, some.instants, st.sampled_from(some.ZONES))
def test_unions_and_exclusions_are_sets(one: When, other: When, instant: datetime, zone: str) -> None:
    end = instant + timedelta(days=3)
    with refusing_sparse():
        a, b = (
            {f.nominal_at for f in islice(Schedule(when=when, zone=zone).between(instant, end), 3_000)}
            for when in (one, other)
        )
        assume(len(a) < 3_000 and len(b) < 3_000)
        union = Schedule(when=union_of([one, other]), zone=zone)
        minus = Schedule(when=Except(one, other), zone=zone)
        assert {f.nominal_at for f in union.between(instant, end)} == a | b
        assert {f.nominal_at for f in minus.between(instant, end)} == a - b


@quick
@given(some.schedules)
def test_canonical_forms_round_trip(schedule: Schedule) -> None:
    known = {use.calendar.name: use.calendar for use in schedule.calendars}
    again = schedule_of(schedule.as_document())
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert again.text == schedule.text
    if len(known) == len({use.calendar for use in schedule.calendars}):
        try:
            read = parse(schedule.text, calendars=known)
        except InvalidSchedule as error:
            if error.code != "never-fires":
                raise
        else:
            assert read == schedule


@quick
@given(some.schedules, some.instants, st.text(max_size=10))
def test_spread_never_goes_past_the_next_nominal_instant(schedule: Schedule, instant: datetime, job: str) -> None:
    with refusing_sparse():
        first = schedule.next_after(instant, job=job)
        assume(first is not None and schedule.spread is not None)
        assert first is not None
        assert schedule.spread is not None
        second = schedule.next_after(first.nominal_at, job=job)
        assert first.nominal_at <= first.due_at < first.nominal_at + schedule.spread
        assert second is None or first.due_at < second.nominal_at
        assert first == schedule.next_after(instant, job=job)


@quick
@given(st.sampled_from(some.ZONES), some.instants)
def test_segments_tell_the_offset_and_follow_each_other(zone: str, instant: datetime) -> None:
    info = zone_named(zone)
    segment = segment_at(info, instant)

    assert segment.start <= instant < segment.end
    assert segment.offset == instant.astimezone(info).utcoffset()
    following = segment_at(info, segment.end)
    assert following.start == segment.end
    assert following.shift_in == segment.shift_out == following.offset - segment.offset


@quick
@given(
    st.sampled_from(["* * * * *", "*/7 * * * *", "30 2,5 * * *", "*/20 */3 * * * *", "0 */5 * * *"]),
    st.sampled_from(["* 1-3 * * *", "* * * * 0", "* 2 * * *", "* * * 3,10 *", "*/20 * 1-3 * * *"]),
    st.sampled_from(some.ZONES),
    st.sampled_from(list(GapPolicy)),
    st.sampled_from(list(RepeatPolicy)),
    some.instants,
)
def test_passing_over_excluded_hours_passes_over_nothing_else(
    base: str, minus: str, zone: str, gap: GapPolicy, repeat: RepeatPolicy, instant: datetime
) -> None:
    one, other = Cron.parse(base), Cron.parse(minus)
    end = instant + timedelta(hours=4)
    a, b = (
        {found.nominal_at for found in Schedule(when=when, zone=zone, gap=gap, repeat=repeat).between(instant, end)}
        for when in (one, other)
    )
    schedule = Schedule(when=Except(one, other), zone=zone, gap=gap, repeat=repeat)

    assert {found.nominal_at for found in schedule.between(instant, end)} == a - b
    last = schedule.prev_before(end)
    assert max(a - b, default=instant) == (instant if last is None or last.nominal_at < instant else last.nominal_at)
