"""Looks at every gate at which runs wait, so that none of them depends on a hint that got lost; and recounts slots.

A hint gets lost with the process that would have followed it, and nobody hints when a limit is raised or removed,
when a run that was put off becomes due, or when somebody else's transaction commits late.

Very many gates may be closed. A look passes over them on the server, some thousands at a time, and rests in proportion
to what it cost. The gates of a limit that was raised or removed are looked at before all others, without a rest.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING

import structlog

from mainspring.keeper.lane_turns import LaneTurns
from mainspring.keeper.look import Look, LookFor
from mainspring.keeper.raised_limits import RaisedLimits
from mainspring.model.concurrency import to_look_at
from mainspring.model.rate import TICK_SECONDS
from mainspring.store import limits, notify, openings
from mainspring.store.admission import MOST_GATES, admit
from mainspring.store.admitted import NOBODY
from mainspring.store.gate_fronts import GateFronts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from mainspring.clock import Clock
    from mainspring.model.concurrency import LimitRule
    from mainspring.store.admitted import Admitted
    from mainspring.store.connection import Connection

log = structlog.get_logger()

EVERY = 0.5
SHARE = 0.05  # of the time, where very many gates are closed …
LONGEST_REST = 10.0  # … and seconds: what took long may have been a database that was stopped for a while
RECOUNT_EVERY = 30.0
NEVER = float("inf")
MOST_SWEEPS = 4  # in one step: other duties wait for their turn meanwhile
AFTER_ALL = ";"  # names of gates begin with a number


class Gatekeeper:
    def __init__(self, *, lanes: int, clock: Clock, look: Look | None = None) -> None:
        self._lanes = lanes
        self._look = look or Look(lanes=lanes, clock=clock)
        self._clock = clock
        self._after: dict[int, str] = {}  # up to where the gates of each lane were looked at
        self._unseen = set(range(lanes))  # lanes not all of whose gates were looked at since the beginning
        self._rests_until = float("-inf")
        self._raised = RaisedLimits()
        self._sweeps: dict[tuple[int, str], str] = {}  # lanes and limits to look at, and after which gate
        self._recount_at = clock.monotonic() + RECOUNT_EVERY
        self._quietener = notify.Quietener(clock)
        self._fronts = GateFronts(clock)
        self._turns = LaneTurns()
        self._hinted: set[str] = set()
        self._busy: set[str] = set()  # gates to look at again: somebody else was at it
        self._tokens_at = NEVER
        self.tokens_in: float | None = None  # in so many seconds somebody may pass who waits for no more than that

    def forget(self) -> None:
        """What was observed before no longer counts: all gates are looked at, without a rest."""
        self._look.forget()
        self._after.clear()
        self._unseen = set(range(self._lanes))
        self._rests_until = float("-inf")
        self._fronts = GateFronts(self._clock)
        self._raised.forget()
        self._sweeps.clear()

    async def step(self, connection: Connection) -> float:
        if self._clock.monotonic() >= self._recount_at:
            await self._recount(connection)
        lanes = await self._look.lanes(connection, LookFor.GATES)
        for rule in await self._raised.look(connection) if lanes else ():
            self._sweep_soon(rule)
        swept = await self._sweep(connection)
        looks = [await self._look_at_hinted(connection), *swept]
        if self._clock.monotonic() >= self._rests_until:
            self._tokens_at = NEVER
            looks += await self._look_around(connection, lanes)
        self._note_tokens(looks)
        if self._hinted or self._unseen or self._sweeps:
            return TICK_SECONDS if any(admitted.busy for admitted in swept) else 0.0
        every = self._look.pause(EVERY)
        wanted = every if self.tokens_in is None else max(TICK_SECONDS, self.tokens_in)
        return min(every, max(wanted, self._rests_until - self._clock.monotonic()))

    def _note_tokens(self, looks: Sequence[Admitted]) -> None:
        """While the look at all gates rests, what it found before is still true: but for where somebody was at it."""
        now = self._clock.monotonic()
        tokens = [seconds for each in looks for gate, seconds in each.later.items() if gate not in each.busy]
        self._tokens_at = min([max(now, self._tokens_at), *(now + seconds for seconds in tokens)])
        known = [] if self._tokens_at == NEVER else [self._tokens_at - now]
        self.tokens_in = min([*known, *(seconds for each in looks for seconds in each.later.values())], default=None)

    async def _admit(self, connection: Connection, gates: Collection[str]) -> Admitted:
        admitted = await admit(connection, gates, self._lanes, self._fronts)
        self._hinted |= admitted.gates
        notify.send(connection, self._quietener.pass_on(admitted.wake_ups))
        return admitted

    # ── gates that somebody spoke of ────────────────────────────────────────────────────────────────────────

    def hint(self, gates: Iterable[str]) -> None:
        """It may be somebody's turn at these: look there first."""
        self._hinted.update(gates)

    async def _look_at_hinted(self, connection: Connection) -> Admitted:
        hinted, self._busy = self._hinted | self._busy, set()
        gates = set(islice(hinted, MOST_GATES))
        self._hinted = hinted - gates
        admitted = await self._admit(connection, gates)
        self._busy |= admitted.busy
        return admitted

    # ── gates of limits that were raised ────────────────────────────────────────────────────────────────────

    def _sweep_soon(self, rule: LimitRule) -> None:
        """More may pass at this limit. Keepers who look at its gates at once do not all begin in one lane."""
        self._hinted.update((rule.number, f"{rule.number}:"))
        if rule.key:
            for lane in random.sample(range(self._lanes), self._lanes):
                self._sweeps[lane, rule.number] = f"{rule.number}:"

    async def _sweep(self, connection: Connection) -> list[Admitted]:
        return [await self._sweep_lane(connection, *sweep) for sweep in list(self._sweeps)[:MOST_SWEEPS]]

    async def _sweep_lane(self, connection: Connection, lane: int, number: str) -> Admitted:
        after = self._sweeps.pop((lane, number))
        if not connection.reach.has(lane):
            return NOBODY  # all is looked at when it is back
        found = await limits.open_gates(connection, lane, after, f"{number};", MOST_GATES)
        admitted = await self._admit(connection, found.gates)
        if admitted.busy:
            self._sweeps[lane, number] = after
        elif found.after:
            self._sweeps[lane, number] = found.after  # behind the others
        return admitted

    # ── all gates ───────────────────────────────────────────────────────────────────────────────────────────

    async def _look_around(self, connection: Connection, lanes: Sequence[int]) -> list[Admitted]:
        began = self._clock.monotonic()
        self._unseen.intersection_update(lanes)
        seen: set[str] = set()  # who shares a limit waits in many lanes, and is looked at once
        looks = [await self._look_at(connection, lane, seen) for lane in self._turns.of(lanes)]
        ended = self._clock.monotonic()
        self._rests_until = ended if self._unseen else ended + min(LONGEST_REST, (ended - began) / SHARE)
        return looks

    async def _look_at(self, connection: Connection, lane: int, seen: set[str]) -> Admitted:
        found = await limits.open_gates(connection, lane, self._after.get(lane, ""), AFTER_ALL, MOST_GATES)
        self._after[lane] = found.after
        if not found.after:
            self._unseen.discard(lane)
        wanted = {to_look_at(gate) for gate in found.gates} - seen
        seen.update(wanted)
        return await self._admit(connection, wanted)  # where somebody else is at it, he sees to it, or the next round

    async def _recount(self, connection: Connection) -> None:
        self._recount_at = self._clock.monotonic() + RECOUNT_EVERY
        for lane in connection.reach.lanes(range(self._lanes)):
            await limits.forget_full_buckets(connection, lane)
            await limits.forget_windows(connection, lane)
            await openings.forget(connection, lane)
            for run_id, gate in await limits.free_leaked(connection, lane):
                log.error("a slot was held by no run and was given back", run_id=str(run_id), gate=gate, lane=lane)
            for row in await limits.forget_ended(connection, lane):
                log.error("a run of a schedule had ended, and nobody had said so", run_id=str(row["run_id"]), lane=lane)
