"""What each kind of program may do in the database, as data, and the SQL that gives it to a role.

Roles own nothing of ours: the role that migrates does. A table or function that is not named here cannot be used by
anybody else, so a migration that makes one says here who needs it (tests/store/test_grants.py).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mainspring.errors import InvalidInput, shortened
from mainspring.store.database import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class RoleKind(StrEnum):
    """What a program does: execute runs and keep the house, fire schedules, submit and act on runs, or look only."""

    WORKER = "worker"
    SCHEDULER = "scheduler"
    CLIENT = "client"
    READER = "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What each kind needs of one table."""

    worker: str = ""
    scheduler: str = ""
    client: str = ""
    reader: str = ""

    def of(self, kind: RoleKind) -> list[str]:
        """One privilege each: `select`, `update (cancel)`."""
        return re.findall(r"[a-z]+(?: \([a-z_]+\))?", getattr(self, kind.value))


ALL = "select, insert, update, delete"

# `for update` needs UPDATE. Where a kind changes one column, it gets no other.
TABLES = {
    "migration": Needs(worker="select", scheduler="select", client="select", reader="select"),
    "setting": Needs(worker="select", scheduler="select", client="select", reader="select"),
    "tenant": Needs(worker="select", client="select, insert, update", reader="select"),
    "job": Needs(
        worker="select, insert, update (version)",
        scheduler="select",
        client="select, insert, update (version)",
        reader="select",
    ),
    "job_version": Needs(worker="select, insert", scheduler="select", client="select, insert", reader="select"),
    "line": Needs(worker="select, insert", scheduler="select, insert", client="select, insert", reader="select"),
    "limit_rule": Needs(worker=ALL, client=ALL, reader="select"),
    "backlog_cap": Needs(worker=ALL, client=ALL, reader="select"),
    "limit_revision": Needs(worker="select, update", client="select, update"),
    "chain": Needs(worker=ALL, scheduler="select", client=ALL, reader="select"),
    "breaker": Needs(worker=ALL, client=ALL, reader="select"),
    "breaker_opening": Needs(worker=ALL, client=ALL, reader="select"),
    "queue": Needs(worker="select", scheduler="select", client="select, insert, update", reader="select"),
    "worker": Needs(worker=ALL, scheduler="select", client="select, update (drain_requested_at)", reader="select"),
    "scheduler": Needs(scheduler=ALL, client="select", reader="select"),
    "worker_heartbeat": Needs(worker=ALL, client="select", reader="select"),
    "scheduler_heartbeat": Needs(scheduler=ALL, client="select", reader="select"),
    "worker_tally": Needs(worker=ALL, client="select", reader="select"),
    "load_sample": Needs(worker="select, insert, delete", client="select", reader="select"),
    "promotion": Needs(worker=ALL, client="select", reader="select"),
    "tally": Needs(worker=ALL, client="select", reader="select"),
    "line_sample": Needs(worker="select, insert, delete", client="select", reader="select"),
    # Whoever releases runs at their limits locks the lane.
    "lane": Needs(
        worker="select, update (tzdata)",
        scheduler="select, update (calendars_revision), update (tzdata)",
        client="select, update (tzdata)",
        reader="select",
    ),
    "bucket": Needs(worker=ALL, client="select, insert, update", reader="select"),
    "share_window": Needs(worker=ALL, client="select, insert, update"),
    "breaker_tally": Needs(worker=ALL, client="select, delete", reader="select"),
    "breaker_probe": Needs(worker=ALL, client="select, insert, update", reader="select"),
    "backlog_gate": Needs(worker=ALL, client="select, insert, update"),
    "backlog_entry": Needs(worker="select, insert, delete", client="select, insert, delete", reader="select"),
    "backlog_addition": Needs(worker="select, insert, delete", client="select, insert, delete"),
    # Whoever ends a run tells those that wait for it.
    "dependency": Needs(
        worker="select, update, delete",
        scheduler="select, update",
        client=ALL,
        reader="select",
    ),
    # … and whoever submits runs after it.
    "chain_news": Needs(worker="select, insert, delete", scheduler="insert", client="insert"),
    "flow": Needs(client="select, insert, update", reader="select"),
    "slot": Needs(worker=ALL, scheduler="select, delete", client=ALL, reader="select"),
    "ready": Needs(
        worker=ALL,
        scheduler="select, insert, update (overrides), delete",
        client="select, insert, update (overrides), delete",
        reader="select",
    ),
    "later": Needs(
        worker=ALL,
        scheduler="select, insert, delete",
        client="select, insert, update (overrides), delete",
        reader="select",
    ),
    "held": Needs(
        worker=ALL, scheduler="select, insert, delete", client="select, insert, update, delete", reader="select"
    ),
    "dead": Needs(worker="select, insert", client="select, delete", reader="select"),
    "lease": Needs(
        worker=ALL,
        scheduler="select, update (cancel)",
        client="select, update (cancel), update (runs)",
        reader="select",
    ),
    "attempt": Needs(worker="select, insert", scheduler="select, insert", client="select, insert", reader="select"),
    "log": Needs(worker="insert", client="select", reader="select"),
    "stale": Needs(worker=ALL),
    "progress": Needs(worker=ALL, client="select", reader="select"),
    "checkpoint": Needs(worker=ALL),
    "idempotency": Needs(worker="select, update (check_at), delete", client="select, insert, delete", reader="select"),
    "unique_key": Needs(worker="select, update (check_at), delete", client="select, insert, update"),
    # A scheduler pauses and ends schedules, and takes back runs it has staged; what schedules are, only clients change.
    # A worker finds them by their names.
    "schedule": Needs(
        worker="select (lane), select (tenant_id), select (name), select (id)",
        scheduler="select, update (state), update (paused_at), update (paused_by), update (pause_reason),"
        " update (paused_until)",
        client=ALL,
        reader="select",
    ),
    # Whoever ends a run says so to its schedule. A schedule may cancel earlier runs, and so a scheduler does.
    "schedule_run": Needs(
        worker="select, update (is_dead), delete",
        scheduler="select, insert, update (is_dead), delete",
        client="select, insert, update (is_dead), delete",
        reader="select",
    ),
    "schedule_failure": Needs(worker=ALL, scheduler=ALL, client=ALL),
    "schedule_version": Needs(client="select, insert", reader="select"),
    "cursor": Needs(scheduler=ALL, client=ALL, reader="select"),
    "occurrence": Needs(
        worker="select", scheduler="select, insert, delete", client="select, insert, delete", reader="select"
    ),
    "occurrence_past": Needs(
        worker="select", scheduler="select, insert, delete", client="select, insert, delete", reader="select"
    ),
    "skipped": Needs(scheduler="select, insert", client="select, insert", reader="select"),
    "calendar": Needs(scheduler="select", client=ALL, reader="select"),
    "calendar_revision": Needs(scheduler="select", client="select, update"),
    "audit": Needs(worker="insert", scheduler="insert", client="select, insert", reader="select"),
    "operation": Needs(worker="select, delete", client="select, insert, update", reader="select"),
}

