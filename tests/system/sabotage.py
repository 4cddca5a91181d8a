"""Switches single mechanisms off, so that a control can show that a fault test would notice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mainspring.keeper import rescuer
from mainspring.keeper.rescuer import Rescuer
from mainspring.model.fan_out import Children
from mainspring.store import admission, buckets, callers, completions, leases, marks, resolving, sharing, workers
from mainspring.store.admitted import NOBODY, Admitted
from mainspring.store.completions import Completed
from mainspring.store.functions import all_functions
from mainspring.store.openings import Probing
from mainspring.store.statements import load
from mainspring.worker import outcomes
from mainspring.worker.active_leases import LeaseReconciler
from mainspring.worker.breakers import BreakerMonitor
from mainspring.worker.capacity import Capacity
from mainspring.worker.claimer import Claimer
from mainspring.worker.executor import Executor
from mainspring.worker.flusher import Flusher
from mainspring.worker.supervised import SupervisedProcess
from mainspring.worker.supervisor import Supervisor
from mainspring.worker.time_limits import Timekeeper
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.store.connection import Connection
    from mainspring.worker.flusher import SentLease


def apply() -> None:
    """What the environment names, unless whoever forked this process has."""
    for name in filter(None, os.environ.get("MAINSPRING_SABOTAGE", "").split(",")):
        if name not in _APPLIED:
            _APPLIED.add(name)
            _SABOTAGES[name]()


_APPLIED: set[str] = set()


def _no_rescue() -> None:
    async def step(self: Rescuer, connection: object) -> float:
        return 60.0

    async def settle_ended(self: Supervisor) -> None:
        self._ended.clear()

    Rescuer.step = step  # type: ignore[method-assign]
    Supervisor._rescue_ended = settle_ended  # type: ignore[method-assign]


def _no_guard() -> None:
    """Results whose lease is gone are written all the same."""
    settle_lane = leases._settle_lane

    async def settle_lane_anyway(connection: Any, worker: Any, lane: int, batch: list[Any], settlement: Any) -> Any:
        _, finished = await settle_lane(connection, worker, lane, batch, settlement)
        return batch, finished

    leases._settle_lane = settle_lane_anyway  # type: ignore[assignment]


def _no_replay() -> None:
    """A batch whose COMMIT went unanswered is taken as settled."""

    async def deliver(self: Flusher, batch: list[Any]) -> None:
        try:
            settlement = await self._settle(batch)
        except Exception:
            await self._link.mend()
            settlement = leases.Settlement(accepted=len(batch))
        self._note(batch, settlement)

    async def completed_leases(self: Flusher, sent: list[SentLease]) -> tuple[list[SentLease], Completed]:
        whole = [each.completion for each in sent]
        try:
            return sent, await completions.complete(await self._link.get(), self._worker_id, whole)
        except Exception:
            await self._link.mend()
            return sent, Completed({each.lease.id for each in whole}, set(), set())

    Flusher._deliver = deliver  # type: ignore[method-assign]
    Flusher._completed_leases = completed_leases  # type: ignore[method-assign]


def _no_lookup() -> None:
    """Claims whose answer was lost are forgotten, and leases nobody remembers stay."""

    async def find_unanswered(self: Claimer) -> None:
        self.under_way.clear()

    async def reconcile(self: LeaseReconciler, connection: object) -> None:
        return

    Claimer._find_unanswered = find_unanswered  # type: ignore[method-assign]
    LeaseReconciler.reconcile = reconcile  # type: ignore[method-assign]


def _no_frozen() -> None:
    """The supervisor beats for a child that is stopped."""
    SupervisedProcess.is_frozen = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]


def _impatient() -> None:
    """A rescuer that judges by elapsed time alone, whatever it could not see meanwhile."""

    def is_silent(self: Rescuer, pulse: workers.Pulse, now: float) -> bool:
        known = self._observed.get(pulse.worker_id)
        if known is None or known.beat != pulse.beat:
            self._observed[pulse.worker_id] = rescuer.Observation(pulse.beat, now, now)
            return False
        return now - known.since >= pulse.lease_seconds

    Rescuer._is_silent = is_silent  # type: ignore[method-assign]
    Rescuer.forget = lambda self: None  # type: ignore[method-assign]


def _by_the_clock() -> None:
    """A rescuer that judges by the database's clock."""
    late = (
        "select id from worker join worker_heartbeat as said on worker_id = id"
        " where state = 'live' and clock_now() - said.beat_at > lost_after * interval '1 second'"
    )

    async def step(self: Rescuer, connection: Any) -> float:
        for row in await connection.fetch(late):
            await workers.lose_if_silent(connection, row["id"], None)
        return 0.0

    Rescuer.step = step  # type: ignore[method-assign]


