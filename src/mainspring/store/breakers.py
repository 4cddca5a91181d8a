"""Circuit breakers: what they are, who set them, how attempts ended; and opening and closing them.

Whoever writes one does so alone, under the lock of limits. So what was counted is looked at again before a breaker
opens: if it has closed meanwhile, the failures of before are gone.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.model.breaker import MAX_OPEN_VALUES, WHOLE_JOB, Breaker, Counts, Opening
from mainspring.model.concurrency import EVERYBODY
from mainspring.model.ids import lane_of_key
from mainspring.store import jobs, notify, openings
from mainspring.store.connection import transaction
from mainspring.store.declaring import revision_locked
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mainspring.model.breaker import BreakerRule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.jobs import JobRef
    from mainspring.store.reach import Reach

AUDIT_LANE = 0
COUNTED = 10_000  # runs that wait at one gate, or rows of what was counted, in each lane
MOST_VALUES = 500  # in one statement
MAX_ERROR_LENGTH = 500


class Who(NamedTuple):
    """Who does something to the breakers of a tenant, and why."""

    tenant_id: int
    actor: str
    reason: str = ""


class Gauge(NamedTuple):
    """What is counted together: the outcomes of one breaker for one value of its key."""

    rule: BreakerRule
    value: str

    def home(self, lanes: int) -> int:
        return lane_of_key(EVERYBODY, f"{self.rule.id}:{self.value}", lanes)


def subject_of(job: str) -> str:
    return f"breaker of job {job}"


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def listed(connection: Connection, *, tenant_id: int) -> list[Record]:
    return await load("breakers/list").fetch(connection, tenant=tenant_id)


async def history(connection: Connection, job: str, count: int, *, tenant_id: int) -> list[Record]:
    return await load("breakers/history").fetch(
        connection, lane=AUDIT_LANE, subject=subject_of(job), tenant=tenant_id, count=count
    )


async def standing(connection: Connection, lane: int, gates: Sequence[str]) -> list[Record]:
    """Who is being tried at some gates in one lane, and how many wait."""
    return await load("breakers/standing").fetch(connection, lane=lane, gates=gates, bound=COUNTED)


async def failures(connection: Connection, lane: int, rules: Sequence[BreakerRule]) -> dict[int, int]:
    rows = await load("breakers/failures").fetch(
        connection, lane=lane, breakers=[each.id for each in rules], withins=_withins(rules), bound=COUNTED
    )
    return {row["breaker_id"]: row["failures"] for row in rows}


def declared_breaker(text: str | None) -> Breaker | None:
    return None if text is None else msgspec.json.decode(text, type=Breaker)


# ── counting ────────────────────────────────────────────────────────────────────────────────────────────────────


async def tally(connection: Connection, lanes: int, counted: Mapping[Gauge, Counts]) -> None:
    """Add to how attempts ended. Each lane by itself: what a lost answer may have cost is counted no second time."""
    for lane, gauges in _by_lane(counted, lanes, connection.reach):
        for start in range(0, len(gauges), MOST_VALUES):
            some = gauges[start : start + MOST_VALUES]
            await load("breakers/tally").execute(
                connection,
                lane=lane,
                breakers=[each.rule.id for each in some],
                key_values=[each.value for each in some],
                widths=[each.rule.breaker.slice_seconds for each in some],
                withins=_withins(each.rule for each in some),
                successes=[counted[each].successes for each in some],
                failures=[counted[each].failures for each in some],
            )


async def totals(connection: Connection, lanes: int, gauges: Iterable[Gauge]) -> dict[Gauge, Counts]:
    """How attempts ended within the windows of their breakers, whoever counted them."""
    found: dict[Gauge, Counts] = {}
    for lane, own in _by_lane(gauges, lanes, connection.reach):
        rows = await load("breakers/totals").fetch(
            connection,
            lane=lane,
            breakers=[each.rule.id for each in own],
            key_values=[each.value for each in own],
            withins=_withins(each.rule for each in own),
        )
        known = {(each.rule.id, each.value): each for each in own}
        found |= {known[row["breaker_id"], row["value"]]: Counts(row["failures"], row["successes"]) for row in rows}
    return found


def _by_lane(gauges: Iterable[Gauge], lanes: int, reach: Reach) -> list[tuple[int, list[Gauge]]]:
    homes: defaultdict[int, list[Gauge]] = defaultdict(list)
    for gauge in gauges:
        homes[gauge.home(lanes)].append(gauge)
    return sorted((home, own) for home, own in homes.items() if reach.has(home))


def _withins(rules: Iterable[BreakerRule]) -> list[float]:
    return [each.breaker.within.total_seconds() for each in rules]


# ── opening and closing ─────────────────────────────────────────────────────────────────────────────────────────


async def open_tripped(
    connection: Connection, lanes: int, rule: BreakerRule, failing: Mapping[str, str], who: Who
) -> dict[str, Counts]:
    """Open a breaker for values whose attempts fail, with these errors, where that still holds and nobody has.

    Answers for which values it did, and why. In one transaction: each write of breakers has everybody read them anew.
    """
    if not await _not_open(connection, rule.job, failing, who):  # a look without the lock
        return {}
    async with transaction(connection):
        await revision_locked(connection)
        if not await _is_in_force(connection, rule, who):
            return {}
        wanted = await _not_open(connection, rule.job, failing, who)
        found = await totals(connection, lanes, [Gauge(rule, value) for value in wanted])
        tripped = {gauge.value: counts for gauge, counts in found.items() if rule.breaker.trips(*counts)}
        if tripped and await _is_too_wide(connection, rule.job, tripped, who):
            tripped = {WHOLE_JOB: Counts(*map(sum, zip(*tripped.values(), strict=True)))}
        errors = {value: failing.get(value) or next(iter(failing.values())) for value in tripped}
        said = {value: _cause(rule, counts, errors[value]) for value, counts in tripped.items()}
        opened = await _open(connection, rule, said, who, has_probes=True, by_hand=False) if said else set()
        return {value: tripped[value] for value in opened}


class OpeningCause(NamedTuple):
    """Why a breaker is open for a value; nothing where somebody opened it by hand."""

    failures: int | None = None
    attempts: int | None = None
    error: str | None = None


def _cause(rule: BreakerRule, counts: Counts, error: str) -> OpeningCause:
    attempts = counts.failures + counts.successes if rule.breaker.counts_successes else None
    return OpeningCause(counts.failures, attempts, error[:MAX_ERROR_LENGTH])


async def _is_in_force(connection: Connection, rule: BreakerRule, who: Who) -> bool:
    """Whether it was neither removed nor changed since its outcomes were counted."""
    return any(row["id"] == rule.id for row in await listed(connection, tenant_id=who.tenant_id))


async def _not_open(connection: Connection, job: str, values: Iterable[str], who: Who) -> list[str]:
    row = await _openings_of(connection, job, values, who)
    return [] if row["is_whole"] else [value for value in values if value not in row["open"]]


async def _is_too_wide(connection: Connection, job: str, values: Collection[str], who: Who) -> bool:
    """Whether it would be open for so many values that it had better be for all."""
    row = await _openings_of(connection, job, values, who)
    return bool(row["open_values"] + len(values) - len(row["open"]) > MAX_OPEN_VALUES)


async def _openings_of(connection: Connection, job: str, values: Iterable[str], who: Who) -> Record:
    row = await load("breakers/opening_of").fetchrow(connection, tenant=who.tenant_id, job=job, key_values=list(values))
    assert row is not None
    return row


async def open_by_hand(connection: Connection, rule: BreakerRule, value: str, who: Who, *, has_probes: bool) -> None:
    """Inside a transaction."""
    await revision_locked(connection)
    if await _is_too_wide(connection, rule.job, [value], who):
        value = WHOLE_JOB
    await _open(connection, rule, {value: OpeningCause()}, who, has_probes=has_probes, by_hand=True)


async def _open(
    connection: Connection,
    rule: BreakerRule,
    said: Mapping[str, OpeningCause],
    who: Who,
    *,
    has_probes: bool,
    by_hand: bool,
) -> set[str]:
    """Answers for which values it is open now, and was not."""
    within = rule.breaker.within.total_seconds()
    last = await revision_locked(connection, len(said))  # runs carry these numbers in their gates: nothing had them
    rows = await load("breakers/open").fetch(
        connection,
        ids=list(range(last - len(said) + 1, last + 1)),
        tenant=who.tenant_id,
        job=rule.job,
        key_values=list(said),
        actor=who.actor,
        reason=who.reason,
        within=within,
        has_probes=has_probes,
        by_hand=by_hand,
        subject=subject_of(rule.job),
        detail=_document({"within": within, "probes": has_probes, "reason": who.reason}),
        failures=[each.failures for each in said.values()],
        attempts=[each.attempts for each in said.values()],
        errors=[each.error for each in said.values()],
    )
    notify.send(connection, [notify.limits()])
    return {row["value"] for row in rows}


async def close(connection: Connection, lanes: int, opening: Opening, who: Who, **said: Any) -> bool:
    """Close a breaker where it is open, inside a transaction; answers whether it was. Its failures are forgotten."""
    await revision_locked(connection)
    return await _close(connection, lanes, opening, who, said)


async def _close(connection: Connection, lanes: int, opening: Opening, who: Who, said: Mapping[str, Any]) -> bool:
    found = await load("breakers/close").fetchval(
        connection,
        tenant=who.tenant_id,
        id=opening.id,
        actor=who.actor,
        subject=subject_of(opening.job),
        detail=_document({**said, "reason": who.reason}),
    )
    for row in await listed(connection, tenant_id=who.tenant_id):
        if row["job"] == opening.job:
            home = lane_of_key(EVERYBODY, f"{row['id']}:{opening.value}", lanes)
            await load("breakers/clear").execute(connection, lane=home, breaker=row["id"], value=opening.value)
    notify.send(connection, [notify.limits()])
    return found is not None


async def close_after_success(connection: Connection, lanes: int, ids: Iterable[int], who: Who) -> int:
    """Probes have succeeded at these openings; answers how many of them were still open."""
    wanted = {*ids}
    found = await openings.of_tenant(connection, tenant_id=who.tenant_id)
    closing = [each for each in found if each.id in wanted and each.has_probes]
    if not closing:
        return 0
    async with transaction(connection):
        await revision_locked(connection)
        return sum([await _close(connection, lanes, each, who, {"probe": "succeeded"}) for each in closing])


# ── setting and removing ────────────────────────────────────────────────────────────────────────────────────────


async def put(
    connection: Connection, lanes: int, job: str, breaker: Breaker, who: Who, *, declared: Breaker | None
) -> None:
    """Set the breaker of a job, inside a transaction. In force at its COMMIT. With another key it has other values."""
    number = await revision_locked(connection)
    for opening in await openings.of_tenant(connection, tenant_id=who.tenant_id):
        if opening.job == job and opening.value != WHOLE_JOB and opening.key != breaker.key:
            await _close(connection, lanes, opening, who, {"key": breaker.key})
    await load("breakers/put").execute(
        connection,
        id=number,
        tenant=who.tenant_id,
        job=job,
        key=breaker.key or "",
        failures=breaker.failures,
        within=breaker.within.total_seconds(),
        failure_ratio=breaker.failure_ratio,
        probe_after=breaker.probe_after.total_seconds(),
        max_probe_after=breaker.max_probe_after.total_seconds(),
        declared=None if declared is None else _document(declared),
        actor=who.actor,
        reason=who.reason,
        subject=subject_of(job),
        detail=_document({**msgspec.to_builtins(breaker), "reason": who.reason}),
    )
    notify.send(connection, [notify.limits()])


async def remove(connection: Connection, lanes: int, job: str, who: Who) -> bool:
    """Whoever waits goes on. Answers whether there was one."""
    await revision_locked(connection)
    for opening in await openings.of_tenant(connection, tenant_id=who.tenant_id):
        if opening.job == job:
            await _close(connection, lanes, opening, who, {})
    found = await load("breakers/remove").fetchval(
        connection,
        tenant=who.tenant_id,
        job=job,
        actor=who.actor,
        subject=subject_of(job),
        detail=_document({"reason": who.reason}),
    )
    notify.send(connection, [notify.limits()])
    return found is not None


async def declare(
    connection: Connection,
    lanes: int,
    job: str,
    reference: JobRef,
    breaker: Breaker | None,
    *,
    tenant_id: int,
    actor: str,
) -> None:
    """Let what a job declares take effect, where the code says something else than it did before: see limits."""
    if await declared(connection, job, tenant_id=tenant_id) == breaker or await jobs.is_outdated(
        connection, job, reference, tenant_id=tenant_id
    ):
        return
    async with transaction(connection):
        await revision_locked(connection)  # somebody may do the same at this moment
        if await declared(connection, job, tenant_id=tenant_id) == breaker:
            return
        if breaker is None:
            await remove(connection, lanes, job, Who(tenant_id, actor, "no longer declared"))
        else:
            await put(connection, lanes, job, breaker, Who(tenant_id, actor, "declared"), declared=breaker)


async def declared(connection: Connection, job: str, *, tenant_id: int) -> Breaker | None:
    """What the code said before."""
    rows = await listed(connection, tenant_id=tenant_id)
    return next((declared_breaker(row["declared"]) for row in rows if row["job"] == job), None)


def _document(value: Any) -> str:
    return msgspec.json.encode(value).decode()
