"""What the runs of a schedule have in common, by its job and its options: looked up now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.model.actor import Actor
from mainspring.model.job import definition_of
from mainspring.model.options import options_of
from mainspring.model.template import Numbers, template_of
from mainspring.store import jobs

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection

KEPT_SECONDS = 5.0  # so long after a deploy, runs may still follow the job's definition of before
MOST = 10_000


class RunKind(NamedTuple):
    """Schedules that make the same kind of run."""

    tenant_id: int
    job_id: int
    options: str  # as JSON


class Templates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[RunKind, NewRun] = {}
        self._known_since = 0.0

    async def of(self, connection: Connection, kind: RunKind) -> NewRun:
        """A run of this kind, without its payload."""
        now = self._clock.monotonic()
        if now - self._known_since > KEPT_SECONDS or len(self._known) > MOST:
            self._known, self._known_since = {}, now
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = await self._look_up(connection, kind)
        return found

    async def _look_up(self, connection: Connection, kind: RunKind) -> NewRun:
        name, reference, document = await jobs.find_by_id(connection, kind.job_id, tenant_id=kind.tenant_id)
        definition, options = definition_of(document), options_of(msgspec.json.decode(kind.options))
        line_id, _ = await jobs.line_in_known_queue(connection, options.line_of(definition), tenant_id=kind.tenant_id)
        numbers = Numbers(reference.id, reference.version, line_id)
        return template_of(definition, options, numbers, actor=Actor(kind.tenant_id, name), trace={}).run
