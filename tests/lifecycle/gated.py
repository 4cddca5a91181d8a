"""A run under two limits, one behind it at its gates, one that waits for its success; and the verbs that move them.

Where each of them is fits into a word: `held@broad+narrow` waits at its broad gate and holds a slot of the narrow one.
Scenes are set up once by the store's own functions, and put back as they were for each case.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mainspring.model.concurrency import home_of_gate
from mainspring.model.dependency import Parent
from mainspring.model.lifecycle import ENDS, State
from mainspring.store import admission, dependencies, leases, resolving, submissions
from mainspring.store.leases import Hold, Settlement
from mainspring.store.migrate import installation_of

from .meeting import outcome_of
from .stepping import Gate
from .verbs import LANES, PATIENT, VERBS, Party, Stage, Subject, micros_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring.store.admitted import Admitted

LANE = 3  # of all runs on stage, and of their gates
NARROW_RULE, STRICT_RULE = 901, 902
BROAD_RULE = next(number for number in range(903, 2_000) if home_of_gate(str(number), LANES) == LANE)


def _in_lane(number: str) -> str:
    """A gate of a limit by a key, for one of those values whose runs live in our lane."""
    return next(gate for value in range(100) if home_of_gate(gate := f"{number}:{value}", LANES) == LANE)


NARROW, STRICT, BROAD = _in_lane(str(NARROW_RULE)), _in_lane(f"{STRICT_RULE}!"), str(BROAD_RULE)
CALLED = {NARROW: "narrow", STRICT: "narrow", BROAD: "broad"}


# ── the verbs ───────────────────────────────────────────────────────────────────────────────────────────────────


async def admit(actor: Party, subject: Subject, seen: State | None) -> Admitted:
    """Whoever is told of a gate lets those pass whose turn it is."""
    return await admission.admit(actor.plain, [NARROW, STRICT, BROAD], LANES)


async def resolve(actor: Party, subject: Subject, seen: State | None) -> resolving.Resolved:
    """Whoever is told of news releases or cancels those that waited for them."""
    return await resolving.resolve(actor.plain, LANE)


async def hold_at_gate(actor: Party, subject: Subject, seen: State | None) -> Settlement:
    """A worker finds that a run that it claimed has to pass its limits first."""
    last = subject.claims[-1]
    work = last.work(PATIENT, is_started=False)
    hold = Hold(work.gates or f"{NARROW}\n{BROAD}", set())
    return await leases.settle(actor.raw, last.worker_id, [work.held_at(hold, micros_now())])


GATED_VERBS: dict[str, Callable[[Party, Subject, State | None], Awaitable[Any]]] = {
    name: verb
    for name, verb in VERBS.items()
    # What is staged has no gates yet; and a run that waits for its children has given its slots back (test_joining.py).
    if name not in ("withdraw", "await_children", "join", "fail")
} | {each.__name__: each for each in (admit, resolve, hold_at_gate)}
OF_KEEPERS = frozenset({"admit", "resolve"})  # they act on whoever is there, and wait for nobody

# How a run gets there that was accepted at its narrow gate. Strict order has names of its own.
_RUNNING = ("admit", "admit", "claim")
WAYS: dict[str, tuple[str, ...]] = {
    "held@narrow": (),
    "held@broad+narrow": ("admit",),
    "ready+narrow+broad": (*_RUNNING, "give_back"),
    "running+narrow+broad": _RUNNING,
    "scheduled": (*_RUNNING, "retry"),
    "dead": (*_RUNNING, "bury"),
    "held@no-handler": (*_RUNNING, "hold"),
    "ready": (*_RUNNING, "bury", "requeue"),
    "running": (*_RUNNING, "bury", "requeue", "claim"),
    "succeeded": (*_RUNNING, "complete"),
    "cancelled": ("cancel",),
    "strict running+narrow+broad": _RUNNING,
    "strict scheduled+narrow": (*_RUNNING, "retry"),
    "strict held@narrow+narrow": (*_RUNNING, "retry", "promote"),
    "strict dead+narrow": (*_RUNNING, "bury"),
    "parent held@parent": ("end",),
    "parent held@parent in vain": ("fail",),
}


def whereabouts(spot: str) -> str:
    """As a look shows it."""
    return spot.removeprefix("strict ").removeprefix("parent ").removesuffix(" in vain")


# ── the stage ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Scene:
    """The run that is acted upon, one behind it at its gates, and one that waits for its success."""

    subject: Subject
    rival: UUID
    child: UUID

    def again(self) -> Scene:
        return replace(self, subject=self.subject.again())

    @property
    def ids(self) -> list[UUID]:
        return [self.subject.run_id, self.rival, self.child]


Outcome = tuple[str, ...]  # where the run, its rival and its child are


class GatedStage(Stage):
    """The same stage, with limits in force."""

    _scenes: dict[str, Scene]

    @classmethod
    async def on(cls, theatre: Stage) -> GatedStage:
        stage = cls(theatre.observer, [theatre.first, theatre.second], theatre._job, theatre._line_id)
        stage._scenes = {}
        stage.snapshots = theatre.snapshots
        await stage.observer.execute(_RULES.format(NARROW_RULE, STRICT_RULE, BROAD_RULE))
        return stage

    async def scene(self, spot: str) -> Scene:
        """Put everything where it was when a run got there."""
        self.first.use(Gate())
        name = f"gated {spot}"
        if name in self.snapshots:
            await self.snapshots.restore(name)
        else:
            await self.clear()
            self._scenes[spot] = await self._make(spot)
            await self.snapshots.keep(name)
        return self._scenes[spot].again()

    async def _make(self, spot: str) -> Scene:
        narrow = STRICT if spot.startswith("strict") else NARROW
        parent = await self._accept(None, None, key="parent") if spot.startswith("parent") else None
        subject_id = await self._accept(f"{narrow}\n{BROAD}", parent, max_age=0.000001)
        scene = Scene(
            Subject(subject_id, self._job.id, self._line_id, uuid4(), uuid4()),
            await self._accept(f"{narrow}\n{BROAD}", None, key="rival"),
            await self._accept(None, subject_id, key="child"),
        )
        for verb in WAYS[spot]:
            if parent is not None:
                await self._end(parent, verb)
            else:
                found = await self.find(scene.subject)
                await GATED_VERBS[verb](self.second, scene.subject, None if found is None else found.state)
        assert (await self.outcome(scene))[0] == whereabouts(spot)
        return scene

    async def _accept(
        self, gates: str | None, parent: UUID | None, *, key: str = "key", max_age: float | None = None
    ) -> UUID:
        [run_id] = submissions.new_run_ids(1, LANE, datetime.now(UTC))
        after = None if parent is None else (Parent(parent),)
        run = self.new_run(key)._replace(gates=gates, after=after, max_age=max_age)
        known = submissions.known_document(await installation_of(self.observer), {}, {})
        async with self.observer.transaction():
            if after is not None:
                await dependencies.add(self.observer, [run_id], [run])
            await submissions.submit_items(self.observer, [run_id], [run], known)
        return run_id

    async def _end(self, parent: UUID, how: str) -> None:
        """News for whoever waits for it."""
        subject = Subject(parent, self._job.id, self._line_id, uuid4(), uuid4())
        if how == "fail":
            await VERBS["cancel"](self.second, subject, State.READY)
        else:
            await VERBS["claim"](self.second, subject, State.READY)
            await VERBS["complete"](self.second, subject, State.RUNNING)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────

    async def outcome(self, scene: Scene) -> Outcome:
        """Where the three are, by a statement of its own."""
        rows = await self.observer.fetch(_WHERE, scene.ids, sorted(ENDS))
        places = Counter(row["id"] for row in rows)
        assert places.total() == len(places) == len(scene.ids), f"not in one place each: {rows}"
        return tuple(_described(row) for row in rows)

    async def let_keepers_look(self) -> int:
        """Time goes by, and nobody else is there: whatever a hint was lost for is found. Answers how many moved."""
        await self.observer.execute("update dependency set check_at = clock_now() where check_at is not null")
        moved = 0
        while True:
            resolved = await resolving.resolve(self.observer, LANE)
            admitted = await admission.admit(self.observer, [NARROW, STRICT, BROAD], LANES)
            if not resolved.runs and not admitted.runs:
                return moved
            moved += resolved.runs + admitted.runs

    async def left_behind(self) -> list[str]:
        """What nobody would see to any more: asked when keepers have looked, and apart from the store's statements."""
        rows = await self.observer.fetch(_LEFT_BEHIND, sorted(ENDS))
        return [f"{row['what']}: {row['id']}" for row in rows]