def _no_give_back() -> None:
    """A drain that leaves what it did not finish where it is."""
    Executor.give_back_waiting = lambda self, **options: None  # type: ignore[method-assign]
    Executor.stop_running = lambda self: os._exit(0)  # type: ignore[method-assign]


def _no_hold() -> None:
    """A run without a handler here is discarded."""
    from mainspring.worker.work import Work

    Work.held = Work.cancelled  # type: ignore[method-assign]


def _no_mode() -> None:
    """Runs whose worker is lost start again, however they are to be delivered."""
    rescue = workers.rescue

    async def whatever_the_mode(connection: Connection, *arguments: Any) -> workers.Rescued:
        function = all_functions()["rescue_leases"].replace("delivery=at_most_once", "delivery=not_like_this")
        await connection.execute(function)
        return await rescue(connection, *arguments)

    workers.rescue = whatever_the_mode  # type: ignore[assignment]


def _no_fence() -> None:
    """A transactional run is finished by its worker, after the transaction, like any other."""
    callers.FINISH = f"select {', '.join(['{}::text'] * 8)}"
    outcomes.returned = lambda work, handler, result, now: work.succeeded(None, now)


def _no_disconnect_stop() -> None:
    from mainspring.worker import time_limits

    time_limits.DISCONNECT_MARGIN = -1_000.0


def _no_blame() -> None:
    """Runs that were there when a worker crashed run in the next worker like any other."""
    from mainspring.worker.isolation.isolation import Isolation

    Isolation.is_for = lambda self, work, handler: handler.definition.isolated  # type: ignore[method-assign]


def _no_blame_in_chunks() -> None:
    """Runs that were there when a worker crashed share calls again."""
    from mainspring.worker import gatherer

    gatherer._has_crashed = lambda work: False


def _no_families() -> None:
    """Only a child and its process group are killed; nobody adopts orphans."""
    from mainspring.worker.isolation import processes

    def kill_group(pid: int) -> None:
        processes.send_to_group(pid, signal.SIGKILL)

    processes.adopt_orphans = lambda: None
    processes.kill_family = kill_group


def _no_leash() -> None:
    """Nobody minds that the one who started them is gone."""
    from mainspring.worker.isolation import processes
    from mainspring.worker.isolation.zygote import Zygote

    processes.die_with_parent = lambda number: None
    Zygote._end = lambda self: None  # type: ignore[method-assign]


def _no_timeouts() -> None:
    """Nobody watches how long attempts take."""
    Timekeeper.watch = lambda self, work: None  # type: ignore[method-assign]


def _no_recycling() -> None:
    """A process keeps its slots full of handlers that would not stop."""
    Capacity.needs_replacement = property(lambda self: False)  # type: ignore[assignment]


def _no_stuck() -> None:
    """The supervisor does not mind what its child says about its limits."""
    SupervisedProcess.is_stuck = lambda self, now, looks: False  # type: ignore[method-assign]


def _no_reports() -> None:
    """What attempts say is written only when they end."""
    from mainspring.worker.reporter import Reporter

    async def run(self: Reporter) -> None:
        await asyncio.Event().wait()

    Reporter.run = run  # type: ignore[method-assign]


