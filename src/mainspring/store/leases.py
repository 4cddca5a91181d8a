"""Leases: taking runs out of the line, and settling what became of them.

A worker claims a batch into one lease row. A lease all of whose runs succeeded is removed and turned into history by
one function on the server (`store/completions.py`). Every other run leaves its lease through one guarded statement
(`leases/settle`): it sets the runs' `done` bits if none of them was set before. What was done before (a resent
COMMIT) is accepted again with the same answer; what is no longer ours is stale, changes nothing and is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from mainspring.model.lifecycle import HoldReason, Outcome, State
from mainspring.store import fan_outs
from mainspring.store.columns import AttemptRecord
from mainspring.store.confirming import confirm_at_commit
from mainspring.store.connection import transaction
from mainspring.store.history import record_attempts, recorded_since
from mainspring.store.reports import conclude
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import timedelta
    from uuid import UUID

    from mainspring.store.connection import Connection, Record
    from mainspring.store.instants import Micros
    from mainspring.store.reports import FinalReport

CLAIM = load("runs/claim")
SETTLE = load("leases/settle")
CLOSE = load("leases/close")
END_RUNS = load("limits/end_runs")
L = TypeVar("L", bound="OfLease")
TELL_CHAINS = load("chains/tell")
STARTED_AT, OUTCOME, JOB = (AttemptRecord._fields.index(name) for name in ("started_at", "outcome", "job_id"))


class Lease(NamedTuple):
    """A worker's right to a batch of runs, as the worker remembers it."""

    lane: int
    id: UUID
    size: int


class OfLease(Protocol):
    @property
    def lease(self) -> Lease: ...


def in_order_of_lanes(batch: Iterable[L]) -> list[tuple[int, list[L]]]:
    """The batch lane by lane, in one order everywhere: two transactions over lanes never wait in a circle."""
    lanes: dict[int, list[L]] = defaultdict(list)
    for each in batch:
        lanes[each.lease.lane].append(each)
    return sorted(lanes.items(), key=itemgetter(0))


class Fate(Enum):
    """Where a settled run goes."""

    END = "end"  # to history
    RETRY = "retry"  # or snooze, which spends no attempt
    BURY = "bury"
    HOLD = "hold"
    AWAIT_CHILDREN = "await_children"  # it has succeeded when these have
    GIVE_BACK = "give_back"


class Hold(NamedTuple):
    """At which gates a run goes to wait, and which of their limits do not know yet that it is not in their lane."""

    gates: str
    strangers: set[int]
    reason: HoldReason = HoldReason.LIMIT


class Settled(NamedTuple):
    """What became of one run of a lease, with its row of history."""

    lease: Lease
    position: int
    run_id: UUID
    fence: int
    fate: Fate
    record: tuple[Any, ...]  # an AttemptRecord, as the plain tuple that COPY takes
    payload: bytes | None = None  # goes into history if the run ends here after all
    delay: float = 0.0
    is_traced: bool = True  # a run that never started goes back without a row of history
    not_before: Micros | None = None  # an instant to wait for, besides the delay
    spent: int = 1  # attempts, if it waits for another one or is out of them
    report: FinalReport | None = None
    shared_by: int = 1  # runs that one call of their handler was for
    gates: str | None = None  # of which the run holds slots, one per line
    hold: Hold | None = None  # to wait at these gates
    schedule_gate: str | None = None  # None: no schedule has to know of its end
    result: bytes | None = None  # kept while it waits for its children


@dataclass(slots=True)
class Settlement:
    """What the database made of a batch."""

    accepted: int = 0
    before: int = 0
    stale: int = 0
    cancelled: list[UUID] = field(default_factory=list)
    overruled: set[UUID] = field(default_factory=set)  # of these, history says something else than the worker
    succeeded: set[UUID] = field(default_factory=set)  # of those: in a transaction of their own
    told: set[int] = field(default_factory=set)  # lanes in which others wait for runs that were settled
    followed: set[int] = field(default_factory=set)  # lanes in which runs have ended that others follow


