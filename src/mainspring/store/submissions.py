"""Accepting runs: in bulk by COPY, everything that needs a decision by the SQL function `submit_runs`.

The same function serves a caller's own connection, so there is one implementation of keys, delays and ages.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from uuid import UUID, uuid4

import msgspec
from asyncpg.pgproto.pgproto import UUID as FastUUID  # encoded and decoded in C; a subclass of uuid.UUID

from mainspring.errors import ForeignDatabase
from mainspring.model.ids import at_home, lane_of, run_id_bytes
from mainspring.model.run import PLAIN
from mainspring.model.unique import DEBOUNCE
from mainspring.store.columns import COPIED
from mainspring.store.database import SCHEMA
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from mainspring.model.line import Line
    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection

    Item = dict[str, Any]

SUBMIT = load("runs/submit")
# What a caller's connection runs, for runs of one lane and of several; drivers differ only in how they write a
# parameter. All travels as text: as jsonb it would pass through whatever codec the caller has set for that.
SUBMIT_IN_LANE = """select ordinal, run_id, verdict
    from mainspring.submit_runs({}::text::smallint, {}::text::jsonb, {}::text::jsonb, {}::text)"""
SUBMIT_IN_LANES = """select ordinal, run_id, verdict
    from mainspring.submit_runs({}::text::jsonb, {}::text::jsonb, {}::text)"""
NO_RUN = UUID(int=0)
OBJECTIONS = ("foreign", "unknown")
ACCEPTING = ("ready", "later", "held", "idempotency", "unique_key")  # the tables that accept runs


class Verdict(NamedTuple):
    """What became of one item: `new`, `same` (the key was used for this very run), `conflict`, `gone`, or an objection.

    With a unique key: `earlier` (that run holds it) or `replaced` (that run waits, and has got what this one brings).
    Gone: the key was forgotten while we looked, so nothing was accepted and there is no run; submit it once more.
    An objection, `foreign` or `unknown`, is to what the client takes for granted: then nothing at all was accepted.
    """

    ordinal: int
    run_id: UUID
    verdict: str


def new_uuid() -> UUID:
    """At random; encoded as fast as those of runs."""
    return FastUUID(uuid4().bytes)


def new_worker_id(home: int) -> UUID:
    """At random, with this home lane."""
    return FastUUID(at_home(uuid4(), home))


def new_run_ids(count: int, lane: int, now: datetime) -> list[UUID]:
    return [FastUUID(each) for each in run_id_bytes(count, lane, now)]


async def copy_plain(connection: Connection, ids: Sequence[UUID], runs: Sequence[NewRun]) -> None:
    """Accept plain runs of one lane (see `NewRun.is_plain`)."""
    lane, plain = lane_of(ids[0]), len(PLAIN)
    await connection.copy_records_to_table(
        "ready",
        columns=COPIED,
        records=[(lane, run_id, *run[:plain]) for run_id, run in zip(ids, runs, strict=True)],
    )


async def submit_items(
    connection: Connection,
    ids: Sequence[UUID],
    runs: Sequence[NewRun],
    known: str,
    *,
    key_wait: str | None = None,
    accepted: Collection[UUID] = (),
) -> list[Verdict]:
    """Accept runs lane by lane: of several lanes all or none only within a transaction.

    `accepted`: those that were accepted before; the answer to their COMMIT was lost.
    """
    rows: list[Any] = [(place, run_id, "new") for place, run_id in enumerate(ids) if run_id in accepted]
    for lane, items in _items_by_lane(ids, runs, accepted):
        document = _as_json(items)
        rows += await SUBMIT.fetch(connection, lane=lane, items=document, known=known, key_wait=key_wait)
    return verdicts(rows, runs)


def known_document(installation: str, jobs: Mapping[int, str], lines: Mapping[int, Line]) -> str:
    """What a client takes for granted: which installation this is, and what the numbers of jobs and lines stand for."""
    words = {number: " ".join([line.queue, " ".join(line.requirements)]) for number, line in lines.items()}
    return msgspec.json.encode({"installation": installation, "jobs": dict(jobs), "lines": words}).decode()


async def has_locked_tables(connection: Connection) -> bool:
    """Whether a lock on a table, and not one on a key, is what keeps runs from being accepted."""
    return bool(await load("connections/has_locked_tables").fetchval(connection, schema=SCHEMA, tables=ACCEPTING))


async def objection_to(connection: Connection, known: str) -> str | None:
    """What the database objects to what a client takes for granted; it holds until the transaction ends."""
    objection = await load("jobs/objection_to").fetchval(connection, known=known)
    return None if objection is None else str(objection)


def raise_objection(objection: str) -> NoReturn:
    raise ForeignDatabase(
        "This connection leads to another Mainspring installation than the application's; nothing was accepted."
        if objection == "foreign"
        else "This database does not know the application's jobs by their numbers; nothing was accepted.",
        code="foreign-database" if objection == "foreign" else "definitions-unknown",
        hint="Give a connection to the application's own database, or let the application use that one.",
    )


def callers_statement(ids: Sequence[UUID], runs: Sequence[NewRun], known: str) -> tuple[str, list[str | None]]:
    """The one statement that accepts runs on a caller's connection, and its values.

    Of one lane, as nearly always, on Citus it is one command to one node.
    """
    lanes = _items_by_lane(ids, runs)
    if len(lanes) == 1:
        [(lane, items)] = lanes
        return SUBMIT_IN_LANE, [str(lane), _as_json(items), known, None]
    return SUBMIT_IN_LANES, [_as_json([item for _, items in lanes for item in items]), known, None]


def _items_by_lane(
    ids: Sequence[UUID], runs: Sequence[NewRun], accepted: Collection[UUID] = ()
) -> list[tuple[int, list[Item]]]:
    """In one order everywhere: two batches with the same keys wait for each other instead of deadlocking."""
    lanes: defaultdict[int, list[Item]] = defaultdict(list)
    repeated = _repeated(runs)
    for ordinal, (run_id, run) in enumerate(zip(ids, runs, strict=True)):
        if ordinal in repeated or run_id in accepted:
            continue
        item = _item(ordinal, run_id, run)
        lanes[item["lane"]].append(item)
    return sorted(lanes.items(), key=itemgetter(0))


def _as_json(items: Sequence[Item]) -> str:
    """Plain JSON, so that every driver can pass it."""
    return msgspec.json.encode(items).decode()


def _item(ordinal: int, run_id: UUID, run: NewRun) -> Item:
    item = {
        "ordinal": ordinal,
        "lane": lane_of(run_id),
        "id": str(run_id),
        "tenant_id": run.tenant_id,
        "job_id": run.job_id,
        "job_version": run.job_version,
        "line_id": run.line_id,
        "priority": run.priority,
        "at": run.at,
        "delay": run.delay,
        "max_age": run.max_age,
        "start_within": run.start_within,
        "overrides": None if run.overrides is None else msgspec.Raw(run.overrides.encode()),
        "codec": run.codec,
        "payload": base64.b64encode(run.payload).decode(),
        "headers": None if run.headers is None else msgspec.Raw(run.headers.encode()),
        "tags": run.tags,
        "key": run.key,
        "digest": None if run.digest is None else base64.b64encode(run.digest).decode(),
        "submitted_by": run.submitted_by,
        "gates": run.gates,
        "waits": True if run.after else None,
        "wish": None if run.wish is None else run.wish.as_item(),
    }
    return {name: value for name, value in item.items() if value is not None}  # most say little: less to be read


def verdicts(rows: Iterable[Any], runs: Sequence[NewRun]) -> list[Verdict]:
    """What the database answered for the items, in their order; items with the unique key of another get its run."""
    found = {row[0]: Verdict(row[0], NO_RUN if row[1] is None else UUID(str(row[1])), row[2]) for row in rows}
    for place, speaker in _repeated(runs).items():
        answer = found[speaker]
        found[place] = answer._replace(
            ordinal=place, verdict=answer.verdict if answer.verdict in OBJECTIONS else "earlier"
        )
    return sorted(found.values())


def _repeated(runs: Sequence[NewRun]) -> dict[int, int]:
    """Items of a batch that have the unique key of another one, which speaks for them: the last, if that replaces."""
    places: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for place, run in enumerate(runs):
        if run.wish is not None:
            places[run.job_id, run.wish.key].append(place)
    found: dict[int, int] = {}
    for sharing in places.values():
        speaker = sharing[-1] if _is_debounced(runs[sharing[0]]) else sharing[0]
        found |= {place: speaker for place in sharing if place != speaker}
    return found


def _is_debounced(run: NewRun) -> bool:
    return run.wish is not None and run.wish.rule == DEBOUNCE


async def any_accepted(connection: Connection, run_id: UUID) -> bool:
    """Whether a run is anywhere: for a submission whose COMMIT went unanswered. All of a batch are, or none."""
    found = await load("runs/exists").fetchval(
        connection, lane=lane_of(run_id), run=run_id, since=recorded_since([run_id])
    )
    return bool(found)
