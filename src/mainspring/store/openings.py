"""Where circuit breakers are open, and who is tried there: for whoever releases runs, and whoever claims them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mainspring.model.breaker import Breaker, BreakerRule, Opening, ProbeProgress
from mainspring.model.concurrency import LimitRule, LimitScope, home_of_gate, rule_id
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mainspring.store.connection import Connection, Record

PUT_OFF = load("breakers/put_off")
FORGOTTEN = 5_000  # tallies, in one statement


def breaker_of(row: Record, failures: str = "failures") -> Breaker:
    return Breaker(
        row[failures],
        within=row["within_seconds"],
        failure_ratio=row["failure_ratio"],
        key=row["key"] or None,
        probe_after=row["probe_after"],
        max_probe_after=row["max_probe_after"],
    )


def opening_of(row: Record) -> Opening:
    return Opening(
        id=row["id"],
        job=row["job"],
        value=row["value"],
        key=row["key"] or None,
        opened_at=datetime.fromtimestamp(row["opened_at"], UTC),
        opened_by=row["opened_by"],
        failures=row["failures"],
        attempts=row["attempts"],
        within=timedelta(seconds=row["opened_within"]),
        error=row["error"],
        reason=row["reason"],
        has_probes=row["has_probes"],
        breaker=breaker_of(row, "threshold"),
    )


def rule_of(row: Record) -> BreakerRule:
    return BreakerRule(row["id"], row["tenant_id"], row["job"], breaker_of(row))


async def rules(connection: Connection, *, tenant_id: int | None) -> list[BreakerRule]:
    """The breakers of a tenant, or of all tenants, as those need them who apply them."""
    return [rule_of(row) for row in await load("breakers/list").fetch(connection, tenant=tenant_id)]


async def of_tenant(connection: Connection, *, tenant_id: int) -> list[Opening]:
    return (await by_tenant(connection, tenant_id=tenant_id)).get(tenant_id, [])


async def by_tenant(connection: Connection, *, tenant_id: int | None) -> dict[int, list[Opening]]:
    """Of one tenant, or of all."""
    found: defaultdict[int, list[Opening]] = defaultdict(list)
    for row in await load("breakers/openings").fetch(connection, tenant=tenant_id):
        found[row["tenant_id"]].append(opening_of(row))
    return found


# ── releasing ───────────────────────────────────────────────────────────────────────────────────────────────────


async def rules_of(connection: Connection, ids: Iterable[int]) -> dict[int, LimitRule]:
    """Those of some numbers that are openings: each lets one run at a time pass, wherever it waits."""
    rows = await load("breakers/openings_of_gates").fetch(connection, ids=sorted(ids))
    return {row["id"]: _as_rule(opening_of(row)) for row in rows}


def _as_rule(opening: Opening) -> LimitRule:
    key = opening.key if opening.value else None
    return LimitRule(opening.id, LimitScope.JOB, opening.job, key or "", 1, is_spread=True, opening=opening)


async def progress(connection: Connection, home: int, ids: Iterable[int]) -> dict[int, ProbeProgress]:
    """How far probing is at some openings whose gates belong to one lane; nothing where none has gone out."""
    rows = await load("breakers/probes").fetch(connection, lane=home, ids=sorted(ids))
    return {row["opening_id"]: ProbeProgress(row["sent"], row["probe_at"], row["error"]) for row in rows}


class Probing:
    """The openings among some gates of one lane, while that is locked: who may be tried, and that it was."""

    def __init__(self, openings: Mapping[str, Opening], known: Mapping[int, ProbeProgress], now: float) -> None:
        self._openings = openings
        self._known = known
        self._now = now
        self.shut = {  # seconds until a probe may go out
            gate: seconds
            for gate, each in openings.items()
            if (seconds := each.seconds_until_probe(known.get(each.id), now)) > 0
        }

    @property
    def later(self) -> dict[str, float]:
        """Where to look again, and when."""
        return {gate: seconds for gate, seconds in self.shut.items() if seconds != float("inf")}

    async def note(self, connection: Connection, home: int, passed: Mapping[str, int]) -> None:
        """Where a probe went out, the next one waits: whatever becomes of it, and whoever looks meanwhile."""
        sent = [opening for gate, opening in self._openings.items() if passed[gate]]
        if not sent:
            return
        numbers = [1 + (known.sent if (known := self._known.get(each.id)) else 0) for each in sent]
        await load("breakers/send_probes").execute(
            connection,
            lane=home,
            now=self._now,
            ids=[each.id for each in sent],
            sent=numbers,
            pauses=[each.breaker.pause_after(number) for each, number in zip(sent, numbers, strict=True)],
        )


async def probing(
    connection: Connection, home: int, gates: Iterable[str], rules: Mapping[int, LimitRule], now: float
) -> Probing:
    found = {gate: rule.opening for gate in gates if (rule := rules.get(rule_id(gate))) and rule.opening}
    known = await progress(connection, home, (each.id for each in found.values())) if found else {}
    return Probing(found, known, now)


async def put_off(connection: Connection, lanes: int, failed: Mapping[int, str]) -> None:
    """Probes have failed, with these errors: the next ones wait from now on."""
    homes: defaultdict[int, list[int]] = defaultdict(list)
    for number in sorted(failed):
        homes[home_of_gate(str(number), lanes)].append(number)
    for home, ids in sorted(homes.items()):
        if not connection.reach.has(home):
            continue  # nor can the next one go out there
        await PUT_OFF.execute(connection, lane=home, ids=ids, errors=[failed[number] for number in ids])


async def forget(connection: Connection, lane: int) -> None:
    """What no breaker needs any more in one lane."""
    while await load("breakers/forget_tallies").fetchval(connection, lane=lane, count=FORGOTTEN) == FORGOTTEN:
        pass
    await load("breakers/forget_probes").execute(connection, lane=lane)
