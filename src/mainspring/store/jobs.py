"""Jobs and queues: small shared tables, registered in transactions of their own and remembered per process."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.errors import InvalidInput, JobNotFound, QueueNotFound, RowExists, did_you_mean, shortened
from mainspring.model.job import checked_name
from mainspring.model.line import Line
from mainspring.store.connection import transaction
from mainspring.store.distribute import coordinator_elsewhere
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.store.connection import Connection, Record

MOST_JOBS = 10_000
REGISTER_TRIES = 5
MAX_LINES = 100  # per queue: each of them is one more place for a worker to look


class JobRef(NamedTuple):
    """A job as runs refer to it."""

    id: int
    version: int


async def register(
    connection: Connection,
    name: str,
    definition: dict[str, Any],
    *,
    actor: str,
    tenant_id: int,
) -> JobRef:
    """Make sure the job exists with this definition; two deploys that alternate keep their two versions."""
    for _ in range(REGISTER_TRIES):
        try:
            return await _register(connection, name, definition, actor=actor, tenant_id=tenant_id)
        except RowExists:  # someone else registers the same at the same moment: now it is there
            continue
    return await _register(connection, name, definition, actor=actor, tenant_id=tenant_id)


async def _register(
    connection: Connection, name: str, definition: dict[str, Any], *, actor: str, tenant_id: int
) -> JobRef:
    text = msgspec.json.encode(definition, order="sorted").decode()
    known = {
        "tenant": tenant_id,
        "digest": hashlib.sha256(text.encode()).digest(),
    }
    found = await load("jobs/find_version").fetchrow(connection, name=name, **known)
    if found is not None and found["version"] is not None:
        return JobRef(*found)
    number = await _own_number(connection) if found is None else {}
    async with transaction(connection):
        if found is None:
            statement = load("jobs/register_with_number") if number else load("jobs/register")
            found = await statement.fetchrow(connection, name=name, definition=text, actor=actor, **known, **number)
        if found is None:  # someone registered it meanwhile
            found = await load("jobs/find_version").fetchrow(connection, name=name, **known)
        if found is not None and found["version"] is None:
            found = await load("jobs/add_version").fetchrow(
                connection, job=found["job_id"], definition=text, actor=actor, **known
            )
    assert found is not None
    return JobRef(*found)


async def _own_number(connection: Connection) -> dict[str, int]:
    """A number for a new job or line, where the sequence cannot be asked. At random, from the half that sequences never
    reach: if somebody has it, that is refused, and tried again with another.
    """
    if await coordinator_elsewhere(connection) is None:
        return {}
    return {"number": random.randrange(1 << 30, (1 << 31) - 1)}


async def is_outdated(connection: Connection, name: str, reference: JobRef, *, tenant_id: int) -> bool:
    """Whether a newer version of the code has registered since: then what an older one declares changes nothing."""
    newest, _ = await find(connection, name, tenant_id=tenant_id)
    return reference.version < newest.version


async def find(connection: Connection, name: str, *, tenant_id: int) -> tuple[JobRef, dict[str, Any]]:
    row = await load("jobs/find").fetchrow(connection, tenant=tenant_id, name=checked_name(name, "job"))
    if row is None:
        names = await load("jobs/names").fetch(connection, tenant=tenant_id)
        raise _no_such_job(name, (each["name"] for each in names))
    return JobRef(row["id"], row["version"]), msgspec.json.decode(row["definition"])


async def find_by_id(connection: Connection, job_id: int, *, tenant_id: int) -> tuple[str, JobRef, dict[str, Any]]:
    """A job's name, number and newest definition."""
    row = await load("jobs/find_by_id").fetchrow(connection, job=job_id, tenant=tenant_id)
    if row is None:
        raise JobNotFound(f"There is no job with the number {job_id}.", field="job", value=job_id)
    return row["name"], JobRef(job_id, row["version"]), msgspec.json.decode(row["definition"])


async def latest(
    connection: Connection, names: Sequence[str] | None, after: str, count: int, *, tenant_id: int
) -> list[Record]:
    """Jobs by name, with their newest definitions."""
    return await load("jobs/list").fetch(connection, tenant=tenant_id, names=names, after=after, count=count)


async def names_of(connection: Connection, job_ids: Iterable[int], *, tenant_id: int) -> dict[int, str]:
    rows = await load("jobs/names_of").fetch(connection, tenant=tenant_id, jobs=list(job_ids))
    return {row["id"]: row["name"] for row in rows}


async def find_many(connection: Connection, job_ids: Iterable[int]) -> list[Record]:
    """Whose jobs these are, and their names: of all tenants, for those who serve all of them."""
    return await load("jobs/names_of_all").fetch(connection, jobs=list(job_ids))


async def all_names(connection: Connection, *, tenant_id: int) -> dict[int, str]:
    """The jobs there are, by id."""
    rows = await load("jobs/ids").fetch(connection, tenant=tenant_id, count=MOST_JOBS)
    return {row["id"]: row["name"] for row in rows}


