"""Counting runs in the backlogs that they wait in, up to their caps.

A run under caps has an *entry* at each of its gates, in its own lane. Nobody removes it when the run is claimed or
ends: so claims and settlements know of no caps. Whoever submits locks the gate, where the entries are counted, and when
they are too many, or close to it, first clears those whose runs wait no longer. A count is thus never lower than what
waits, and exact where it decides; what it costs is spread over as many submissions as the cap allows.

Inside a caller's transaction nothing is locked: entries are added, and counted by whoever locks their gate next. So are
those of runs that come in any case: what follows from others (`store/triggering.py`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.backlog import FullBacklog, WhenFull, home_of_backlog
from mainspring.model.ids import lane_of
from mainspring.store.backlog_dropping import drop
from mainspring.store.backlog_gates import cleared, note_full, take
from mainspring.store.connection import transaction
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mainspring.errors import BacklogFull
    from mainspring.model.backlog import BacklogNotice
    from mainspring.model.run import NewRun
    from mainspring.store.backlog_gates import Standing
    from mainspring.store.connection import Connection

    Entries = dict[str, list[UUID]]  # new runs by gate, in the order of their acceptance

# As text, for whatever driver a caller has.
ADD_ENTRIES = "select mainspring.add_entries({}::text::smallint, {}::text::jsonb)"
ADD_UNCOUNTED = "select mainspring.add_uncounted({}::text::smallint, {}::text::jsonb)"


class Overflow(Exception):
    """Some backlogs have no room for all that was to be accepted. Let the transaction roll back."""

    def __init__(self, full: dict[str, FullBacklog]) -> None:
        super().__init__(full)
        self.full = full

    @property
    def caps(self) -> dict[str, int]:
        return {gate: found.notice.most for gate, found in self.full.items()}

    def error(self) -> BacklogFull:
        """For whoever gets nothing accepted."""
        return next(iter(self.full.values())).error()


# ── entering ────────────────────────────────────────────────────────────────────────────────────────────────────


def entries_of(ids: Iterable[UUID], runs: Iterable[NewRun]) -> Entries:
    entries: defaultdict[str, list[UUID]] = defaultdict(list)
    for run_id, run in zip(ids, runs, strict=True):
        for gate in () if run.backlog is None else run.backlog.split("\n"):
            entries[gate].append(run_id)
    return dict(entries)


async def enter(connection: Connection, entries: Entries, lanes: int) -> dict[str, BacklogNotice]:
    """Count new runs, inside the transaction that accepts them; answers with backlogs that are nearly full.

    Raises Overflow if some have no room, and by their policy make none.
    """
    standings = await take(connection, {gate: len(runs) for gate, runs in entries.items()}, lanes)
    full: dict[str, FullBacklog] = {}
    for gate, standing in standings.items():
        if not standing.is_taken:
            found = await _with_room(connection, standing, entries[gate], lanes)
            if isinstance(found, FullBacklog):
                full[gate] = found
            else:
                standings[gate] = found
    if full:
        raise Overflow(full)
    # Before there are new entries: their runs may not be there yet.
    notices = await _near(connection, standings.values(), lanes)
    await _add(connection, {gate: entries[gate] for gate in standings})
    return notices


async def _with_room(
    connection: Connection, standing: Standing, runs: Sequence[UUID], lanes: int
) -> Standing | FullBacklog:
    """The gate with places for these runs, or how many would fit."""
    standing = await cleared(connection, standing, lanes)
    lacking = standing.counted + len(runs) - standing.most
    drops = standing.when_full is not WhenFull.REFUSE
    if lacking > 0 and drops and len(runs) <= standing.most:
        dropped = await drop(connection, standing, lacking, runs, lanes)
        await note_full(connection, {standing.gate: standing.most}, lanes)
        standing, lacking = standing._replace(counted=standing.counted - dropped), lacking - dropped
    if lacking > 0:
        is_too_many = drops and len(runs) > standing.most  # at once: some of them would fit
        fits = standing.most if is_too_many else max(0, len(runs) - lacking)
        return FullBacklog(standing.notice, len(runs), fits, makes_room=is_too_many)
    return (await take(connection, {standing.gate: len(runs)}, lanes))[standing.gate]


async def _near(connection: Connection, standings: Iterable[Standing], lanes: int) -> dict[str, BacklogNotice]:
    """Backlogs that are nearly full, counted well enough to say so."""
    counted = [
        await cleared(connection, standing, lanes) if standing.seems_near else standing for standing in standings
    ]
    return {standing.gate: standing.notice for standing in counted if standing.notice.is_near}


async def _add(connection: Connection, entries: Entries) -> None:
    for lane, pairs in _by_lane(entries):
        await load("backlog/add").fetchval(connection, lane=lane, entries=pairs)


def _by_lane(entries: Entries) -> list[tuple[int, str]]:
    """Pairs of gates and runs, as JSON, by the lane of the runs."""
    lanes: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for gate, runs in entries.items():
        for run_id in runs:
            lanes[lane_of(run_id)].append((gate, str(run_id)))
    return [(lane, msgspec.json.encode(lanes[lane]).decode()) for lane in sorted(lanes)]


# ── without a lock ──────────────────────────────────────────────────────────────────────────────────────────────


async def look(connection: Connection, entries: Entries, lanes: int) -> dict[str, BacklogNotice]:
    """Before runs are accepted in a caller's transaction: refuse what has no room, in a transaction of our own.

    Answers with backlogs that will be nearly full. Where runs are dropped for others, none is refused: that comes when
    the caller has committed.
    """
    notices: dict[str, BacklogNotice] = {}
    full: dict[str, FullBacklog] = {}
    async with transaction(connection):
        for gate, standing in (await take(connection, dict.fromkeys(entries, 0), lanes)).items():
            wanted = len(entries[gate])
            with_new = standing._replace(counted=standing.counted + wanted)
            if with_new.counted > standing.most or with_new.seems_near:
                standing = await cleared(connection, standing, lanes)
                with_new = standing._replace(counted=standing.counted + wanted)
            if with_new.counted > standing.most and standing.when_full is WhenFull.REFUSE:
                full[gate] = FullBacklog(standing.notice, wanted, 0)
            elif with_new.notice.is_near:
                notices[gate] = with_new.notice
    if full:
        overflow = Overflow(full)
        await note_full(connection, overflow.caps, lanes)
        raise overflow.error()
    return notices


def callers_statements(entries: Entries, lanes: int) -> list[tuple[str, tuple[str, str]]]:
    """What a caller's connection executes for new runs, and its values."""
    own = [(ADD_ENTRIES, (str(lane), pairs)) for lane, pairs in _by_lane(entries)]
    return own + [(ADD_UNCOUNTED, (str(home), pairs)) for home, pairs in _by_home(entries, lanes)]


async def enter_uncounted(connection: Connection, entries: Entries, lanes: int) -> None:
    """The same on our own connection, inside the transaction that submits runs which come in any case."""
    await _add(connection, entries)
    for home, pairs in _by_home(entries, lanes):
        await load("backlog/add_uncounted").fetchval(connection, lane=home, entries=pairs)


def _by_home(entries: Entries, lanes: int) -> list[tuple[int, str]]:
    """Pairs of gates and runs, as JSON, by the lane in which the gates are counted."""
    homes: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for gate, runs in entries.items():
        homes[home_of_backlog(gate, lanes)] += [(gate, str(run_id)) for run_id in runs]
    return [(home, msgspec.json.encode(homes[home]).decode()) for home in sorted(homes)]


async def is_answered(connection: Connection, lane: int, run: NewRun, *, holds_by_time: bool) -> bool:
    """Whether an earlier run answers a submission under a key: then it has no need for room."""
    found = await load("backlog/answered").fetchval(
        connection,
        lane=lane,
        tenant=run.tenant_id,
        key=run.key,
        job=run.job_id,
        unique_key=None if run.wish is None else run.wish.key,
        holds_by_time=holds_by_time,
    )
    return bool(found)
