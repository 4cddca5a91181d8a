"""Whoever asks sees, moves and counts what is their tenant's, and nothing else."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mainspring
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.lifecycle import PLACES, State
from mainspring.store import dead, health, history, jobs, lists, queues, runs
from mainspring.store.leases import Fate
from mainspring.store.statements import all_statements, load
from mainspring.store.submissions import new_run_ids

from ..lifecycle.moves import STAGED, state_at
from ..lifecycle.verbs import LANES, Stage
from .reading import touches
from .routines import inside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

Function = ast.FunctionDef | ast.AsyncFunctionDef
PACKAGE = Path(mainspring.__file__).parent
STRANGER = DEFAULT_TENANT + 1

# Those who work for all tenants: `restored` and `doctor` look after the installation.
FOR_ALL_TENANTS = ("restored", "doctor", "server_checks", "schema_checks", "schedule_checks")
# Statements that read rows of tenants, are reached from control/, and name no tenant.
WITHOUT = {
    "runs/lines_in_use": "in which lines something is: for whoever lists all tenants, and how much each has waiting",
    "runs/exists": "looks for runs whose ids this process made a moment ago",
    "runs/submit": "each item names the tenant of its run and of its key",
    "reports/find_progress": "a row by the id of a run that the caller has found as its tenant's",
    "reports/lines_of_run": "rows by the id of a run that the caller has found as its tenant's",
    "flows/hold": "runs that the caller has made in this transaction, as its tenant's",
    "breakers/openings_of_gates": "openings by the numbers in gates: whoever releases runs does so for all tenants",
    "breakers/standing": "the gates of openings that the caller has found as its tenant's",
    "limits/ahead": "the gate at which a run waits that the caller has found as its tenant's",
    "limits/earlier": "the gate at which a run waits that the caller has found as its tenant's",
    "limits/count_of_rule": "the gates of a limit that the caller has found as its tenant's",
    "limits/follow_on_dead": "the slots of a limit that the caller has found as its tenant's",
    "limits/free_dead": "the slots of a limit that the caller has found as its tenant's",
    "limits/holders": "the gates of a limit that the caller has found as its tenant's",
    "limits/waiting": "a gate of a limit that the caller has found as its tenant's",
    "limits/waiting_gates": "the names of gates: those of the caller's own limit are shown, by its number",
    "limits/rules_of_gates": "limits by the numbers in gates: whoever releases runs does so for all tenants",
    "backlog/add": "gates of caps that the caller has found as its tenant's",
    "backlog/clear": "entries at gates of caps that the caller has found as its tenant's",
    "backlog/take": "gates of caps that the caller has found as its tenant's",
    "backlog/waiting": "the gates of a cap that the caller has found as its tenant's",
    "limits/spread": "limits that the caller has found as its tenant's",
    "schedules/next_due": "how late schedulers are, who serve all tenants",
    "leases/lock_of_runs": "the leases of runs that the caller has found as its tenant's; others in them are not named",
    "leases/cancelling": "whom to wake: nothing of a run is read",
    "schedules/set_cursor": "the schedule that the caller has locked as its tenant's",
    "schedules/set_cursors": "schedules that the caller has locked as its tenant's",
    "schedules/occurrences": "rows by the id of a schedule that the caller has found as its tenant's",
    "schedules/occurrences_at": "rows by the id of a schedule that the caller has found as its tenant's",
    "schedules/skipped": "rows by the id of a schedule that the caller has found as its tenant's",
    "schedules/last_decided": "rows by the id of a schedule that the caller has locked as its tenant's",
    "schedules/lock_cursor": "the cursor of a schedule that the caller has locked as its tenant's",
    "schedules/drop_cursors": "the cursors of schedules that the caller has locked or made as its tenant's",
    "schedules/withdraw": "the runs of a schedule that the caller has locked as its tenant's",
    "schedules/withdraw_many": "the runs of schedules that the caller has locked as its tenant's",
    "schedules/fire": "for the schedule that the caller has locked as its tenant's; the run gets the schedule's tenant",
}
# Whose rows say by a column whose they are, or by the runs in them.
OF_TENANTS = {"ready", "later", "held", "dead", "lease", "attempt", "idempotency", "audit", "job", "line", "queue"}
OF_TENANTS |= {"unique_key", "backlog_cap"}
OF_TENANTS |= {"operation", "log", "progress", "checkpoint", "schedule", "schedule_version", "cursor"}
OF_TENANTS |= {
    "occurrence",
    "occurrence_past",
    "skipped",
    "calendar",
    "limit_rule",
    "slot",
    "flow",
    "chain",
    "chain_news",
}
OF_TENANTS |= {"breaker", "breaker_opening"}


# ── statically ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(12)
def test_every_statement_that_control_reaches_names_the_tenant() -> None:
    silent = {name for name in _reached() if _reads_tenants(name) and "tenant" not in load(name).parameters}

    assert silent <= set(WITHOUT), "they read rows of tenants: name :tenant"


def test_every_exception_is_one() -> None:
    assert set(WITHOUT) <= _reached()
    assert not {name for name in WITHOUT if "tenant" in load(name).parameters}


def test_what_control_reaches_is_found() -> None:
    """The reader of the code reads it: directly, through a function, and through a helper in another module."""
    assert {"runs/find", "runs/cancel_waiting", "lists/whereabouts", "queues/depths", "history/ends"} <= _reached()
    assert {"schedules/lock_if_free", "schedules/fire", "schedules/skip", "jobs/find_by_id"} <= _reached(), (
        "by the scheduler"
    )
    assert not {"schedules/due", "schedules/set_aside", "schedulers/beat"} & _reached(), "for all tenants"
    assert not {f"leases/{fate.value}" for fate in Fate} & _reached()


async def test_the_tables_with_a_tenant_are_known(connection: Connection) -> None:
    rows = await connection.fetch(
        "select table_name from information_schema.columns"
        " where table_schema = 'mainspring' and column_name = 'tenant_id' and table_name !~ '_[0-9]{8}$'"
    )

    assert {row["table_name"] for row in rows} <= OF_TENANTS


def test_only_who_puts_an_application_or_a_worker_together_chooses_a_tenant() -> None:
    choosing = {"model/actor.py", "app/mainspring.py"}
    files = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.rglob("*.py")}

    assert {name for name, text in files.items() if re.search(r"\bDEFAULT_TENANT\b", text)} <= choosing


def _reads_tenants(name: str) -> bool:
    return any(
        touch.table in OF_TENANTS and touch.how != "insert"
        for statement in (load(name), *inside(load(name)))
        for touch in touches(statement)
    )


@cache
def _reached() -> set[str]:
    """The statements behind the store's functions that control/ mentions, or what it calls of scheduler/."""
    calls, loads = _store()
    files = [file for file in (PACKAGE / "control").glob("*.py") if file.stem not in FOR_ALL_TENANTS]
    trees = [ast.parse(file.read_text()) for file in files]
    todo = [each for tree in trees for each in _mentioned(tree)]
    todo += [each for tree, function in _of_the_scheduler(trees) for each in _mentioned(tree, function)]
    seen: set[str] = set()
    while todo:
        function = todo.pop()
        if function not in seen:
            seen.add(function)
            todo += calls[function]
    return {name for function in seen for name in loads[function]}