def _no_checkpoint() -> None:
    """Attempts do not look for what an earlier one stored."""
    from mainspring.worker.reporter import Reporter

    async def checkpointed(self: Reporter, run_id: object) -> None:
        return None

    Reporter.checkpointed = checkpointed  # type: ignore[method-assign]


def _no_checkpoint_fence() -> None:
    """Checkpoints are stored whoever has the lease by now."""

    statement = load("reports/store_checkpoints")
    statement.text = """
        insert into checkpoint (lane, run_id, fence, value)
        select lane, sent.run_id, sent.fence, sent.value
        from lane, unnest($1::uuid[], $2::int[], $3::uuid[], $4::int[], $5::bytea[])
            as sent (lease_id, position, run_id, fence, value)
        where $6::uuid is not null and lane.lane = $7::smallint
        on conflict (lane, run_id) do update set fence = excluded.fence, value = excluded.value
        returning run_id, fence"""


def _no_local_beat() -> None:
    """Beats wait for the standby, like everything else."""
    from mainspring.store.link import Link

    begin = Link.__init__

    def begin_without_settings(self: Link, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options | {"settings": None})

    Link.__init__ = begin_without_settings  # type: ignore[method-assign]


def _looks() -> None:
    """No sabotage, but a rescuer that says when it has looked."""
    step = Rescuer.step

    async def step_and_tell(self: Rescuer, connection: Any) -> float:
        pause = await step(self, connection)
        await connection.execute("insert into public.effect (pid, what) values ($1, 'looked')", os.getpid())
        return pause

    Rescuer.step = step_and_tell  # type: ignore[method-assign]


def _hasty() -> None:
    """No sabotage, but bounds so short that a test can wait for them."""
    from mainspring.store import connection, hosts

    connection.ANSWER_SECONDS = 1.5
    hosts.CONNECT_SECONDS = 1.5


def _no_bound_on_unsettled() -> None:
    """Whoever cannot settle claims on."""
    Flusher.room = lambda self: 1_000_000  # type: ignore[method-assign]


def _no_giving_up() -> None:
    from mainspring.worker.running import RunningWorker

    RunningWorker.has_given_up = property(lambda self: False)  # type: ignore[assignment]


def _no_repair() -> None:
    """A partition that is missing stays so."""
    from mainspring.keeper.partitioner import Partitioner
    from mainspring.store.database import Database

    async def has_repaired(self: Database, error: BaseException) -> bool:
        return False

    async def step(self: Partitioner, connection: object) -> float:
        return 60.0

    Database.has_repaired = has_repaired  # type: ignore[method-assign]
    Partitioner.step = step  # type: ignore[method-assign]


def _no_settings() -> None:
    """Sessions take what the role was given."""
    from mainspring.store import database

    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        del database.SETTINGS[name]


def _no_counting() -> None:
    """Whoever releases runs at their limits believes that no slot is held."""

    async def used(*_: Any) -> admission.Used:
        return admission.Used(Counter(), Counter())

    admission._used = used  # type: ignore[assignment]
    statement = load("limits/open_gates")
    assert "rule.most is null" in statement.text
    statement.text = statement.text.replace("rule.most is null", "true")


def _no_slots_for_rescued() -> None:
    """Runs that come back from a lost worker come back without their slots."""
    rescue = workers.rescue

    async def without_slots(connection: Connection, lane: int, worker_id: Any, *arguments: Any) -> workers.Rescued:
        # Before: a moment after it, others may have claimed them.
        await connection.execute(
            "delete from slot using lease where lease.worker_id = $1 and lease.lane = slot.lane"
            " and slot.run_id = any (lease.ids)",
            worker_id,
        )
        return await rescue(connection, lane, worker_id, *arguments)

    workers.rescue = without_slots  # type: ignore[assignment]


def _no_order() -> None:
    """Whoever came last passes first."""
    statement = load("limits/next_turns")
    statement.text = last_first(statement.text)


