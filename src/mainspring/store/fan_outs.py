"""Runs that wait for their children: adopting these, and joining them when they have ended.

A row of `dependency` per child says that its run waits for it, as for any other run; `otherwise` is `fail` in them.
The run has one more, in which it waits for itself: for its handler to return. While the handler runs, the ends of
children are noted: who ended as it should have is forgotten, the others are kept. When nothing is open any more, the
run has succeeded, or is a dead letter because of those that were kept. Whatever else ends it tells the row in which it
waits for itself; then its children are cancelled. All of this happens where `store/resolving.py` holds the lane's lock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from mainspring.errors import LeaseLost, RunCancelled
from mainspring.model.dependency import ENDED_WORDS, Condition, Met, Otherwise, met
from mainspring.model.fan_out import ChildStatus, FanOut, condition_of, failed_error, name_in, prefix_of
from mainspring.model.ids import by_lane, lane_of
from mainspring.model.lifecycle import ENDS, WAITING, State
from mainspring.store import dependencies, lists, runs
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mainspring.store.connection import Connection, Record
    from mainspring.store.statements import Statement
    from mainspring.store.submissions import Verdict

ACTOR = "mainspring"  # who cancels the children of a run that is over
MOST_CANCELLED = 1_000  # at once

# ── adopting ────────────────────────────────────────────────────────────────────────────────────────────────────


async def adopt(
    connection: Connection, fan_out: FanOut, verdicts: Iterable[Verdict], *, may_fail: bool, tenant_id: int
) -> None:
    """Let a run wait for what its handler has submitted, within that transaction."""
    accepted = [each for each in verdicts if each.verdict in ("new", "same")]
    if not accepted:
        return
    answer = await load("fan_outs/adopt").fetchval(
        connection,
        lane=lane_of(fan_out.run_id),
        tenant=tenant_id,
        run=fan_out.run_id,
        lease=fan_out.lease_id,
        place=fan_out.position,
        worker=fan_out.worker_id,
        children=[each.run_id for each in accepted],
        are_new=[each.verdict == "new" for each in accepted],
        condition=condition_of(may_fail).value,
    )
    if answer != "adopted":
        raise _refusal(answer, fan_out)


def _refusal(answer: str, fan_out: FanOut) -> LeaseLost | RunCancelled:
    if answer == "cancelled":
        return RunCancelled(f"Run {fan_out.run_id} was asked to stop; it gets no more children.")
    return LeaseLost(
        f"Run {fan_out.run_id} is no longer this worker's: its child was refused.",
        hint="Stop here: another worker has taken the run over, or it has ended.",
        run_id=str(fan_out.run_id),
    )


async def returned(connection: Connection, lane: int, run_ids: Sequence[UUID]) -> set[UUID]:
    """The handlers of these runs have returned; answers which of them have children to wait for."""
    return await _ids(connection, load("fan_outs/returned"), lane, run_ids)


# ── joining ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Joined(NamedTuple):
    """Which runs have ended because their children have, and which are over although theirs may not be."""

    ended: set[UUID]
    over: dict[UUID, State]


NOTHING = Joined(set(), {})


class Notes(NamedTuple):
    """What to note about children: pairs of parent and child in the words of `dependency`."""

    over: list[tuple[UUID, UUID]]
    kept: list[tuple[UUID, UUID]]
    open: list[tuple[UUID, UUID]]


async def join(connection: Connection, lane: int, news: Sequence[Record]) -> Joined:
    """Take note of children that have ended, and end the runs that waited for nothing else."""
    run_ids = sorted({row["child_id"] for row in news})
    waiting = await _ids(connection, load("fan_outs/waiting"), lane, run_ids)
    locked = await _ids(connection, load("fan_outs/lock"), lane, run_ids) if waiting else set()
    # About those that somebody acts on just now, the news stay: they are looked at again.
    news = [row for row in news if row["child_id"] not in waiting - locked]
    states = await dependencies.states_of_parents(connection, lane, news)
    over = {row["child_id"]: state for row in news if _is_own(row) and (state := states.get(row["child_id"])) in ENDS}
    notes = _notes([row for row in news if row["child_id"] not in over], states, locked)
    await _note(connection, lane, notes)
    closed = locked - await _ids(connection, load("fan_outs/open"), lane, run_ids)
    return Joined(await _judge(connection, lane, closed), over)


def _is_own(row: Record) -> bool:
    """Whether it is the row in which a run waits for its own handler."""
    return bool(row["parent_id"] == row["child_id"])


def _notes(rows: Iterable[Record], states: dict[UUID, State], waiting: set[UUID]) -> Notes:
    notes = Notes([], [], [])
    for row in rows:
        pair = (row["parent_id"], row["child_id"])
        if _is_own(row):
            (notes.kept if row["child_id"] in waiting else notes.open).append(pair)
        else:
            how = _met(row, states)
            {Met.YES: notes.over, Met.NO: notes.kept, Met.NOT_YET: notes.open}[how].append(pair)
    return notes


def _met(row: Record, states: dict[UUID, State]) -> Met:
    return met(Condition(row["condition"]), Otherwise.CANCEL, states.get(row["parent_id"]))


async def _note(connection: Connection, lane: int, notes: Notes) -> None:
    pairs = [*notes.over, *notes.kept, *notes.open]
    if pairs:
        await load("fan_outs/note").execute(
            connection,
            lane=lane,
            parents=list({parent for parent, _ in pairs}),
            over=_as_texts(notes.over),
            kept=_as_texts(notes.kept),
            open=_as_texts(notes.open),
        )


def _as_texts(pairs: Iterable[tuple[UUID, UUID]]) -> list[str]:
    return [f"{parent}{child}" for parent, child in pairs]


async def _ids(connection: Connection, statement: Statement, lane: int, run_ids: Sequence[UUID]) -> set[UUID]:
    rows = await statement.fetch(connection, lane=lane, runs=run_ids)
    return {row["id"] for row in rows}


async def _judge(connection: Connection, lane: int, run_ids: set[UUID]) -> set[UUID]:
    """End runs all of whose children have ended, unless one of these was requeued meanwhile."""
    if not run_ids:
        return set()
    kept = await load("fan_outs/kept").fetch(connection, lane=lane, runs=sorted(run_ids))
    states = await dependencies.states_of_parents(connection, lane, kept)
    notes = _notes(kept, states, set())
    await _note(connection, lane, notes._replace(kept=[]))
    bad: defaultdict[UUID, list[tuple[UUID, State]]] = defaultdict(list)
    for child, run_id in notes.kept:
        bad[run_id].append((child, states[child]))
    judged = run_ids - {run_id for _, run_id in notes.open}
    return await end(connection, lane, judged, {run_id: bad[run_id] for run_id in judged if run_id in bad})


async def end(
    connection: Connection, lane: int, run_ids: set[UUID], bad: Mapping[UUID, Sequence[tuple[UUID, State]]]
) -> set[UUID]:
    """End runs whose children have: well, but for those of which some ended badly. Answers which ended."""
    rows = await load("fan_outs/join").fetch(
        connection,
        lane=lane,
        succeeded=sorted(run_ids - bad.keys()),
        failed=list(bad),
        errors=[msgspec.json.encode(failed_error(children)).decode() for children in bad.values()],
    )
    ended = {row["run_id"] for row in rows}
    succeeded = sorted(row["run_id"] for row in rows if row["state"] == State.SUCCEEDED)
    if succeeded:
        await load("fan_outs/forget").execute(connection, lane=lane, runs=succeeded)
    return ended


# ── ending otherwise ────────────────────────────────────────────────────────────────────────────────────────────


async def abandon(connection: Connection, lane: int, over: dict[UUID, State]) -> set[UUID]:
    """Cancel the children of runs that are over, and forget them; answers with workers that were asked to stop some.

    Not within a transaction: whoever settles one of them may wait for what we hold. What fails is found again.
    """
    workers: set[UUID] = set()
    for run_id, state in over.items():
        while children := await _orphans(connection, lane, run_id):
            some = await _cancel(connection, lane, run_id, state, children)
            workers |= some.workers
            await load("fan_outs/drop").execute(connection, lane=lane, run=run_id, children=sorted(some.done))
            if len(some.done) < len(children):
                break  # they moved while we looked
        else:
            await load("fan_outs/forget").execute(connection, lane=lane, runs=[run_id])
    return workers


async def _orphans(connection: Connection, lane: int, run_id: UUID) -> list[Record]:
    return await load("fan_outs/orphans").fetch(
        connection, lane=lane, run=run_id, since=recorded_since([run_id]), count=MOST_CANCELLED
    )


async def _cancel(
    connection: Connection, lane: int, run_id: UUID, state: State, children: Sequence[Record]
) -> runs.Cancelled:
    ids, tenant_id = [row["id"] for row in children], children[0]["tenant_id"]
    if state is State.SUCCEEDED or tenant_id is None:  # a program of before completed it; or history has forgotten it
        return runs.Cancelled(set(ids), set())
    reason = f"Run {run_id}, whose child it is, {ENDED_WORDS[state]}."
    cancelled = await runs.cancel_wherever(connection, lane, ids, tenant_id=tenant_id, actor=ACTOR, reason=reason)
    left = [each for each in ids if each not in cancelled.done]
    states = await lists.states_of(connection, left, tenant_id=tenant_id)
    return cancelled._replace(done={each for each in ids if states.get(each) not in (*WAITING, State.RUNNING)})


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def children_of(
    connection: Connection, run_ids: Sequence[UUID], *, tenant_id: int
) -> dict[UUID, list[ChildStatus]]:
    """The children of runs, by their keys, which are kept until a day after their ends, and as long as their runs."""
    found: defaultdict[UUID, list[tuple[str, UUID]]] = defaultdict(list)
    for lane, some in by_lane(run_ids):
        rows = await load("fan_outs/children").fetch(
            connection,
            lane=lane,
            tenant=tenant_id,
            runs=some,
            first=[prefix_of(run_id) for run_id in some],
            last=[prefix_of(UUID(int=run_id.int + 1)) for run_id in some],
        )
        for row in rows:
            found[row["run_id"]].append((name_in(row["key"]), row["child_id"]))
    states = await lists.states_of(
        connection, [child for own in found.values() for _, child in own], tenant_id=tenant_id
    )
    return {
        run_id: [ChildStatus(name=name, run_id=child, state=states.get(child)) for name, child in own]
        for run_id, own in found.items()
    }
