"""Reads a database and what clients saw of it, and says which promises were broken.

    log = CallLog()
    handle = …                                        # record every call: ok, failed or unknown
    report = await check(connection, log.accepted, calls=log.calls, starts=starts)
    assert report.violations == [], report

The invariants are those of RELIABILITY, by their numbers. Everything is read in one snapshot, after healing. The
SQL is written here, apart from the store's own statements, on purpose: a checker that shared them would share
their mistakes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from mainspring.model.lifecycle import ENDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID


EXAMPLES = 3

# One row per broken promise, named as in the report: every question is asked of the same snapshot.
# $1: the states that end a run; $2, $3: attempts that handlers say they began, as runs and fences; $4: effects that
# transactional handlers committed, by run, or null where nobody wrote them down.
_BROKEN = """
with placed as materialized (   -- every run that has not ended; inside a lease, it counts until its `done` bit is set
    select id, 'scheduled' as state, fence, crashes, revision from later
    union all select id, 'held', fence, crashes, revision from held
    union all select id, 'ready', fence, crashes, revision from ready
    union all select id, 'dead', fence, crashes, revision from dead
    union all select run.id, 'running', run.fence, run.crashes, run.revision
    from lease cross join lateral unnest(lease.runs) with ordinality as run
    where get_bit(lease.done, run.ordinality::int - 1) = 0
), ended as materialized (
    select run_id as id from attempt where state::text = any ($1::text[])
), act as materialized (
    select subject, kind, count(*) as times
    from audit join (values ('run.cancel', 'end'), ('run.purge', 'end'), ('run.change', 'change'),
                            ('run.requeue', 'change')) as act (action, kind) using (action)
    group by 1, 2
), tried as materialized (
    select run_id as id, max(fence) as fence, count(*) filter (where outcome = 'crashed') as crashes
    from attempt group by run_id
), delivered as materialized (
    select attempt.run_id as id, line.labels, bool_or(attempt.state = 'succeeded') as has_succeeded
    from attempt join line on line.id = attempt.line_id group by attempt.run_id, line.labels
), effect as materialized (
    select id, count(*) as times from unnest($4::uuid[]) as effect (id) group by id
)
select 'completions accepted twice for one fence' as what, run_id as id
from attempt where claimed_at is not null group by run_id, fence having count(*) > 1
union all
select 'runs with more than one end', id from ended group by id having count(*) > 1
union all
select distinct 'runs that ended and are still somewhere', id from placed join ended using (id)
union all
select 'runs in more than one place', id from placed group by id having count(*) > 1
union all
select 'fences that went back', id from placed join tried using (id) where placed.fence < tried.fence
union all
select 'cancelled runs that came back', id
from placed join act on act.subject = placed.id::text and act.kind = 'end' where state <> 'running'
union all
select 'completions both accepted and recorded as stale', run_id
from stale join attempt using (lane, run_id, fence, worker_id) where attempt.finished_at is not null
union all
select 'runs with more than one live lease', member.id
from lease cross join lateral unnest(lease.ids) with ordinality as member (id, position)
where get_bit(lease.done, member.position::int - 1) = 0 group by member.id having count(*) > 1
union all
select 'slots held by no run', slot.run_id
from slot left join placed on placed.id = slot.run_id
where placed.id is null
   or placed.state = 'scheduled' and not exists (
       select from slot as kept where kept.run_id = slot.run_id and kept.is_strict and kept.place >= slot.place)
   or placed.state = 'dead' and not slot.halts_on_dead
union all
select 'runs that hold a slot beyond the limit', held.run_id
from (select slot.*, row_number() over (partition by gate order by taken_at, run_id) as place_at_gate from slot) as held
join limit_rule on limit_rule.id = held.rule_id where held.place_at_gate > limit_rule.most
union all
select 'probes beside another one', held.run_id
from (select slot.*, row_number() over (partition by gate order by taken_at, run_id) as place_at_gate from slot) as held
join breaker_opening on breaker_opening.id = held.rule_id where held.place_at_gate > 1
union all
select 'runs in line that lack a slot', ready.id
from ready cross join lateral unnest(string_to_array(ready.gates, E'\n')) as wanted (gate)
where not exists (select from slot where slot.run_id = ready.id and slot.gate = wanted.gate)
  and exists (select from limit_rule
              where limit_rule.id = rtrim(split_part(wanted.gate, ':', 1), '!')::int and limit_rule.most is not null)