def ids_of(names: dict[int, str], wanted: Sequence[str]) -> list[int]:
    """The jobs with these names; all of them if none is wanted."""
    by_name = {name: job_id for job_id, name in names.items()}
    for name in wanted:
        if name not in by_name:
            raise _no_such_job(name, by_name)
    return [by_name[name] for name in wanted] or list(names)


def _no_such_job(name: str, known: Iterable[str]) -> JobNotFound:
    return JobNotFound(
        f"There is no job named {shortened(name)}.",
        hint=did_you_mean(name, known)
        or "Jobs appear when an application that defines them starts a worker, or submits a run of them for a tenant.",
        field="job",
        value=name,
    )


async def queue_names(connection: Connection, *, tenant_id: int) -> dict[int, str]:
    """The queue of each line, whatever labels it requires."""
    return {row["id"]: row["queue"] for row in await load("jobs/lines").fetch(connection, tenant=tenant_id)}


def lines_of_queues(queues: dict[int, str], wanted: Sequence[str]) -> list[int]:
    """All lines of these queues; all there are if none is wanted."""
    for queue in wanted:
        if queue not in queues.values():
            raise _no_such_queue(queue, queues.values())
    return [line for line, queue in queues.items() if not wanted or queue in wanted]


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def lines(connection: Connection, *, tenant_id: int) -> dict[Line, int]:
    """Every line there is, with its number."""
    rows = await load("jobs/lines").fetch(connection, tenant=tenant_id)
    return {Line.of(row["queue"], row["labels"]): row["id"] for row in rows}


class TenantLine(NamedTuple):
    """A line, its number, and whose it is."""

    number: int
    line: Line
    tenant_id: int
    tenant: str
    weight: int  # of the tenant


async def all_lines(connection: Connection) -> list[TenantLine]:
    """Every line of every tenant: for those who serve all of them."""
    rows = await load("jobs/all_lines").fetch(connection)
    return [
        TenantLine(row["id"], Line.of(row["queue"], row["labels"]), row["tenant_id"], row["tenant"], row["weight"])
        for row in rows
    ]


async def open_lines(connection: Connection, wanted: Iterable[Line], *, tenant_id: int) -> dict[Line, int]:
    """Make sure these lines exist, and the plain line of each of their queues; answers with every line there is."""
    known = await lines(connection, tenant_id=tenant_id)
    missing = {each for line in wanted for each in (Line(line.queue), line)} - set(known)
    for line in sorted(missing):
        number = await _own_number(connection)
        statement = load("jobs/open_line_with_number") if number else load("jobs/open_line")
        await statement.execute(
            connection, tenant=tenant_id, queue=line.queue, labels=line.requirements, most=MAX_LINES, **number
        )
    if missing:
        known = await lines(connection, tenant_id=tenant_id)
    for line in sorted(missing - set(known)):
        raise InvalidInput(
            f"Queue {line.queue!r} has {MAX_LINES} different sets of labels already; there is no room for another.",
            code="too-many-lines",
            hint="Labels say what a worker must have, not what a run is about: for that there are tags.",
            field="labels",
            value=", ".join(line.labels),
            rule=f"must make at most {MAX_LINES} different sets per queue",
        )
    return known


async def line_in_known_queue(connection: Connection, line: Line, *, tenant_id: int) -> tuple[int, dict[Line, int]]:
    """The number of a line, opened if need be, and every line there is. A queue that nobody uses is refused."""
    known = await lines(connection, tenant_id=tenant_id)
    queues = {each.queue for each in known}
    if line.queue not in queues:
        raise _no_such_queue(line.queue, queues)
    if line not in known:
        known = await open_lines(connection, [line], tenant_id=tenant_id)
    return known[line], known


async def open_queues(connection: Connection, queues: Iterable[str], *, tenant_id: int) -> dict[str, int]:
    """Make sure these queues exist; answers with the plain line of each queue there is."""
    return _plain(await open_lines(connection, map(Line, queues), tenant_id=tenant_id))


async def lines_of(connection: Connection, *, tenant_id: int) -> dict[str, int]:
    """The plain line of each queue there is: no labels, delivered at least once."""
    return _plain(await lines(connection, tenant_id=tenant_id))


async def all_lines_of(connection: Connection, queue: str, *, tenant_id: int) -> list[int]:
    """Every line of a queue, whatever it requires."""
    return [number for line, number in (await lines(connection, tenant_id=tenant_id)).items() if line.queue == queue]


def line_of(lines: dict[str, int], queue: str) -> int:
    try:
        return lines[queue]
    except KeyError:
        raise _no_such_queue(queue, lines) from None


def _no_such_queue(queue: str, known: Iterable[str]) -> QueueNotFound:
    return QueueNotFound(
        f"There is no queue named {shortened(queue)}.",
        hint=did_you_mean(queue, known) or "A queue appears with the first job that uses it.",
        field="queue",
        value=queue,
    )


def _plain(known: dict[Line, int]) -> dict[str, int]:
    return {line.queue: number for line, number in known.items() if not line.requirements}