def _of_the_scheduler(trees: list[ast.Module]) -> list[tuple[ast.Module, Function]]:
    """Functions and methods of scheduler/ whose name is mentioned there, or by one that is."""
    there = [ast.parse(file.read_text()) for file in (PACKAGE / "scheduler").glob("*.py")]
    left = [(tree, node) for tree in there for node in ast.walk(tree) if isinstance(node, Function)]
    names = {name for tree in trees for name in _called(tree, tree)}
    found: list[tuple[ast.Module, Function]] = []
    while new := [each for each in left if each[1].name in names]:
        left = [each for each in left if each not in new]
        names |= {name for tree, function in new for name in _called(tree, function)}
        found += new
    return found


def _called(tree: ast.Module, within: ast.AST) -> Iterator[str]:
    """Names that are called, but for those of the store, which `_mentioned` finds."""
    store = {each.rpartition(".")[0] for each in _mentioned(tree)}
    for node in ast.walk(within):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name):
            yield called.id
        elif isinstance(called, ast.Attribute) and not (
            isinstance(called.value, ast.Name) and called.value.id in store
        ):
            yield called.attr


def _store() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Of each function of the store, as `module.function`: what it mentions, and what it loads.

    A constant mentions functions, too, that somebody calls through it.
    """
    calls: dict[str, set[str]] = defaultdict(set)
    loads: dict[str, set[str]] = defaultdict(set)
    for file in (PACKAGE / "store").glob("*.py"):
        tree = ast.parse(file.read_text())
        at_the_top = {
            node.targets[0].id: set(_loaded(node))
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                mentioned = {*_mentioned(tree, node), *(f"{file.stem}.{each}" for each in _names(node.value))}
                calls[f"{file.stem}.{node.targets[0].id}"] |= mentioned
        for function in ast.walk(tree):
            if isinstance(function, Function):
                name = f"{file.stem}.{function.name}"
                calls[name] |= set(_mentioned(tree, function)) | {f"{file.stem}.{each}" for each in _names(function)}
                loads[name] |= set(_loaded(function)).union(*(at_the_top.get(each, ()) for each in _names(function)))
    return calls, loads


def _mentioned(tree: ast.Module, within: ast.AST | None = None) -> Iterator[str]:
    """Functions of the store by the names that a module imports them under."""
    modules, functions = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mainspring.store"):
            for alias in node.names:
                if node.module == "mainspring.store":
                    modules[alias.asname or alias.name] = alias.name
                else:
                    functions[alias.asname or alias.name] = f"{str(node.module).rpartition('.')[2]}.{alias.name}"
    for node in ast.walk(within or tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id in functions:
            yield functions[node.id]


def _names(function: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(function) if isinstance(node, ast.Name))


def _loaded(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "load":
            argument = node.args[0]
            assert isinstance(argument, ast.Constant | ast.JoinedStr)
            if isinstance(argument, ast.Constant):
                yield str(argument.value)


def test_statements_are_loaded_by_functions_or_for_them_at_the_top_of_their_module() -> None:
    """Else the reader above would not see them."""
    _, loads = _store()
    known = {name for names in loads.values() for name in names}
    known |= {f"leases/{fate.value}" for fate in Fate}

    assert {statement.name for statement in all_statements()} <= known


# ── by trying ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def stage(database: Database) -> AsyncIterator[Stage]:
    stage = await Stage.opens(database)
    yield stage
    await stage.closes()


ACT: dict[str, Any] = {"actor": "stranger", "detail": "{}"}


async def _change(connection: Connection, subject: Any, tenant: int) -> Any:
    return await runs.change(connection, subject.lane, [subject.run_id], {"priority": 1}, tenant_id=tenant, **ACT)


async def _rerun(connection: Connection, subject: Any, tenant: int) -> Any:
    ids = new_run_ids(1, subject.lane, datetime.now(UTC))
    return await runs.rerun(connection, subject.lane, [subject.run_id], ids, tenant_id=tenant, **ACT)


ASKING: dict[str, Any] = {
    "find": lambda c, s, t: runs.find(c, s.run_id, tenant_id=t),
    "attempts": lambda c, s, t: history.attempts_of(c, s.run_id, tenant_id=t),
    "audit": lambda c, s, t: history.acts_on(c, s.run_id, tenant_id=t),
    "end": lambda c, s, t: history.ends_of(c, [s.run_id], tenant_id=t),
    "state": lambda c, s, t: lists.states_of(c, [s.run_id], tenant_id=t),
    "job": lambda c, s, t: jobs.names_of(c, [s.job_id], tenant_id=t),
    "cancel": lambda c, s, t: runs.cancel_waiting(c, s.lane, [s.run_id], tenant_id=t, reason="", **ACT),
    "request_cancel": lambda c, s, t: runs.request_cancel(c, s.run_id, tenant_id=t, reason="", **ACT),
    "change": _change,
    "rerun": _rerun,
    "requeue": lambda c, s, t: dead.requeue(c, s.lane, [s.run_id], dead.Act(t, "stranger", "{}")),
    "purge": lambda c, s, t: dead.purge(c, s.lane, [s.run_id], dead.Act(t, "stranger", "{}"), reason=""),
}


@pytest.mark.parametrize("spot", [*State, STAGED])
async def test_a_stranger_finds_and_moves_nothing(stage: Stage, spot: str) -> None:
    subject = await stage.set_up(spot)
    before = await stage.contents()

    for verb, ask in ASKING.items():
        assert not await ask(stage.observer, subject, STRANGER), verb
    assert await stage.contents() == before


@pytest.mark.parametrize(
    ("verb", "state"),
    [
        ("find", State.RUNNING),
        ("attempts", State.SCHEDULED),
        ("audit", State.CANCELLED),
        ("end", State.SUCCEEDED),
        ("state", State.RUNNING),
        ("job", State.READY),
        ("cancel", State.HELD),
        ("request_cancel", State.RUNNING),
        ("change", State.SCHEDULED),
        ("rerun", State.SUCCEEDED),
        ("requeue", State.DEAD),
        ("purge", State.DEAD),
    ],
)
async def test_the_same_question_of_its_own_tenant_is_answered(stage: Stage, verb: str, state: State) -> None:
    subject = await stage.set_up(state)

    assert await ASKING[verb](stage.observer, subject, DEFAULT_TENANT)


@pytest.mark.parametrize("spot", [*PLACES, STAGED])
async def test_what_people_watch_counts_the_runs_of_a_tenant(stage: Stage, spot: str) -> None:
    await stage.set_up(spot)

    ours = await health.activity(stage.observer, LANES, 10, tenant_id=DEFAULT_TENANT)
    theirs = await health.activity(stage.observer, LANES, 10, tenant_id=STRANGER)

    counted = {place.value: int(place is state_at(spot)) for place in PLACES}
    assert {name: ours[name] for name in counted} == counted
    assert {name: theirs[name] for name in counted} == dict.fromkeys(counted, 0)


async def test_what_people_watch_shows_the_history_of_a_tenant(stage: Stage) -> None:
    await stage.set_up(State.DEAD)
    connection, now = stage.observer, datetime.now(UTC)
    after, until = now - timedelta(hours=1), now + timedelta(hours=1)

    def looks(tenant: int) -> list[Any]:
        return [
            health.finished_between(connection, LANES, after, until, tenant_id=tenant),
            health.latest_attempts(connection, LANES, after, until, 10, tenant_id=tenant),
            health.lateness(connection, 600, 10, tenant_id=tenant),
            health.failures(connection, 600, 10, tenant_id=tenant),
            queues.queues(connection, tenant_id=tenant),
        ]

    assert all([await look for look in looks(DEFAULT_TENANT)])
    assert not any([await look for look in looks(STRANGER)])
