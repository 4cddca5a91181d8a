"""Somebody submits a run with a unique key that another run has, while a verb acts on that one.

One begins at each statement boundary of the other, in both orders. Of the runs with one key no two are ever alive at
once; and what a debounced submission brings is in one run, which is the earlier one if and only if the answer says so.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound, UniqueConflict
from mainspring.model.lifecycle import State
from mainspring.model.unique import Wish
from mainspring.store import submissions
from mainspring.store.connection import transaction
from mainspring.store.functions import all_functions
from mainspring.store.migrate import installation_of

from .moves import ACTING, allows
from .stepping import Gate
from .verbs import AN_HOUR_AGO, VERBS, WAYS, promote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.store.submissions import Verdict

    from .verbs import Party, Stage, Subject

    Act = Callable[[Party], Awaitable[Any]]

AN_HOUR = 3600.0
ONE_AT_A_TIME = Wish("customer\tacme", "waiting_or_running", None, None, False)
LAST_WINS = Wish("customer\tacme", "debounce", AN_HOUR, 10 * AN_HOUR, False)
NEW_PAYLOAD = b'{"a":2}'
MOST_BOUNDARIES = 40
PLACES = """
    select 'scheduled' as state, id, payload from later union all select 'held', id, payload from held
    union all select 'ready', id, payload from ready union all select 'dead', id, payload from dead
    union all select 'running', run.id, run.payload
              from lease cross join lateral unnest(lease.runs) with ordinality as run
              where get_bit(lease.done, run.ordinality::int - 1) = 0
    union all select state::text, run_id, payload from attempt where payload is not null