union all
select 'leases left behind after their last run', id from lease where bit_count(done) = bit_length(done)
union all
select 'runs whose changes and audit differ', id
from placed left join act on act.subject = placed.id::text and act.kind = 'change'
where revision <> coalesce(times, 0)
union all
select 'cancelled runs without an audit row', run_id
from attempt left join act on act.subject = attempt.run_id::text and act.kind = 'end'
where attempt.state = 'cancelled' and act.subject is null
  and coalesce(attempt.error ->> 'code', '') not in (   -- nobody's act, but what was asked for when it was submitted
      'cancelled-by-handler', 'parent-failed', 'inputs-do-not-fit', 'result-gone')
union all
select 'runs that are not over', id from placed where state <> 'dead'
union all
select 'crashes without an attempt in history', id
from placed left join tried using (id) where placed.crashes > coalesce(tried.crashes, 0)
union all
select 'started attempts without a trace', started.id
from unnest($2::uuid[], $3::int[]) as started (id, fence)
left join attempt on attempt.run_id = started.id and attempt.fence = started.fence
left join placed on placed.id = started.id and placed.fence = started.fence and placed.state = 'running'
where attempt.run_id is null and placed.id is null
union all
select 'transactional runs whose effects are not one with them', coalesce(run.id, effect.id)
from (select * from delivered where labels @> '{delivery=transactional}') as run full join effect using (id)
where $4::uuid[] is not null and coalesce(effect.times, 0) <> coalesce(run.has_succeeded, false)::int
union all
select 'at-most-once runs that started again', started.id   -- unless a person put the dead letter back in line
from unnest($2::uuid[]) as started (id) join delivered using (id)
where delivered.labels @> '{delivery=at_most_once}' group by started.id
having count(*) > 1 + (select count(*) from audit where action = 'run.requeue' and subject = started.id::text)
"""

# Those of $2 that are somewhere: in a place, or ended in history. A mere trace of an attempt does not count.
_KNOWN = """
with wanted as materialized (select unnest($2::uuid[]) as id)
select id from wanted where id in (select id from later union all select id from held union all select id from ready
    union all select id from dead union all
    select member.id from lease cross join lateral unnest(lease.ids) with ordinality as member (id, position)
    where get_bit(lease.done, member.position::int - 1) = 0
    union all select run_id from attempt where state::text = any ($1::text[]))
"""

# What is counted for each invariant; those without a name of a broken promise cannot be broken by this version.
_PROMISES = (
    ("I2", "occurrences missing or extra"),
    ("I3", "completions accepted twice for one fence"),
    ("I3", "runs with more than one end"),
    ("I3", "runs that ended and are still somewhere"),
    ("I3", "runs in more than one place"),
    ("I3", "fences that went back"),
    ("I3", "cancelled runs that came back"),
    ("I3", "completions both accepted and recorded as stale"),
    ("I4", "transactional runs whose effects are not one with them"),
    ("I5", "at-most-once runs that started again"),
    ("I6", "runs with more than one live lease"),
    ("I6", "leases left behind after their last run"),
    ("I6", "slots held by no run"),
    ("I6", "runs that hold a slot beyond the limit"),
    ("I6", "runs in line that lack a slot"),
    ("I6", "probes beside another one"),
    ("I7", "runs whose changes and audit differ"),
    ("I7", "cancelled runs without an audit row"),
    ("I9", "bytes that crossed tenants"),
    ("I10", "crashes without an attempt in history"),
    ("I10", "started attempts without a trace"),
)
_NOT_YET = frozenset({"I2", "I9"})


class Answer(StrEnum):
    """What a client learned about its call."""

    INVOKED = "invoked"  # it never learned anything
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Call:
    """One submission of one or more runs, as its client saw it. The ids of a failed one may be unknown: then none."""

    answer: Answer
    run_ids: tuple[UUID, ...]


@dataclass(slots=True)
class CallLog:
    """Collects what clients saw."""

    calls: list[Call] = field(default_factory=list)

    def record(self, answer: Answer, *run_ids: UUID) -> None:
        self.calls.append(Call(answer, run_ids))

    @property
    def accepted(self) -> list[UUID]:
        return [run_id for call in self.calls if call.answer is Answer.OK for run_id in call.run_ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was counted. `expected` None: nothing to be judged, or not yet."""

    invariant: str
    what: str
    found: int | None
    expected: int | None = 0
    examples: tuple[str, ...] = ()

    @property
    def is_violation(self) -> bool:
        return self.found is not None and self.expected is not None and self.found != self.expected

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "not applicable yet"
        if self.expected is None:
            return "for information"
        return f"VIOLATED, expected {self.expected:,}" if self.is_violation else "ok"

    def __str__(self) -> str:
        number = "–" if self.found is None else f"{self.found:,}"
        examples = f"  e.g. {', '.join(self.examples)}" if self.examples and self.is_violation else ""
        return f"{self.invariant:<4} {self.what:<58} {number:>9}  {self.verdict}{examples}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was checked, for people as a small table."""

    findings: list[Finding]

    @property
    def violations(self) -> list[Finding]:
        return [each for each in self.findings if each.is_violation]

    def count(self, what: str) -> int | None:
        """The number behind one line of the table."""
        return next(each.found for each in self.findings if each.what == what)

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self.findings)


