"""Children that did not end as they should have, for whoever retries their runs.

A dead child comes back under its name, as itself. One that was cancelled, lost or expired never does: its name is
forgotten, and the handler that runs again submits another one under it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mainspring.model.dependency import Condition, Met, Otherwise, met
from mainspring.model.fan_out import prefix_of
from mainspring.model.lifecycle import ENDS, State
from mainspring.store import lists
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mainspring.store.connection import Connection, Record


class FailedChildren(NamedTuple):
    """Dead letters, in the order in which they were found; and by their runs, children that are over for good."""

    dead: list[UUID]
    over: defaultdict[UUID, list[UUID]]


async def find(connection: Connection, lane: int, run_ids: Iterable[UUID], *, tenant_id: int) -> FailedChildren:
    """Children of runs of one lane that failed and might not, and those of children that failed or go on."""
    found = FailedChildren([], defaultdict(list))
    level = list(run_ids)
    while level:
        rows = await load("fan_outs/kept").fetch(connection, lane=lane, runs=level)
        ends = await _ends(connection, rows, tenant_id)
        level = [row["parent_id"] for row in rows if _sorted_into(found, row, ends.get(row["parent_id"]))]
    return found


async def _ends(connection: Connection, rows: Sequence[Record], tenant_id: int) -> dict[UUID, State]:
    states = await lists.states_of(connection, [row["parent_id"] for row in rows], tenant_id=tenant_id)
    lost = {row["parent_id"]: State.LOST for row in rows if row["is_lost"]}
    return lost | {child: state for child, state in states.items() if state in (State.DEAD, *ENDS)}


def _sorted_into(found: FailedChildren, row: Record, ended_as: State | None) -> bool:
    """Note a child if it failed; answers whether to look at its own. Its run waits, so it is the parent in the row."""
    how = met(Condition(row["condition"]), Otherwise.CANCEL, ended_as)
    if how is Met.NO and ended_as is State.DEAD:
        found.dead.append(row["parent_id"])
    elif how is Met.NO:
        found.over[row["child_id"]].append(row["parent_id"])
    return how is Met.NOT_YET or (how is Met.NO and ended_as is State.DEAD)


async def forget(connection: Connection, lane: int, children: Mapping[UUID, Sequence[UUID]], *, tenant_id: int) -> None:
    """Runs, whose handlers run again, have not had these children: they may submit others under their names."""
    for run_id, some in children.items():
        await load("fan_outs/forget_names").execute(
            connection,
            lane=lane,
            tenant=tenant_id,
            first=prefix_of(run_id),
            last=prefix_of(UUID(int=run_id.int + 1)),
            children=some,
        )
        await load("fan_outs/drop").execute(connection, lane=lane, run=run_id, children=some)
