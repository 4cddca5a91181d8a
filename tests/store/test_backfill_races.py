"""A backfill meets a firing, a change or another backfill: the other begins at each statement boundary of the first.

Whatever the order, no occurrence has two runs, none is lost, and nothing is made once a deletion was answered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.occurrences import NOMINAL_OF, NOTHING_WRONG, fired, verdict

from mainspring.control import backfill_range, backfills
from mainspring.store.statements import load

from .racing import HOURLY, INSTANT, NAME, TESTER, Party, Stage, change_arguments, delete, fire, pause
from .scheduling import HOUR, MINUTE

if TYPE_CHECKING:
    from .racing import Act

PAST = [INSTANT - 2 * HOUR, INSTANT - HOUR]  # one of them on the day before


async def backfill(party: Party) -> None:
    """All of the past, from planning it to its end."""
    await party.backfills.backfill(TESTER, NAME, since=PAST[0])


async def set_up(stage: Stage, *, is_staging: bool) -> None:
    """An instant comes soon, or is overdue: then a backfill that comes after its firing finds it decided."""
    await stage.set_up(HOURLY, is_staging=True)
    if not is_staging:
        await stage.clock.set(INSTANT + MINUTE)


# Who meets a backfill, whether the instant is still to come, and whose runs two past ones and that one become.
CASES: dict[str, tuple[Act, bool, list[list[int]]]] = {
    "stage": (fire, True, [[1, 1, 1]]),
    "fire": (fire, False, [[1, 1, 1]]),
    "pause": (pause, True, [[1, 1]]),
    "edit": (change_arguments, False, [[1, 1, 1], [2, 2, 1]]),
    "delete": (delete, True, [[], [1, 1]]),
    "backfill": (backfill, False, [[1, 1, 1]]),
}


@pytest.mark.invariant(2)
@pytest.mark.parametrize("name", CASES)
async def test_a_backfill_that_meets_somebody_else_loses_nothing_and_makes_nothing_twice(
    stage: Stage, name: str
) -> None:
    act, is_staging, allowed = CASES[name]
    prepare = partial(set_up, stage, is_staging=is_staging)
    look = partial(fired, stage.observer) if act is delete else None
    for first, second in dict.fromkeys([(backfill, act), (act, backfill)]):
        async for meeting in stage.meetings(first, second, prepare, look=look):
            assert set(meeting.refusals) <= ({"schedule-not-found"} if act is delete else set()), meeting.title
            if meeting.seen is not None and second is delete:
                assert await fired(stage.observer) == meeting.seen, f"after a deletion was answered: {meeting.title}"
            assert await customers_in_order(stage) in allowed, meeting.title
            await stage.settle()
            expected = [INSTANT] if meeting.refusals else [*PAST, INSTANT]
            assert await verdict(stage.observer, {NAME: expected}) == NOTHING_WRONG, meeting.title


async def customers_in_order(stage: Stage) -> list[int]:
    """Whose runs there are when the instant has come and schedulers have fired, in the order of their instants."""
    await stage.customers()
    query = f"""select (convert_from(payload, 'utf8')::jsonb ->> 'customer')::int as customer
               from ready order by {NOMINAL_OF}"""  # noqa: S608
    return [row["customer"] for row in await stage.observer.fetch(query)]


async def test_whoever_goes_on_with_a_backfill_that_died_at_any_statement_completes_it(stage: Stage) -> None:
    """Batches of one: it dies before, in and between them. The other works on the same operation."""
    operation: Any = None

    async def prepare() -> None:
        nonlocal operation
        await set_up(stage, is_staging=True)
        operation = await stage.app.schedules.start_backfill(NAME, since=PAST[0])

    async def work_off(party: Party) -> list[int]:
        return [step.done async for step in party.operations.work(TESTER, operation.id, batch=1)]

    async for meeting in stage.meetings(work_off, work_off, prepare, dies=True):
        assert meeting.second[-1] == len(PAST), meeting.title
        assert await fired(stage.observer) == {NAME: PAST}, meeting.title


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────


async def _switch_off(stage: Stage, monkeypatch: pytest.MonkeyPatch, mechanism: str) -> None:
    match mechanism:
        case "lock":  # of the schedule, while a batch is worked off
            lock = load("schedules/lock")
            monkeypatch.setattr(lock, "text", lock.text.replace("for update", ""))
        case "cursor":  # as the bound of what a backfill may make
            for module in (backfills, backfill_range):
                monkeypatch.setattr(module, "decided_before", lambda row, now: now)
        case _:
            for table in ("occurrence", "occurrence_past"):
                await stage.observer.execute(f"alter table {table} drop constraint {table}_pkey")


@pytest.mark.parametrize(
    ("other", "mechanisms"), [(fire, ["cursor", "key"]), (backfill, ["lock", "key"])], ids=["fire", "backfill"]
)
async def test_without_the_ledger_s_key_and_what_comes_before_it_there_would_be_two_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, other: Act, mechanisms: list[str]
) -> None:
    """The control."""
    for each in mechanisms:
        await _switch_off(stage, monkeypatch, each)
    found = []
    async for _ in stage.meetings(backfill, other, partial(set_up, stage, is_staging=False)):
        await stage.customers()
        found.append((await verdict(stage.observer, {NAME: [*PAST, INSTANT]})).extra)
    assert any(found)


async def test_a_backfill_that_locks_nothing_would_make_runs_of_what_was_deleted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    await _switch_off(stage, monkeypatch, "lock")
    prepare, look = partial(set_up, stage, is_staging=True), partial(fired, stage.observer)
    meetings = stage.meetings(backfill, delete, prepare, look=look)
    assert any([meeting.seen is not None and await look() != meeting.seen async for meeting in meetings])
