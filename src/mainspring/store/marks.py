"""Marks of queues: what comes in line later than its submission comes at the pace of the workers.

Beyond the high mark of a line and priority, runs that are due wait at a gate; at the low mark they come in line again,
in the places that they would have had. How many are in line is counted where it matters, and never kept.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mainspring.model.capacity import DEFAULT_HIGH_MARK, LinePressure
from mainspring.model.concurrency import home_of_gate
from mainspring.model.run import PRIORITIES
from mainspring.store import notify
from mainspring.store.admitted import NOBODY, Admitted
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.store.connection import Connection

LOOK_SECONDS = 0.02  # while runs wait: nobody says when workers have taken some
COUNTED = 100_000  # in each lane


async def admit(connection: Connection, gates: Iterable[str], lanes: int) -> Admitted:
    """Release whom their lines have room for: one transaction for each lane."""
    homes: defaultdict[int, list[str]] = defaultdict(list)
    for gate in gates:
        homes[home_of_gate(gate, lanes)].append(gate)
    together = NOBODY
    for lane, own in homes.items():
        rows = await load("limits/release_at_marks").fetch(connection, lane=lane, gates=own)
        together |= Admitted(
            [notify.ready(lane, row["line_id"], row["priority"]) for row in rows if row["runs"]],
            set(),
            {row["gate"]: LOOK_SECONDS for row in rows if row["has_more"]},
            sum(row["runs"] for row in rows),
        )
    return together


async def pressure(connection: Connection, queue: str, *, tenant_id: int) -> list[LinePressure]:
    """What is in line, and what waits for that, by line and priority."""
    rows = await load("queues/pressure").fetch(
        connection,
        tenant=tenant_id,
        queue=queue,
        priorities=list(PRIORITIES),
        bound=COUNTED,
        high=DEFAULT_HIGH_MARK,
    )
    return [
        LinePressure(
            priority=row["priority"], depth=row["depth"], waiting=row["waiting"], high=row["high"], low=row["low"]
        )
        for row in rows
    ]


async def set_marks(
    connection: Connection, queue: str, high: int | None, low: int | None, *, tenant_id: int, actor: str, reason: str
) -> None:
    await load("queues/set_marks").execute(
        connection, tenant=tenant_id, queue=queue, high=high, low=low, actor=actor, reason=reason
    )
