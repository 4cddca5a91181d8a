"""Whether a claimed run may start under the limits there are now.

Most runs with limits passed their gates before they came in line. Others did not, or passed others: they were accepted
before a limit was set, fired by a schedule, or changed. They go to wait at their gates, and no attempt is spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.concurrency import covers, gates_of, home_of_gate, rule_id
from mainspring.store import limits
from mainspring.store.columns import PAYLOAD
from mainspring.store.leases import Hold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mainspring.store.connection import Connection
    from mainspring.worker.registration import Lines, WorkerIdentity
    from mainspring.worker.registry import Handler
    from mainspring.worker.work import Work


class Gating:
    """The limits as this worker knows them: since the last time it was told of a change, or looked."""

    def __init__(self, *, worker: WorkerIdentity, lines: Lines, handlers: Mapping[int, Handler]) -> None:
        self._tenant_id = worker.tenant_id
        self._lanes = worker.lanes
        self._lines = lines
        self._handlers = handlers
        self._book = limits.NOBODY
        self._has_limits: dict[int, bool] = {}

    async def refresh(self, connection: Connection) -> None:
        known = self._book
        self._book = await limits.book(connection, tenant_id=self._tenant_id, known=known)
        if self._book is not known:
            self._has_limits.clear()

    def has_limits(self, line: int) -> bool:
        """Whether runs of this line may be under any: asked for each claim, and seldom so."""
        found = self._has_limits.get(line)
        if found is None:
            queue = self._lines[line].queue
            found = any(self._book.of(handler.name, queue) for handler in self._handlers.values())
            self._has_limits[line] = found
        return found

    def sort(self, works: Iterable[Work]) -> tuple[list[Work], list[tuple[Work, Hold]]]:
        """Those that may start, and those that have to wait at their gates first."""
        free: list[Work] = []
        gated: list[tuple[Work, Hold]] = []
        for work in works:
            hold = self._hold(work)
            if hold is None:
                free.append(work)
            else:
                gated.append((work, hold))
        return free, gated

    def _hold(self, work: Work) -> Hold | None:
        if work.handler is None:
            return None  # it will be held for that
        rules = self._book.of(work.handler.name, self._lines[work.line].queue)
        wanted = gates_of(rules, work.row[PAYLOAD], is_accepted=True)
        if wanted is None or covers(work.gates, wanted):
            return None
        strangers = {rule_id(gate) for gate in wanted.split("\n") if home_of_gate(gate, self._lanes) != work.lease.lane}
        return Hold(wanted, strangers - {rule.id for rule in rules if rule.is_spread})
