"""What a worker notes when the database has answered for a batch of results, and what it says about itself."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import structlog

from mainspring.model.ids import home_of
from mainspring.store import queues, workers
from mainspring.store.columns import SPECIAL, AttemptRecord
from mainspring.store.leases import Fate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from mainspring.store.completions import Completed
    from mainspring.store.connection import Connection
    from mainspring.store.leases import Settled, Settlement
    from mainspring.worker.active_leases import ActiveLeases
    from mainspring.worker.attempt_log import AttemptLog
    from mainspring.worker.breakers import BreakerMonitor
    from mainspring.worker.flusher import Flusher
    from mainspring.worker.successes import WholeLease

log = structlog.get_logger()


class SettlementLog:
    """`has_room` is set: whoever waits to claim may do so, now that less is unsettled."""

    def __init__(
        self,
        *,
        attempts: AttemptLog,
        leases: ActiveLeases,
        statistics: LineStatistics,
        has_room: asyncio.Event,
        heard_of_later: Callable[[], None],
        heard_of_gates: Callable[[Iterable[str]], None],
        heard_of_parents: Callable[[Iterable[int]], None],
        heard_of_ends: Callable[[Iterable[int]], None],
        breakers: BreakerMonitor,
    ) -> None:
        self._attempts = attempts
        self._leases = leases
        self._statistics = statistics
        self._has_room = has_room
        self._heard_of_later = heard_of_later
        self._heard_of_gates = heard_of_gates
        self._breakers = breakers
        self._heard_of_parents = heard_of_parents  # lanes in which runs ended that others wait for
        self._heard_of_ends = heard_of_ends  # lanes in which runs ended that others follow

    def note(self, batch: list[Settled], settlement: Settlement) -> None:
        try:
            self._attempts.note(batch, settlement)  # while the leases still know its runs
        except Exception:  # other people's programs write to anything
            with contextlib.suppress(Exception):
                log.exception("what became of attempts could not be logged")
        self._leases.settled(batch)
        self._statistics.add(batch)
        self._has_room.set()
        if any(each.fate is Fate.RETRY for each in batch):
            self._heard_of_later()
        self._heard_of_gates(gate for each in batch if _is_special(each) for gate in _gates(each))
        self._heard_of_parents(settlement.told)
        self._heard_of_ends(settlement.followed)
        self._breakers.note(batch, settlement)

    def note_completed(self, completed: list[WholeLease], found: Completed) -> None:
        """All runs of these leases succeeded, and the database has recorded it; in some lanes others wait for them."""
        try:
            self._attempts.note_completed(completed)
        except Exception:  # as above
            with contextlib.suppress(Exception):
                log.exception("what became of attempts could not be logged")
        for lease in completed:
            self._leases.completed(lease.lease_id)
            self._statistics.add_completed(lease)
        self._has_room.set()
        self._heard_of_gates(
            gate
            for lease in completed
            for each in lease.successes
            if each.work.row[SPECIAL] is not None
            for gate in _lines(each.work.gates) + _of_schedule(each.work.schedule_gate)
        )
        self._heard_of_parents(found.told)
        self._heard_of_ends(found.followed)
        self._breakers.note_completed(completed)


def _is_special(settled: Settled) -> bool:
    return settled.gates is not None or settled.hold is not None or settled.schedule_gate is not None


def _gates(settled: Settled) -> list[str]:
    """Where it may be somebody's turn: at the gates of which a run held slots, and at the first where it waits now."""
    held_at = [] if settled.hold is None else _lines(settled.hold.gates)[:1]
    return _lines(settled.gates) + held_at + _of_schedule(settled.schedule_gate)


def _of_schedule(gate: str | None) -> list[str]:
    """Where later runs of its schedule may wait for this one."""
    return [gate] if gate else []


def _lines(gates: str | None) -> list[str]:
    return [] if gates is None else gates.split("\n")


_LINE, _STARTED, _FINISHED = (AttemptRecord._fields.index(name) for name in ("line_id", "started_at", "finished_at"))


class LineStatistics:
    """Counts what a worker finished for each line and how long it took, and tells the database now and then."""

    def __init__(self, worker_id: UUID) -> None:
        self._worker_id = worker_id
        self._finished: defaultdict[int, int] = defaultdict(int)
        self._busy_micros: defaultdict[int, int] = defaultdict(int)
        self._told: dict[int, tuple[int, float, int]] = {}

    def add(self, batch: Iterable[Settled]) -> None:
        """These were settled; those of them that had started count."""
        finished, busy = self._finished, self._busy_micros
        for each in batch:
            record = each.record
            started = record[_STARTED]
            if started is not None:
                line = record[_LINE]
                finished[line] += 1
                busy[line] += (record[_FINISHED][0] - started[0]) // each.shared_by

    def add_completed(self, lease: WholeLease) -> None:
        line = lease.successes[0].work.line
        self._finished[line] += len(lease.successes)
        self._busy_micros[line] += lease.busy_micros()

    async def tell(self, connection: Connection, holding: Counter[int]) -> None:
        """Say what changed since the last time; an idle worker says nothing."""
        present = {
            line: (self._finished[line], self._busy_micros[line] / 1_000_000, holding[line])
            for line in {*self._finished, *holding, *self._told}
        }
        news = {line: what for line, what in present.items() if self._told.get(line) != what}
        if news:
            await queues.tell(connection, self._worker_id, news)
            self._told = present


class SettlementMonitor:
    """Watches whether results can be settled: if not, the worker's row says so, and the worker ends if that lasts."""

    def __init__(self, *, worker_id: UUID, flusher: Flusher, give_up_after: float) -> None:
        self._worker_id = worker_id
        self._flusher = flusher
        self._give_up_after = give_up_after
        self._told: tuple[int, bool] = (0, False)

    async def tell(self, connection: Connection) -> None:
        """Say what changed since the last time; an idle worker says nothing."""
        present = (self._flusher.unsettled, self._flusher.is_failing)
        if present != self._told:
            failing = self._flusher.failing_seconds if self._flusher.is_failing else None
            await workers.tell_unsettled(connection, self._worker_id, self._flusher.unsettled, failing)
            self._told = present

    def should_give_up(self, synced_at: float) -> bool:
        """Whether nothing could be settled for long while the database answered everything else.

        When it answers nothing at all it is away, and waiting is right: whoever took over could not settle either.
        """
        failing_since = self._flusher.failing_since
        if failing_since is None or self._flusher.failing_seconds < self._give_up_after:
            return False
        return synced_at > failing_since + self._give_up_after / 2


class StatusWriter:
    """Writes down what people see of a worker."""

    def __init__(
        self, *, worker_id: UUID, leases: ActiveLeases, statistics: LineStatistics, monitor: SettlementMonitor
    ) -> None:
        self._home = home_of(worker_id)
        self._leases = leases
        self._statistics = statistics
        self._monitor = monitor

    async def write(self, connection: Connection) -> None:
        """What has changed since the last time; an idle worker writes nothing."""
        if connection.reach.has(self._home):  # it is for people: they see what was said last
            await self._statistics.tell(connection, self._leases.by_line())
            await self._monitor.tell(connection)