class Readable(Protocol):
    """What is read through: a connection, whoever made it."""

    async def fetch(self, query: str, *args: Any) -> list[Any]: ...

    async def fetchval(self, query: str, *args: Any) -> Any: ...

    def transaction(self, *, isolation: Any = ..., readonly: bool = ...) -> Any: ...


async def check(
    connection: Readable,
    accepted: Iterable[UUID],
    *,
    calls: Sequence[Call] = (),
    starts: Iterable[tuple[UUID, int]] = (),
    effects: Iterable[UUID] | None = None,
    stale_injected: int | None = None,
    must_be_drained: bool = False,
) -> Report:
    """Check what can be checked.

    `accepted` are the runs whose submission was answered; `starts` what handlers wrote down when they began, as
    (run, fence); `effects` has the run of each effect that a transactional handler committed; `stale_injected` is how
    many late completions were sent; `must_be_drained` says that all work should be over.
    """
    started = list(starts)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        broken = await _broken(connection, started, None if effects is None else list(effects))
        stale = await connection.fetchval("select count(*) from stale")
        findings = await _accepted(connection, list(accepted), calls)
    findings += [_not_yet(*each) if each[0] in _NOT_YET else _judged(*each, broken[each[1]]) for each in _PROMISES]
    findings += [
        Finding(invariant="I3", what="stale completions rejected", found=stale, expected=stale_injected),
        _judged("I8", "runs that are not over", broken["runs that are not over"], 0 if must_be_drained else None),
        *_executions(started),
    ]
    return Report(sorted(findings, key=lambda each: int(each.invariant[1:])))


async def _broken(
    connection: Readable, started: list[tuple[UUID, int]], effects: list[UUID] | None
) -> defaultdict[str, list[UUID]]:
    """The culprits behind each broken promise."""
    run_ids, fences = [run_id for run_id, _ in started], [fence for _, fence in started]
    culprits: defaultdict[str, list[UUID]] = defaultdict(list)
    for row in await connection.fetch(_BROKEN, sorted(ENDS), run_ids, fences, effects):
        culprits[row["what"]].append(row["id"])
    return culprits


async def _accepted(connection: Readable, accepted: list[UUID], calls: Sequence[Call]) -> list[Finding]:
    wanted = [*accepted, *(run_id for call in calls for run_id in call.run_ids)]
    known = {row["id"] for row in await connection.fetch(_KNOWN, sorted(ENDS), wanted)}
    lost = [run_id for run_id in accepted if run_id not in known]
    refused = [run_id for call in calls if call.answer is Answer.FAILED for run_id in call.run_ids if run_id in known]
    halves = [call.run_ids[0] for call in calls if 0 < sum(each in known for each in call.run_ids) < len(call.run_ids)]
    open_calls = [call for call in calls if call.answer in (Answer.UNKNOWN, Answer.INVOKED) and call.run_ids]
    there = [call.run_ids[0] for call in open_calls if call.run_ids[0] in known]
    not_there = [call.run_ids[0] for call in open_calls if call.run_ids[0] not in known]
    return [
        _judged("I1", "accepted runs", accepted, None),
        _judged("I1", "accepted runs lost", lost),
        _judged("I1", "runs that exist though their submission failed", refused),
        _judged("I1", "batches of which only a part exists", halves),
        _judged("I1", "unanswered submissions that happened", there, None),
        _judged("I1", "unanswered submissions that did not", not_there, None),
    ]


def _executions(started: list[tuple[UUID, int]]) -> list[Finding]:
    """What handlers say about themselves."""
    same_fence = [run_id for (run_id, _), count in Counter(started).items() if count > 1]
    again = len(started) - len({run_id for run_id, _ in started})
    return [
        _judged("I10", "attempts started twice under one fence", same_fence),
        Finding(invariant="I10", what="executions beyond the first of a run", found=again, expected=None),
    ]


def _judged(invariant: str, what: str, culprits: Sequence[UUID], expected: int | None = 0) -> Finding:
    examples = tuple(str(each) for each in culprits[:EXAMPLES])
    return Finding(invariant=invariant, what=what, found=len(culprits), expected=expected, examples=examples)


def _not_yet(invariant: str, what: str) -> Finding:
    """What this version cannot break, because it has no such feature."""
    return Finding(invariant=invariant, what=what, found=None)