async def claim(
    connection: Connection,
    *,
    lane: int,
    line: int,
    priorities: Sequence[int],
    fronts: Sequence[int],
    count: int,
    lease_id: UUID,
    worker_id: UUID,
    jobs_in_threads: Sequence[int] = (),
    threads: int = 0,
) -> list[Record]:
    """Claim up to `count` runs, of `jobs_in_threads` only so many as there are threads.

    The rows come in the order of their positions in the lease.
    """
    return await CLAIM.fetch(
        connection,
        lane=lane,
        line=line,
        priorities=priorities,
        fronts=fronts,
        count=count,
        lease=lease_id,
        worker=worker_id,
        jobs_in_threads=jobs_in_threads,
        threads=threads,
    )


async def find(connection: Connection, lane: int, lease_id: UUID, worker_id: UUID) -> list[Record]:
    """The runs of a lease whose claim went unanswered; none if the claim did not happen."""
    return await load("leases/find").fetch(connection, lane=lane, lease=lease_id, worker=worker_id)


async def of_worker(connection: Connection, lanes: int, worker_id: UUID) -> list[Record]:
    return await load("leases/of_worker").fetch(
        connection, lanes=connection.reach.lanes(range(lanes)), worker=worker_id
    )


async def settle(
    connection: Connection, worker_id: UUID, batch: Sequence[Settled], followed: Collection[int] = ()
) -> Settlement:
    """Settle a batch in one transaction over all its lanes. Sending the same batch again changes nothing more.

    `followed` are the jobs after whose runs others are submitted.
    """
    settlement = Settlement()
    async with transaction(connection):
        await _mark_spread(connection, batch)
        records: list[tuple[Any, ...]] = []
        over: list[tuple[int, list[UUID]]] = []
        special: list[tuple[int, list[Settled]]] = []
        ends: list[tuple[int, list[UUID]]] = []
        for lane, of_lane in in_order_of_lanes(batch):
            accepted, finished = await _settle_lane(connection, worker_id, lane, of_lane, settlement)
            if any(each.fate is Fate.AWAIT_CHILDREN for each in accepted):
                accepted = await _await_children(connection, lane, accepted, settlement)
            await _send_back(connection, lane, accepted)
            special.append((lane, [each for each in accepted if _is_special(each)]))
            if followed and (over_and_followed := _over_of(followed, accepted)):
                ends.append((lane, over_and_followed))
                settlement.followed.add(lane)
            if lane in settlement.told:
                await _tell_children(connection, lane, accepted)
            await _conclude(connection, lane, [each for each in accepted if each.report is not None])
            records.extend(each.record for each in accepted if each.is_traced)
            if finished:
                over.append((lane, finished))
        if records:
            await record_attempts(connection, records)
        for lane, some in special:  # after their rows of history, which say how they ended
            await _free_slots(connection, lane, some)
        for lane, runs in ends:
            await TELL_CHAINS.execute(connection, lane=lane, runs=runs)
        for lane, finished in over:
            await CLOSE.execute(connection, lane=lane, leases=finished)
    return settlement


async def _settle_lane(
    connection: Connection, worker_id: UUID, lane: int, batch: list[Settled], settlement: Settlement
) -> tuple[list[Settled], list[UUID]]:
    """Set the bits of one lane; answers with what was accepted, cancellations applied, and the leases now over."""
    masks = _masks(batch)
    rows = await SETTLE.fetch(
        connection,
        lane=lane,
        worker=worker_id,
        leases=[lease.id for lease in masks],
        masks=[mask.decode() for mask in masks.values()],
        first=min(each.run_id for each in batch),
        last=max(each.run_id for each in batch),
    )
    answered = {row["id"]: row["cancelled"] for row in rows}
    if rows and rows[0]["has_children"]:
        settlement.told.add(lane)
    if len(answered) == len(masks):
        accepted = batch
    else:
        accepted = [each for each in batch if each.lease.id in answered]
        refused = [each for each in batch if each.lease.id not in answered]
        await _look_at_refused(connection, worker_id, lane, refused, settlement)
    settlement.accepted += len(accepted)
    if any(answered.values()):
        accepted = [_cancelled_if_asked(each, answered[each.lease.id], settlement) for each in accepted]
    return accepted, [row["id"] for row in rows if row["is_over"]]