_RUN = (
    "uuid, integer, integer, integer, integer, smallint, smallint, integer, smallint, integer,"
    " timestamp with time zone, timestamp with time zone, smallint, bytea, jsonb, text[], text, text,"
    " timestamp with time zone, timestamp with time zone"
)
_INSTANTS = "timestamp with time zone[]"
_FIRING = (
    f"integer, uuid[], integer[], {_INSTANTS}, {_INSTANTS}, {_INSTANTS}, {_INSTANTS}, uuid[], integer[], {_INSTANTS},"
    f" {_INSTANTS}, jsonb, jsonb, text"
)
_BACKFILL = (
    f"integer, uuid, integer, {_INSTANTS}, {_INSTANTS}, {_INSTANTS}, uuid[], integer[], integer[], jsonb, text, uuid"
)
_CHANGES = "mainspring.run_row, integer, smallint, timestamp with time zone, double precision, smallint, bytea, text[]"
_CHANGING = (
    "smallint, uuid[], integer, integer, integer, integer, smallint, timestamp with time zone, double precision,"
    " smallint, bytea, text[], text, jsonb"
)
_RERUNNING = "smallint, uuid[], uuid[], timestamp with time zone, integer, smallint, bytea, text, jsonb"
# A client that changes a schedule first fires what is overdue, as a scheduler would have.
FUNCTIONS = {
    "clock_now()": tuple(RoleKind),
    "statement_now()": tuple(RoleKind),
    "rank_now()": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "rank_bound()": tuple(RoleKind),
    f"run_of({_RUN}, timestamp with time zone, timestamp with time zone, jsonb)": (
        RoleKind.WORKER,
        RoleKind.CLIENT,
        RoleKind.SCHEDULER,
    ),
    f"run_of({_RUN})": (RoleKind.WORKER,),
    "special_of(smallint, timestamp with time zone, jsonb)": (RoleKind.WORKER,),
    "special_of(smallint, timestamp with time zone, jsonb, text)": (RoleKind.WORKER,),
    "mark_gate(smallint, integer, smallint)": (RoleKind.WORKER, RoleKind.SCHEDULER, RoleKind.CLIENT),
    "marks_of(integer)": (RoleKind.WORKER, RoleKind.SCHEDULER, RoleKind.CLIENT),
    "room_at_marks(smallint, integer[], smallint[], integer[], boolean)": (
        RoleKind.WORKER,
        RoleKind.SCHEDULER,
        RoleKind.CLIENT,
    ),
    "set_aside_fired(smallint, uuid[], integer[], smallint[], integer[])": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    "release_at_marks(smallint, text[])": (RoleKind.WORKER, RoleKind.CLIENT),
    "turn_of(text, smallint, timestamp with time zone)": (RoleKind.WORKER, RoleKind.CLIENT),
    "gate_after(text, text)": (RoleKind.WORKER, RoleKind.CLIENT),
    "free_slots(smallint, uuid[], mainspring.run_state)": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "hold_slots(smallint, uuid[], text[])": (RoleKind.WORKER,),
    "end_runs(smallint, uuid[])": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "tell_children(smallint, uuid[])": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "tell_successes(smallint, uuid[], bytea[])": (RoleKind.WORKER,),
    "tell_chains(smallint, uuid[])": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "trigger_runs(smallint, uuid[], text[], jsonb, jsonb)": (RoleKind.WORKER,),
    "hold_new_runs(smallint, uuid[])": (RoleKind.CLIENT,),
    "add_dependencies(smallint, integer, jsonb)": (RoleKind.CLIENT,),
    "check_dependencies(smallint, integer)": (RoleKind.WORKER,),
    "release_children(smallint, uuid[], bytea[])": (RoleKind.WORKER,),
    "cancel_children(smallint, uuid[], jsonb[])": (RoleKind.WORKER,),
    "adopt_children(smallint, integer, uuid, uuid, integer, uuid, uuid[], boolean[], text)": (RoleKind.CLIENT,),
    "join_children(smallint, uuid[], uuid[], jsonb[])": (RoleKind.WORKER,),
    "end_schedule_runs(smallint, uuid[])": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "bury_schedule_runs(smallint, uuid[])": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "note_failure(smallint, uuid, uuid, integer, mainspring.run_state)": (
        RoleKind.WORKER,
        RoleKind.CLIENT,
        RoleKind.SCHEDULER,
    ),
    "pause_failing(integer, uuid, text)": (RoleKind.SCHEDULER,),
    f"decide_overlaps(integer, uuid[], text[], {_INSTANTS}, uuid[])": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    f"watch_schedule_runs(integer, uuid[], text[], integer[], {_INSTANTS}, uuid[], uuid[])": (
        RoleKind.SCHEDULER,
        RoleKind.CLIENT,
    ),
    "cancel_earlier_runs(integer, uuid[])": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    "admit_runs(smallint, uuid[], text[], boolean[], boolean[], boolean[], boolean[], double precision)": (
        RoleKind.WORKER,
        RoleKind.CLIENT,
    ),
    "claim_runs(smallint, integer, smallint[], bigint[], integer, uuid, uuid, integer[], integer)": (RoleKind.WORKER,),
    "cancel_runs(smallint, uuid[], integer, text, text, jsonb)": (RoleKind.WORKER, RoleKind.CLIENT, RoleKind.SCHEDULER),
    "drop_waiting_runs(smallint, uuid[], integer, text, text, jsonb)": (RoleKind.WORKER, RoleKind.CLIENT),
    "take_places(smallint, text[], integer[])": (RoleKind.WORKER, RoleKind.CLIENT),
    "add_entries(smallint, jsonb)": (RoleKind.WORKER, RoleKind.CLIENT),
    "add_uncounted(smallint, jsonb)": (RoleKind.WORKER, RoleKind.CLIENT),
    "clear_entries(smallint, text, bigint, uuid, integer)": (RoleKind.WORKER, RoleKind.CLIENT),
    f"change_runs({_CHANGING})": (RoleKind.CLIENT,),
    f"changed_run({_CHANGES})": (RoleKind.CLIENT,),
    "expire_runs(smallint, integer)": (RoleKind.WORKER,),
    "promote_runs(smallint, smallint[], timestamp with time zone[], integer)": (RoleKind.WORKER,),
    "release_runs(smallint, integer[], integer[], double precision[], text, integer)": (RoleKind.WORKER,),
    "purge_runs(smallint, uuid[], integer, text, text, jsonb)": (RoleKind.CLIENT,),
    "requeue_runs(smallint, uuid[], integer, smallint, bytea, double precision, text, jsonb)": (RoleKind.CLIENT,),
    "state_of_holder(smallint, uuid)": (RoleKind.CLIENT,),
    "take_unique_key(smallint, mainspring.run_row, text, jsonb)": (RoleKind.CLIENT,),
    "replace_waiting_run(smallint, uuid, mainspring.run_row, text, timestamp with time zone)": (RoleKind.CLIENT,),
    "resume_unique_key(smallint, uuid, integer, integer, text, uuid[])": (RoleKind.CLIENT,),
    f"rerun_runs({_RERUNNING})": (RoleKind.CLIENT,),
    "rescue_leases(smallint, uuid, integer, integer)": (RoleKind.WORKER,),
    "beat_workers(smallint, uuid[])": (RoleKind.WORKER,),
    "tally_worker(smallint, uuid, integer[], bigint[], double precision[], integer[])": (RoleKind.WORKER,),
    "fold_tallies(smallint)": (RoleKind.WORKER,),
    "add_history_partition(date)": (RoleKind.WORKER,),
    "installation_id()": tuple(RoleKind),
    "objection_to(jsonb)": (RoleKind.CLIENT,),
    "submit_runs(smallint, jsonb, jsonb, text)": (RoleKind.CLIENT,),
    "submit_runs(jsonb, jsonb, text)": (RoleKind.CLIENT,),
    "submit(jsonb, text[])": (RoleKind.CLIENT,),
    f"fire_schedules({_FIRING})": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    "instant_text(timestamp with time zone)": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    f"backfill_schedule({_BACKFILL})": (RoleKind.CLIENT,),
    "withdraw_staged(integer, uuid, timestamp with time zone)": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    "withdraw_and_lock(integer, uuid, timestamp with time zone)": (RoleKind.SCHEDULER, RoleKind.CLIENT),
    "complete_leases(integer, uuid, uuid[], integer[], bigint[], bigint[], bytea[])": (RoleKind.WORKER,),
    "complete_whole_leases(smallint, uuid, uuid[], integer[], text, text, bytea[])": (RoleKind.WORKER,),
    "finish_run(uuid, integer, integer, uuid, integer, uuid, timestamp with time zone, text)": (RoleKind.WORKER,),
}

