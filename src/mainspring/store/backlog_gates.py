"""The gates of backlog caps: locked by whoever counts at them, cleared of what waits no longer.

The order of locks is that of lanes, and of gates within a lane, for everybody. An entry is in the lane of its run, the
count of entries in that of the gate.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from mainspring.model.backlog import BacklogNotice, WhenFull, home_of_backlog
from mainspring.model.concurrency import LimitScope
from mainspring.store.declaring import Subject
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.store.connection import Connection, Record

COUNTED_ANEW = 0.1  # of a cap: after so many more entries, a backlog that seems nearly full is looked at
LOOKED_AT = 1_000  # entries of a gate, the oldest of each lane, while a larger cap is known to be full
ALL = 2_000_000_000
SECONDS_PER_ENTRY = 10e-6  # for so long a full backlog of such a cap is not looked at as a whole again


class Standing(NamedTuple):
    """How a gate stands that is locked."""

    home: int
    gate: str
    subject: str
    tenant_id: int
    most: int
    when_full: WhenFull
    counted: int
    checked: int
    is_taken: bool
    was_full: bool  # a moment ago

    @property
    def seems_near(self) -> bool:
        """Whether it is nearly full, if all entries that came since they were looked at still wait."""
        return self.notice.is_near and self.counted - self.checked > COUNTED_ANEW * self.most

    @property
    def notice(self) -> BacklogNotice:
        value = self.gate.partition(":")[2] or None
        return BacklogNotice(cap=self.subject, value=value, waiting=self.counted, most=self.most)


async def take(connection: Connection, counts: Mapping[str, int], lanes: int) -> dict[str, Standing]:
    """Lock gates, and take places where there are enough. Those whose cap is gone are not among the answers."""
    homes: defaultdict[int, list[str]] = defaultdict(list)
    for gate in counts:
        homes[home_of_backlog(gate, lanes)].append(gate)
    found: dict[str, Standing] = {}
    for home in sorted(homes):  # in one order, as everybody does
        gates = homes[home]
        rows = await load("backlog/take").fetch(
            connection, lane=home, gates=gates, counts=[counts[gate] for gate in gates]
        )
        found |= {row["gate"]: _standing(home, row) for row in rows}
    return found


def _standing(home: int, row: Record) -> Standing:
    return Standing(
        home,
        row["gate"],
        str(Subject(LimitScope(row["scope"]), row["name"], row["key"])),
        row["tenant_id"],
        row["most"],
        WhenFull(row["when_full"]),
        row["counted"],
        row["checked"],
        row["is_taken"],
        row["was_full"],
    )


async def cleared(connection: Connection, standing: Standing, lanes: int) -> Standing:
    """The gate without entries of runs that wait no longer. The oldest go first, and are looked at in any case."""
    is_whole = not standing.was_full
    count = ALL if is_whole else max(1, LOOKED_AT // lanes)
    found = [
        await clear(connection, lane, standing.gate, FIRST, count) for lane in connection.reach.lanes(range(lanes))
    ]
    gone = sum(each.gone for each in found)
    await leave(connection, standing.home, {standing.gate: gone}, are_checked=is_whole)
    counted = standing.counted - gone
    return standing._replace(counted=counted, checked=counted if is_whole else standing.checked)


class EntryPlace(NamedTuple):
    """Where an entry stands among those of its gate and lane."""

    place: int
    run_id: UUID


FIRST = EntryPlace(-1, UUID(int=0))  # before all others


class Cleared(NamedTuple):
    """How many entries went, and where to go on; None: they were all looked at."""

    gone: int
    last: EntryPlace | None


async def clear(connection: Connection, lane: int, gate: str, after: EntryPlace, count: int) -> Cleared:
    """Remove the entries of runs that wait no longer, of the next so many of one lane."""
    row = await load("backlog/clear").fetchrow(
        connection, lane=lane, gate=gate, after_place=after.place, after_run=after.run_id, count=count
    )
    assert row is not None
    return Cleared(row["cleared"], None if row["last_run"] is None else EntryPlace(row["last_place"], row["last_run"]))


async def leave(connection: Connection, home: int, gone: Mapping[str, int], *, are_checked: bool) -> None:
    await load("backlog/leave").execute(
        connection, lane=home, gates=list(gone), counts=list(gone.values()), are_checked=are_checked
    )


async def note_full(connection: Connection, caps: Mapping[str, int], lanes: int) -> None:
    """Let others know that there is no need to look through large backlogs again. `caps`: of gates that were full."""
    for gate, most in caps.items():
        if most > LOOKED_AT:
            await load("backlog/note_full").execute(
                connection, lane=home_of_backlog(gate, lanes), gate=gate, seconds=most * SECONDS_PER_ENTRY
            )