def _masks(batch: list[Settled]) -> dict[Lease, bytearray]:
    masks: dict[Lease, bytearray] = {}
    for each in batch:
        mask = masks.get(each.lease)
        if mask is None:
            mask = masks[each.lease] = bytearray(b"0" * each.lease.size)
        mask[each.position] = 49  # "1"
    return dict(sorted(masks.items()))  # in the order in which checkpoints lock their leases: no waiting in a circle


def _cancelled_if_asked(settled: Settled, cancelled: str | None, settlement: Settlement) -> Settled:
    """A run that someone asked to cancel ends here instead of going back to wait. Success stays success."""
    if cancelled is None or cancelled[settled.position] == "0" or settled.fate is Fate.END:
        return settled
    settlement.cancelled.append(settled.run_id)
    settlement.overruled.add(settled.run_id)
    record = AttemptRecord(*settled.record)._replace(
        outcome=Outcome.CANCELLED.value, state=State.CANCELLED.value, payload=settled.payload
    )
    if not settled.is_traced:
        record = record._replace(attempt=0)
    gates = settled.gates if settled.hold is None else settled.hold.gates  # of which it may hold slots
    return settled._replace(fate=Fate.END, record=tuple(record), is_traced=True, gates=gates, hold=None)


async def _await_children(
    connection: Connection, lane: int, accepted: list[Settled], settlement: Settlement
) -> list[Settled]:
    """Whose handler has returned waits for its children, if it has any: it may have failed to submit them."""
    returned = [each.run_id for each in accepted if each.fate is Fate.AWAIT_CHILDREN]
    waiting = await fan_outs.returned(connection, lane, returned)
    settlement.told.add(lane)
    return [
        each if each.fate is not Fate.AWAIT_CHILDREN or each.run_id in waiting else _succeeded(each)
        for each in accepted
    ]


def _succeeded(settled: Settled) -> Settled:
    record = AttemptRecord(*settled.record)._replace(
        state=State.SUCCEEDED.value, result=settled.result, payload=settled.payload
    )
    return settled._replace(fate=Fate.END, record=tuple(record))


async def _look_at_refused(
    connection: Connection, worker_id: UUID, lane: int, refused: list[Settled], settlement: Settlement
) -> None:
    """Why was nothing updated? Recorded before: the same answer again. Otherwise stale: only written down."""
    rows = await load("leases/recorded_before").fetch(
        connection,
        lane=lane,
        worker=worker_id,
        runs=[each.run_id for each in refused],
        fences=[each.fence for each in refused],
        since_epoch=recorded_since(each.run_id for each in refused).timestamp(),  # this connection speaks raw time
    )
    recorded = {(row["run_id"], row["fence"]): row["outcome"] for row in rows}
    await confirm_at_commit(connection, lane)
    stale = [each for each in refused if each.is_traced and (each.run_id, each.fence) not in recorded]
    settlement.before += len(refused) - len(stale)
    settlement.stale += len(stale)
    settlement.overruled.update(
        each.run_id for each in refused if recorded.get((each.run_id, each.fence)) != each.record[OUTCOME]
    )
    settlement.succeeded.update(
        each.run_id for each in refused if recorded.get((each.run_id, each.fence)) == Outcome.SUCCEEDED
    )
    # An attempt that finished itself in its own transaction was recorded without its last lines.
    recorded_before = [each.report for each in refused if each.report and (each.run_id, each.fence) in recorded]
    if recorded_before:
        await conclude(connection, lane, recorded_before, ended=())
    if stale:
        await load("leases/record_stale").execute(
            connection,
            lane=lane,
            worker=worker_id,
            runs=[each.run_id for each in stale],
            fences=[each.fence for each in stale],
            leases=[each.lease.id for each in stale],
            outcomes=[AttemptRecord(*each.record).outcome for each in stale],
        )


async def _conclude(connection: Connection, lane: int, reported: list[Settled]) -> None:
    """Keep the last lines of attempts; forget what was known about runs that end."""
    if reported:
        reports = [each.report for each in reported if each.report is not None]
        ended = [each.run_id for each in reported if each.fate is Fate.END and each.report and each.report.has_rows]
        await conclude(connection, lane, reports, ended)