MOST_BYTES = 63  # PostgreSQL cuts longer names, and would take them for another role's


# ── for one kind ────────────────────────────────────────────────────────────────────────────────────────────────


def privileges(kind: RoleKind) -> Iterator[tuple[str, str]]:
    """Each privilege that a kind needs on a table, with the table."""
    return ((privilege, table) for table, needs in TABLES.items() for privilege in needs.of(kind))


def functions(kind: RoleKind) -> list[str]:
    return [signature for signature, kinds in FUNCTIONS.items() if kind in kinds]


# ── as SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────


def statements(role: str, kinds: Iterable[RoleKind]) -> list[str]:
    """The statements that give a role what these kinds need, and nothing more."""
    name, wanted = quoted_role(role), list(kinds)
    return [
        f"grant usage on schema {SCHEMA} to {name}",
        *(f"grant {what} on {_listed(tables)} to {name}" for what, tables in _by_privileges(wanted).items()),
        f"grant execute on function {_listed(_functions(wanted))} to {name}",
    ]


def _by_privileges(kinds: list[RoleKind]) -> dict[str, list[str]]:
    """Tables by what is needed of them, so that few statements are enough."""
    grouped: dict[str, list[str]] = {}
    for table, needs in TABLES.items():
        wanted = {privilege for kind in kinds for privilege in needs.of(kind)}
        # A column needs no mention where the whole table is given.
        useful = [each for each in wanted if each == each.split()[0] or each.split()[0] not in wanted]
        if useful:
            grouped.setdefault(", ".join(sorted(useful, key=_rank)), []).append(table)
    return grouped


def _rank(privilege: str) -> tuple[int, str]:
    return ALL.index(privilege.split()[0]), privilege


def _functions(kinds: list[RoleKind]) -> list[str]:
    return [signature for signature, needed_by in FUNCTIONS.items() if set(kinds) & set(needed_by)]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{SCHEMA}.{name}" for name in names)


def quoted_role(role: str) -> str:
    """A role's name as SQL reads it. Refuses what would be read as something else."""
    if role in ("public", "none"):
        raise _invalid(role, "must not be a word that stands for everybody or nobody")
    if not 0 < len(role.encode(errors="replace")) <= MOST_BYTES:
        raise _invalid(role, f"must have 1 to {MOST_BYTES} bytes")
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in role):
        raise _invalid(role, "must not contain control characters")
    return '"' + role.replace('"', '""') + '"'


def _invalid(role: str, rule: str) -> InvalidInput:
    return InvalidInput(
        f"{shortened(role)} is no name of a role: it {rule}.",
        code="invalid-role",
        hint="Give the name of an existing role, as \\du in psql lists it.",
        field="role",
        value=shortened(role),
        rule=rule,
    )