"""
CASES = [(source, verb) for verb in ACTING for source in WAYS if allows(verb, source)]


class Answer(NamedTuple):
    """What somebody who submitted once more was told."""

    own_id: Any
    verdict: Verdict


async def submit_again(actor: Party, stage: Stage, wish: Wish) -> Answer:
    known = submissions.known_document(await installation_of(actor.unstepped), {}, {})
    run = stage.new_run("", wish)._replace(payload=NEW_PAYLOAD, max_age=None)
    run = run._replace(delay=AN_HOUR if wish is LAST_WINS else None)
    [own_id] = submissions.new_run_ids(1, 3, datetime.now(UTC))
    async with transaction(actor.plain):
        [verdict] = await submissions.submit_items(actor.plain, [own_id], [run], known)
    return Answer(own_id, verdict)


async def meet(stage: Stage, acts: list[Act], boundary: int) -> tuple[list[Any], bool]:
    """Both act, the second begun at a boundary of the first; answers with what came of them, and whether it was met."""
    first, second = acts
    gate = Gate(stop_at=boundary)
    stage.first.use(gate)
    stage.second.use(Gate())
    one = asyncio.ensure_future(_outcome(first(stage.first)))
    stopped = asyncio.ensure_future(gate.reached.wait())
    await asyncio.wait({stopped, one}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    other = asyncio.ensure_future(_outcome(second(stage.second)))
    while not other.done() and not await stage.waits_for_a_lock(stage.second):
        await asyncio.wait({other}, timeout=0.001)
    gate.go_on()
    return [await one, await other], gate.reached.is_set()


async def _outcome(act: Awaitable[Any]) -> Any:
    try:
        return await act
    except (RunAlreadyEnded, RunAlreadyStarted, RunNotDead, RunNotFound, UniqueConflict) as error:
        return error


def answer_among(outcomes: list[Any]) -> Answer:
    [answer] = [each for each in outcomes if isinstance(each, Answer)]
    return answer


async def contents(stage: Stage) -> dict[Any, tuple[str, bytes]]:
    rows = await stage.observer.fetch(PLACES)
    found = {row["id"]: (row["state"], bytes(row["payload"])) for row in rows}
    assert len(found) == len(rows), f"a run is in two places: {rows}"
    return found


# ── one at a time ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_first", [True, False], ids=["submitted first", "submitted second"])
@pytest.mark.parametrize(("source", "verb"), CASES)
async def test_no_two_runs_with_one_key_are_alive_at_once(stage: Stage, source: str, verb: str, is_first: bool) -> None:
    for boundary in range(MOST_BOUNDARIES):
        subject = await stage.set_up(source, wish=ONE_AT_A_TIME)
        seen = (await stage.look(subject)).state
        acts: list[Act] = [
            lambda actor: submit_again(actor, stage, ONE_AT_A_TIME),
            lambda actor, subject=subject, seen=seen: VERBS[verb](actor, subject, seen),  # type: ignore[misc]
        ]
        outcomes, was_met = await meet(stage, acts if is_first else acts[::-1], boundary)

        found, answer = await contents(stage), answer_among(outcomes)
        alive = {run_id for run_id, (state, _) in found.items() if state in ("scheduled", "held", "ready", "running")}
        title = f"{verb} from {source}, boundary {boundary}: {answer.verdict}, {found}"
        assert len(alive) <= 1, title
        assert answer.verdict.verdict in ("new", "earlier"), title
        assert answer.verdict.run_id == (answer.own_id if answer.verdict.verdict == "new" else subject.run_id), title
        assert (answer.own_id in found) == (answer.verdict.verdict == "new"), title
        present = [run_id for run_id in (subject.run_id, answer.own_id) if run_id in found]
        assert (await check(stage.observer, present)).violations == [], title
        if not was_met:
            return
    pytest.fail(f"more than {MOST_BOUNDARIES} boundaries")


CARELESS = {
    "state_of_holder": "create or replace function state_of_holder(lane smallint, holder uuid) returns text"
    " language sql as 'select null::text'",
    "resume_unique_key": "create or replace function resume_unique_key(lane smallint, dead_id uuid, own_tenant int,"
    " own_job int, kept text, resumed uuid[]) returns boolean language sql as 'select true'",
}


@pytest.mark.parametrize("name", CARELESS)
async def test_without_a_look_at_the_holder_there_are_two(stage: Stage, name: str) -> None:
    """The control: whoever submits does not look where the run is, or whoever requeues does not look at the key."""
    await stage.observer.execute(CARELESS[name])
    try:
        subject = await stage.set_up(State.READY if name == "state_of_holder" else State.DEAD, wish=ONE_AT_A_TIME)
        answer = await submit_again(stage.first, stage, ONE_AT_A_TIME)
        if name == "resume_unique_key":
            await VERBS["requeue"](stage.second, subject, State.DEAD)
        found = await contents(stage)
    finally:
        await stage.observer.execute(all_functions()[name])

    assert {found[subject.run_id][0], found[answer.own_id][0]} == {"ready"}


# ── the last wins ───────────────────────────────────────────────────────────────────────────────────────────────

DUE, READY = "due", State.READY
ACTS_ON_NEW = [
    (State.SCHEDULED, "cancel"),
    (State.SCHEDULED, "change"),
    (DUE, "promote"),
    (DUE, "cancel"),
    (DUE, "expire"),
    (READY, "claim"),
    (READY, "cancel"),
    (READY, "change"),
    (READY, "expire"),
]


async def never_claimed(stage: Stage, spot: str) -> Subject:
    """A debounced run that nobody has claimed: not due, due, or in line."""
    await stage.clear()
    subject = await stage.submit(wish=LAST_WINS)
    is_in_line = spot == READY
    if not is_in_line:
        await stage.observer.execute(
            """with gone as (delete from ready returning *)
               insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, headers, tags,
                                  submitted_by, submitted_at, due_at, expires_at)
               select lane, id, tenant_id, job_id, job_version, line_id, priority, payload, headers, tags,
                      submitted_by, submitted_at, $1, $2 from gone""",
            AN_HOUR_AGO if spot == DUE else datetime.now(UTC).replace(year=2099),
            AN_HOUR_AGO if spot == DUE else None,
        )
    return subject


@pytest.mark.parametrize("is_first", [True, False], ids=["submitted first", "submitted second"])
@pytest.mark.parametrize(("spot", "verb"), ACTS_ON_NEW)
async def test_what_comes_last_is_in_one_run_and_no_run_that_was_claimed_is_changed(
    stage: Stage, spot: str, verb: str, is_first: bool
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        subject = await never_claimed(stage, spot)
        seen = State.READY if spot == READY else State.SCHEDULED
        acts: list[Act] = [
            lambda actor: submit_again(actor, stage, LAST_WINS),
            lambda actor, subject=subject, seen=seen: VERBS[verb](actor, subject, seen),  # type: ignore[misc]
        ]
        outcomes, was_met = await meet(stage, acts if is_first else acts[::-1], boundary)

        found, answer = await contents(stage), answer_among(outcomes)
        title = f"{verb} from {spot}, boundary {boundary}: {answer.verdict}, {found}"
        is_replaced = answer.verdict.verdict == "replaced"
        assert is_replaced or answer.verdict.verdict == "new", title
        assert found[subject.run_id][1] == (NEW_PAYLOAD if is_replaced else b'{"a":1}'), title
        assert (answer.own_id in found) == (not is_replaced), title
        assert is_replaced or found[answer.own_id][1] == NEW_PAYLOAD, title
        assert is_replaced or found[subject.run_id][0] in ("running", "cancelled", "expired"), title
        if not was_met:
            return
    pytest.fail(f"more than {MOST_BOUNDARIES} boundaries")


async def test_a_debounced_run_that_is_due_is_promoted_with_what_it_got_last(stage: Stage) -> None:
    subject = await never_claimed(stage, DUE)
    answer = await submit_again(stage.first, stage, LAST_WINS)
    assert answer.verdict.verdict == "replaced"

    await promote(stage.second, subject, State.SCHEDULED)

    assert (await contents(stage))[subject.run_id] == ("ready", NEW_PAYLOAD)
