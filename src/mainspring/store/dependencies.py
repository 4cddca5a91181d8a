"""Runs that wait until others have ended: writing down who waits for whom. What comes of it: `store/resolving.py`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.dependency import Condition
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mainspring.model.dependency import Parent
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection, Record

    Item = dict[str, Any]

MOST_SHOWN = 100


# ── writing down ────────────────────────────────────────────────────────────────────────────────────────────────


def items_by_lane(ids: Sequence[UUID], runs: Sequence[NewRun]) -> list[tuple[int, str]]:
    """Who of these new runs waits for whom, as JSON, by the lane of those that are waited for, in order."""
    return items_of([(child, run.after or ()) for child, run in zip(ids, runs, strict=True)], set(ids))


def items_of(
    children: Iterable[tuple[UUID, Sequence[Parent]]], new: set[UUID], *, only: set[UUID] | None = None
) -> list[tuple[int, str]]:
    """The same; `only` for those of their parents."""
    lanes: defaultdict[int, list[Item]] = defaultdict(list)
    for child, parents in children:
        own = sorted({lane_of(parent.run_id) for parent in parents})
        for parent in parents:
            if only is not None and parent.run_id not in only:
                continue
            lanes[lane_of(parent.run_id)].append(
                {
                    "parent": str(parent.run_id),
                    "child": str(child),
                    "lanes": own,
                    "condition": parent.condition.value,
                    "otherwise": parent.otherwise.value,
                    "inputs": parent.inputs or None,
                    "is_new": parent.run_id in new,
                }
            )
    return [(lane, msgspec.json.encode(items).decode()) for lane, items in sorted(lanes.items())]


async def add(connection: Connection, ids: Sequence[UUID], runs: Sequence[NewRun]) -> None:
    """Write down for whom new runs wait, inside the transaction that submits them, and before that."""
    for lane, items in items_by_lane(ids, runs):
        rows = await load("dependencies/add").fetch(connection, lane=lane, tenant=runs[0].tenant_id, items=items)
        refuse_unknown(row["run_id"] for row in rows)


def refuse_unknown(unknown: Iterable[UUID]) -> None:
    first = next(iter(unknown), None)
    if first is not None:
        raise InvalidInput(
            f"after names run {first}, and there is no such run, or history has forgotten it.",
            code="parent-not-found",
            hint="Name runs that were submitted; inside a flow, its own nodes.",
            field="after",
            value=str(first),
        )


async def states_of_parents(connection: Connection, lane: int, rows: Sequence[Record]) -> dict[UUID, State]:
    """How those ended for which runs wait, of those that have."""
    if not rows:
        return {}
    parents = [row["parent_id"] for row in rows]
    ends = await load("dependencies/ends").fetch(connection, lane=lane, runs=parents, since=recorded_since(parents))
    lost = {row["parent_id"]: State.LOST for row in rows if row["is_lost"]}
    return lost | {row["run_id"]: State(row["state"]) for row in ends}


def any_to_check(ids: Sequence[UUID], runs: Sequence[NewRun]) -> bool:
    """Whether some wait for runs that were submitted before: those may have ended meanwhile."""
    if all(run.after is None for run in runs):
        return False
    new = set(ids)
    return any(each.run_id not in new for run in runs for each in run.after or ())


async def waited_for(connection: Connection, child: UUID, lanes: int) -> dict[UUID, Condition]:
    """For which runs a run still waits, the first few, and how they have to end."""
    rows = [
        row
        for lane in connection.reach.lanes(range(lanes))
        for row in await load("dependencies/parents").fetch(connection, lane=lane, child=child, count=MOST_SHOWN)
    ]
    return {row["parent_id"]: Condition(row["condition"]) for row in rows}