def _described(row: Any) -> str:
    where = f"{row['state']}@{CALLED.get(row['waits_at'], row['waits_at'])}" if row["waits_at"] else row["state"]
    held = "".join(f"+{CALLED[gate]}" for gate in row["slots"])
    return f"{where}{held}{' cancelling' if row['is_cancelling'] else ''}"


async def one_after_the_other(stage: GatedStage, spot: str, *acts: tuple[str, State | None]) -> Outcome:
    """What comes of verbs one after the other, each by somebody who saw the run in the given state."""
    scene = await stage.scene(spot)
    for verb, seen in acts:
        await outcome_of(GATED_VERBS[verb](stage.first, scene.subject, seen))
    return await stage.outcome(scene)


_RULES = """
insert into limit_rule (id, tenant_id, scope, name, key, most, is_strict, halts_on_dead, changed_by)
values ({}, 1, 'job', 'on_stage', 'a', 1, false, false, 'tester'),
       ({}, 1, 'job', 'on_stage', 'b', 1, true, true, 'tester'),
       ({}, 1, 'job', 'on_stage', '', 1, false, false, 'tester')
"""

_WHERE = """
with place as (
    select id, 'scheduled' as state, null::text as waits_at, false as is_cancelling from later
    union all select id, 'held', coalesce(gate, reason), false from held
    union all select id, case when rank > date_part('epoch', clock_now()) * 1000000 then 'scheduled' else 'ready' end,
                     null, false from ready
    union all select id, 'dead', null, false from dead
    union all select run.id, 'running', null, get_bit(lease.cancel, run.ordinality::int - 1) = 1
              from lease cross join lateral unnest(lease.ids) with ordinality as run (id, ordinality)
              where get_bit(lease.done, run.ordinality::int - 1) = 0
    union all select run_id, state::text, null, false from attempt where state::text = any ($2::text[]))
select place.*, array(select gate from slot where slot.run_id = place.id order by slot.place) as slots
from unnest($1::uuid[]) with ordinality as who (id, number) join place using (id) order by who.number
"""

_LEFT_BEHIND = """
with over as materialized (
    select run_id as id from attempt where state::text = any ($1::text[]) union all select id from dead)
select 'waits at a gate where there is room' as what, held.id
from held join limit_rule on limit_rule.id = rtrim(split_part(held.gate, ':', 1), '!')::int
where held.due_at <= clock_now()
  and limit_rule.most > (select count(*) from slot where slot.gate = held.gate and slot.run_id <> held.id)
union all
select 'waits for runs that are over', held.id
from held where held.reason = 'parent' and not exists (
    select from dependency where dependency.child_id = held.id and dependency.parent_id not in (select id from over))
union all
select 'is still noted as waiting for one that is over', dependency.child_id
from dependency where dependency.parent_id in (select id from over) and dependency.otherwise <> 'fail'
union all
select 'went on before what it waits for has ended', dependency.child_id
from dependency left join held on held.id = dependency.child_id and held.reason = 'parent'
where held.id is null and dependency.child_id not in (select id from over)
  and dependency.otherwise <> 'fail'   -- of a fan-out: there since its first child
"""