def last_first(text: str) -> str:
    assert "order by held.gate, held.turn limit" in text
    return text.replace("order by held.gate, held.turn limit", "order by held.gate desc, held.turn desc limit")


def _no_tokens() -> None:
    """Whoever releases runs knows of no rate."""

    async def filled(*_: Any) -> dict[str, Any]:
        return {}

    buckets.filled = filled  # type: ignore[assignment]


def _no_shares() -> None:
    """Whoever releases runs of a shared limit counts nobody's slots."""

    async def used(*_: Any) -> sharing.UsedSlots:
        return sharing.UsedSlots(Counter(), Counter())

    sharing._used = used  # type: ignore[assignment]


def _no_marks() -> None:
    """Nobody lets runs come in line again where a line has room for them."""

    async def admit(*_: Any) -> Admitted:
        return NOBODY

    marks.admit = admit  # type: ignore[assignment]


def _no_pending() -> None:
    """Whoever resolves dependencies believes that nothing else is waited for."""

    async def pending(*_: Any) -> set[Any]:
        return set()

    resolving._pending = pending  # type: ignore[assignment]


def _no_breakers() -> None:
    """Nobody counts failures."""
    BreakerMonitor.note = lambda self, batch, settlement: None  # type: ignore[method-assign]


def _no_probing() -> None:
    """Whoever releases runs at an open breaker neither waits for the instant of a probe nor for another one."""
    _no_counting()
    Probing.shut = property(lambda self: {}, lambda self, value: None)  # type: ignore[assignment]
    vars(admission)["free_slots"] = lambda gates, rules, used: dict.fromkeys(gates, 1_000)


def _no_resolving() -> None:
    """Nobody sees to runs that wait for others."""

    async def resolve(*_: Any) -> resolving.Resolved:
        return resolving.NOTHING

    resolving.resolve = resolve  # type: ignore[assignment]


def _no_waiting_for_children() -> None:
    """A run that has children ends when its handler returns."""
    Work.has_children = False  # type: ignore[assignment, method-assign]


def _no_names_of_children() -> None:
    """Whoever submits a child again submits another one."""
    keys = Children.keys

    @contextmanager
    def other_keys(self: Children, job: str, name: str | None, count: int) -> Iterator[list[str]]:
        with keys(self, job, name, count) as named:
            yield [f"{key} {uuid4()}" for key in named]

    Children.keys = other_keys  # type: ignore[method-assign]


_SABOTAGES = {
    "children": _no_waiting_for_children,
    "names_of_children": _no_names_of_children,
    "resolving": _no_resolving,
    "pending": _no_pending,
    "shares": _no_shares,
    "marks": _no_marks,
    "tokens": _no_tokens,
    "order": _no_order,
    "slots_for_rescued": _no_slots_for_rescued,
    "counting": _no_counting,
    "breakers": _no_breakers,
    "probing": _no_probing,
    "hasty": _hasty,
    "looks": _looks,
    "unsettled": _no_bound_on_unsettled,
    "giving_up": _no_giving_up,
    "repair": _no_repair,
    "settings": _no_settings,
    "local_beat": _no_local_beat,
    "rescue": _no_rescue,
    "reports": _no_reports,
    "checkpoint": _no_checkpoint,
    "checkpoint_fence": _no_checkpoint_fence,
    "guard": _no_guard,
    "replay": _no_replay,
    "lookup": _no_lookup,
    "frozen": _no_frozen,
    "impatient": _impatient,
    "by_the_clock": _by_the_clock,
    "give_back": _no_give_back,
    "hold": _no_hold,
    "disconnect": _no_disconnect_stop,
    "mode": _no_mode,
    "fence": _no_fence,
    "blame": _no_blame,
    "chunk_blame": _no_blame_in_chunks,
    "families": _no_families,
    "leash": _no_leash,
    "timeouts": _no_timeouts,
    "recycling": _no_recycling,
    "stuck": _no_stuck,
}
