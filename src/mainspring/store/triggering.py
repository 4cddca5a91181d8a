"""Submitting runs of jobs that follow others: `@app.job(after="load")`.

The transaction that ends a run of a job with followers notes that as *news* in its lane (`tell_chains`). Here the runs
that follow are made of it, after COMMIT: `trigger_runs` deletes the news and inserts the runs in one transaction, and
inserts only what follows from news that it has deleted. So of two that act at once, one submits; who dies before COMMIT
has done nothing, and after it everything. A hint makes it quick, and the keeper looks now and then
(`keeper/follower.py`).

Nobody could be told of a refusal, so backlogs with caps refuse none of these runs: they are entered there as those of a
caller's transaction are, and counted by whoever submits next, or by the keeper.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import InvalidInput, NotFound
from mainspring.model.actor import Actor
from mainspring.model.chain import MAX_DEPTH, depth_of, headers_after, payload_after
from mainspring.model.concurrency import caps_of
from mainspring.model.dependency import Condition, Met, Otherwise, met
from mainspring.model.ids import lane_of
from mainspring.model.job import definition_of
from mainspring.model.lifecycle import State
from mainspring.model.options import NO_OPTIONS
from mainspring.model.template import Numbers, template_of
from mainspring.store import backlog, backlog_caps, jobs, notify
from mainspring.store.connection import transaction
from mainspring.store.failures import ALL_DATABASE_ERRORS
from mainspring.store.history import recorded_since
from mainspring.store.statements import load
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.backlog import CapRule
    from mainspring.model.run import NewRun
    from mainspring.model.template import Template
    from mainspring.store.connection import Connection, Record

    Item = dict[str, Any]

MOST_NEWS = 100  # at once: each may bring a result along
MOST_BYTES = 8_000_000  # of arguments, at once; what follows from one run may be more


class Triggered(NamedTuple):
    """What was submitted, and whether there may be more news."""

    wake_ups: list[notify.WakeUp]
    is_more: bool


NOTHING = Triggered([], False)


async def trigger(connection: Connection, lane: int, lanes: int) -> Triggered:
    """Submit what follows from the ends of runs of a lane, of so many as there are."""
    news = await load("chains/news").fetch(connection, lane=lane, count=MOST_NEWS)
    if not news:
        return NOTHING
    following = await _following(connection, news)
    ended = await _ended(connection, lane, news, with_results=any(each["argument"] for each in _all(following)))
    building = Building(lane, await _templates(connection, following, news))
    told = []
    for each in news:
        if building.bytes > MOST_BYTES:
            break
        told.append(each)
        for chain in following[each["job_id"]]:
            if _is_met(chain, each):
                building.add(each, chain, ended.get(each["news"]))
    submitted = await _submit_and_enter(connection, lane, told, building, lanes)
    is_more = len(told) < len(news) or len(news) == MOST_NEWS
    return Triggered(building.wake_ups(submitted), is_more)


async def _submit_and_enter(
    connection: Connection, lane: int, told: Sequence[Record], building: Building, lanes: int
) -> set[UUID]:
    """Submit the runs; where they wait in backlogs with caps, with their entries there."""
    if not building.capped:
        return await _submit(connection, lane, told, building)
    async with transaction(connection):
        submitted = await _submit(connection, lane, told, building)
        own = {run_id: run for run_id, run in building.capped.items() if run_id in submitted}
        await backlog.enter_uncounted(connection, backlog.entries_of(own.keys(), own.values()), lanes)
    return submitted


async def _submit(connection: Connection, lane: int, told: Sequence[Record], building: Building) -> set[UUID]:
    """Answers with those whose news we were the first to take."""
    rows = await load("chains/trigger").fetch(
        connection,
        lane=lane,
        runs=list({each["run_id"] for each in told}),
        news=[each["news"] for each in told],
        items=msgspec.json.encode(building.items).decode(),
        refusals=msgspec.json.encode(building.refusals).decode(),
    )
    return {row["id"] for row in rows}


Following = defaultdict[int, list["Record"]]  # by the job that has ended, what follows


def _all(following: Following) -> list[Record]:
    return [each for some in following.values() for each in some]


async def _following(connection: Connection, news: Sequence[Record]) -> Following:
    found: Following = defaultdict(list)
    wanted = list({each["job_id"] for each in news})
    for row in await load("chains/following").fetch(connection, jobs=wanted):
        found[row["job_id"]].append(row)
    return found


def _is_met(chain: Record, news: Record) -> bool:
    return met(Condition(chain["condition"]), Otherwise.CANCEL, State(news["state"])) is Met.YES


async def _ended(connection: Connection, lane: int, news: Sequence[Record], *, with_results: bool) -> dict[str, Record]:
    """What history knows of their ends."""
    runs = [each["run_id"] for each in news]
    rows = await load("chains/ended").fetch(
        connection, lane=lane, runs=runs, since=recorded_since(runs), with_results=with_results
    )
    return {f"{row['run_id']} {row['fence']} {row['state']}": row for row in rows}


Templates = dict[tuple[int, str], "Template | str"]  # by the job that has ended, and what follows; or why none can


async def _templates(connection: Connection, following: Following, news: Sequence[Record]) -> Templates:
    tenants = {each["job_id"]: each["tenant_id"] for each in news}
    caps = {
        each: (await backlog_caps.in_force(connection, tenant_id=each)).get(each, []) for each in set(tenants.values())
    }
    found: Templates = {}
    for chain in _all(following):
        job_id, tenant_id = chain["job_id"], tenants[chain["job_id"]]
        found[job_id, chain["downstream"]] = await _template(connection, chain, caps[tenant_id], tenant_id)
    return found


async def _template(connection: Connection, chain: Record, caps: Sequence[CapRule], tenant_id: int) -> Template | str:
    """As whoever submits a run by its job's name; limits are looked at by whoever claims it.

    A job that follows others is not unique: if it has become so, its chain is about to be removed.
    """
    try:
        reference, document = await jobs.find(connection, chain["downstream"], tenant_id=tenant_id)
        definition = definition_of(document)
        line_id, _ = await jobs.line_in_known_queue(connection, definition.line, tenant_id=tenant_id)
    except ALL_DATABASE_ERRORS:
        raise  # that says nothing about the job: the news wait
    except (NotFound, InvalidInput, msgspec.ValidationError) as error:
        return str(error)
    numbers = Numbers(reference.id, reference.version, line_id)
    actor = Actor(tenant_id, f"after {chain['upstream']}")
    own_caps = caps_of(caps, definition.name, definition.line.queue)
    template = template_of(definition, NO_OPTIONS, numbers, actor=actor, trace={}, caps=own_caps)
    return template._replace(uniqueness=None)


class Building:
    """The runs that follow from news, and what cannot follow."""

    def __init__(self, lane: int, templates: Templates) -> None:
        self._lane = lane
        self._templates = templates
        self.items: list[Item] = []
        self.refusals: list[Item] = []
        self.capped: dict[UUID, NewRun] = {}  # those that wait in backlogs with caps
        self.bytes = 0

    def add(self, news: Record, chain: Record, ended: Record | None) -> None:
        template = self._templates[chain["job_id"], chain["downstream"]]
        headers = {} if ended is None or ended["headers"] is None else msgspec.json.decode(ended["headers"])
        if isinstance(template, str):
            self._refuse(news, chain, template)
        elif depth_of(headers) >= MAX_DEPTH:
            self._refuse(news, chain, f"{MAX_DEPTH} runs have followed from one another: it looks like a circle.")
        else:
            # Without a result in history its argument is left out: the worker says then that it is missing.
            result = None if ended is None else ended["result"]
            payload = b"{}" if ended is None else payload_after(chain["argument"], result)
            run = template.filled(payload, is_accepted=True)
            self._append(news, run, headers_after(news["run_id"], headers))

    def _append(self, news: Record, run: NewRun, headers: Mapping[str, str]) -> None:
        run_id = self._new_id(news["now"])
        self.bytes += len(run.payload)
        self.items.append(_item(news, run, headers, run_id))
        if run.backlog is not None:
            self.capped[run_id] = run

    def _new_id(self, now: datetime) -> UUID:
        return new_run_ids(1, self._lane, now)[0]

    def _refuse(self, news: Record, chain: Record, reason: str) -> None:
        self.refusals.append(
            {
                "news": news["news"],
                "tenant_id": news["tenant_id"],
                "actor": f"after {chain['upstream']}",
                "subject": str(news["run_id"]),
                "detail": {"job": chain["downstream"], "reason": reason},
            }
        )

    def wake_ups(self, submitted: set[UUID]) -> list[notify.WakeUp]:
        own = [each for each in self.items if each["id"] in submitted]
        return [notify.ready(lane_of(each["id"]), each["line_id"], each["priority"]) for each in own]


def _item(news: Record, run: NewRun, headers: Mapping[str, str], run_id: UUID) -> Item:
    return {
        "news": news["news"],
        "id": run_id,
        "tenant_id": run.tenant_id,
        "job_id": run.job_id,
        "job_version": run.job_version,
        "line_id": run.line_id,
        "priority": run.priority,
        "max_age": run.max_age,
        "start_within": run.start_within,
        "codec": run.codec,
        "payload": base64.b64encode(run.payload).decode(),
        "headers": headers,
        "submitted_by": run.submitted_by,
    }