async def _send_back(connection: Connection, lane: int, accepted: list[Settled]) -> None:
    """Copy what does not end here from the lease to where it waits next, on the server."""
    going = [each for each in accepted if each.fate is not Fate.END]
    if not going:
        return
    for fate, group in groupby(sorted(going, key=lambda each: each.fate.value), key=lambda each: each.fate):
        some = list(group)
        values: dict[str, Any] = {
            "lane": lane,
            "leases": [each.lease.id for each in some],
            "positions": [each.position + 1 for each in some],
        }
        if fate is not Fate.HOLD:
            values["starts"] = [each.record[STARTED_AT] for each in some]
        if fate in (Fate.RETRY, Fate.GIVE_BACK):
            values["have_gates"] = [each.gates is not None for each in some]
        if fate in (Fate.RETRY, Fate.BURY, Fate.AWAIT_CHILDREN):
            values["spent"] = [each.spent for each in some]
        if fate is Fate.RETRY:
            values["delays"] = [each.delay for each in some]
            values["not_before"] = [each.not_before for each in some]
        if fate is Fate.AWAIT_CHILDREN:
            values["results"] = [each.result for each in some]
        if fate is Fate.HOLD:
            values["reasons"] = [_hold_reason(each).value for each in some]
            values["gates"] = [None if each.hold is None else each.hold.gates for each in some]
        await load(f"leases/{fate.value}").execute(connection, **values)


def _hold_reason(settled: Settled) -> HoldReason:
    return HoldReason.NO_HANDLER if settled.hold is None else settled.hold.reason


async def _mark_spread(connection: Connection, batch: Iterable[Settled]) -> None:
    """First of all and at once, so that nobody waits in a circle."""
    strangers = {rule for each in batch if each.hold is not None for rule in each.hold.strangers}
    if strangers:
        await load("limits/spread").execute(connection, ids=sorted(strangers))


# Where a run goes that does not end, as its slots see it. Its children may need those that it holds: it keeps none.
_WAITS = {
    Fate.RETRY: State.SCHEDULED,
    Fate.HOLD: State.HELD,
    Fate.BURY: State.DEAD,
    Fate.AWAIT_CHILDREN: State.SUCCEEDED,
}


def _is_special(settled: Settled) -> bool:
    """Whether its move has consequences for others."""
    return settled.gates is not None or settled.schedule_gate is not None or settled.hold is not None


async def _free_slots(connection: Connection, lane: int, accepted: list[Settled]) -> None:
    """Whoever leaves gives back the slots it need not keep. Back in line, a run keeps them all."""
    going_to_gates = [each for each in accepted if each.hold is not None]
    if going_to_gates:
        await load("limits/hold_slots").execute(
            connection,
            lane=lane,
            runs=[each.run_id for each in going_to_gates],
            gates=[each.hold.gates for each in going_to_gates if each.hold is not None],
        )
    leaving = [each for each in accepted if each.fate is not Fate.GIVE_BACK and each.hold is None]
    ended = [each.run_id for each in leaving if each.fate is Fate.END]
    if ended:
        await END_RUNS.execute(connection, lane=lane, runs=ended)
    for fate, state in _WAITS.items():
        waiting = [each.run_id for each in leaving if each.fate is fate]
        if waiting:
            await load("limits/free_slots").execute(connection, lane=lane, runs=waiting, state=state.value)


async def _tell_children(connection: Connection, lane: int, accepted: list[Settled]) -> None:
    """Those of the lane that wait for runs which are over now: by their end, or as dead letters."""
    over = [
        each.run_id
        for each in accepted
        if each.fate is Fate.BURY or (each.fate is Fate.END and not _is_special(each))  # else END_RUNS tells
    ]
    if over:
        await load("dependencies/tell").execute(connection, lane=lane, runs=over)


def _over_of(jobs: Collection[int], accepted: list[Settled]) -> list[UUID]:
    """Runs of these jobs that are over now, by their end or as dead letters."""
    return [each.run_id for each in accepted if each.fate in (Fate.END, Fate.BURY) and each.record[JOB] in jobs]


async def prune_stale(connection: Connection, lane: int, older_than: timedelta, count: int) -> int:
    """Forget up to `count` stale completions of one lane that were recorded longer ago; answers how many."""
    found = await load("leases/prune_stale").fetchval(connection, lane=lane, older_than=older_than, count=count)
    return int(found)
