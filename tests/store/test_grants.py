"""What `mainspring grants` gives each kind of program: all that its statements need, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mainspring.errors import InvalidInput, PermissionMissing
from mainspring.store.distribute import MOVING, SHARED
from mainspring.store.grants import FUNCTIONS, TABLES, RoleKind, functions, privileges, quoted_role, statements
from mainspring.store.migrate import check_schema
from mainspring.store.statements import Statement, all_statements, load

from .routines import inside
from .scheduling import Firing, remind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    NewRole = Callable[..., Awaitable[str]]

# Who executes which statement. A new one has to say, and TABLES has to follow.
CONNECTING = " connections/end connections/living notify/send runs/confirm"
READING = """
    chains/list
    health/activity health/applied_migrations health/clock health/dead_rows health/failures health/finished health/lanes
    health/lateness health/latest health/long_transactions health/partitions_ahead health/prepared_transactions
    calendars/find calendars/list calendars/users health/schedules_paused_by health/settings health/workers
    history/attempts_of_run history/audit_of_run history/ends jobs/find jobs/ids jobs/lines jobs/list jobs/names
    jobs/names_of lists/begin lists/counts lists/ended lists/last_errors lists/placed lists/placed_of_jobs
    dependencies/parents fan_outs/children flows/ends flows/find flows/list
    breakers/failures breakers/history breakers/list breakers/openings breakers/openings_of_gates breakers/probes
    breakers/standing
    limits/ahead limits/earlier limits/count_of_rule limits/gate_of_run limits/holders limits/list
    limits/rules_of_gates limits/tokens limits/waiting
    backlog/list backlog/waiting limits/waiting_gates lists/ready_along_lines lists/ready_counts lists/ready_of_jobs
    lists/running lists/running_counts lists/unsuccessful lists/whereabouts operations/find operations/list
    runs/lines_in_use tenants/list
    queues/depths queues/find_pause queues/promotions queues/samples queues/scheduled queues/slots queues/tallies
    reports/find_progress reports/lines_of_run
    roles/keepers roles/lacking roles/search_path roles/strangers runs/ahead runs/find runs/rank
    runs/waits_until
    schedulers/list schedulers/list_in_reach schedules/extent schedules/find
    schedules/find_version schedules/list schedules/list_due schedules/list_of_job schedules/next_due schedules/now
    schedules/occurrences schedules/occurrences_at schedules/reruns schedules/sample_specs schedules/scan_end
    schedules/scan_end_of_job schedules/skipped schedules/specs schedules/versions workers/heartbeats workers/list
    workers/holders workers/lost workers/serving
"""
# Whoever submits or ends runs with limits releases those whose turn it is.
ADMITTING = """
    chains/upstreams
    breakers/list breakers/openings breakers/openings_of_gates breakers/probes breakers/send_probes
    backlog/book limits/admit limits/book limits/counts limits/unended limits/lock_gates limits/next_turns limits/now
    limits/next_of_shares
    limits/paused_lines
    limits/revision limits/rules_of_gates limits/spend limits/spread limits/tokens
    limits/in_line limits/keep_window limits/release_at_marks limits/shares limits/waiting_values limits/window
"""
# An application declares limits, backlog caps and breakers beside its jobs; workers and people open and close breakers.
LIMITING = (
    " backlog/list backlog/put backlog/remove"
    " chains/list chains/put chains/remove"
    " breakers/clear breakers/close breakers/list breakers/open breakers/opening_of breakers/openings breakers/put"
    " breakers/remove breakers/totals"
    " limits/follow_on_dead limits/free_dead limits/list limits/lock limits/put limits/remove limits/spread_broad"
)
DEFINING = """
    tenants/list
    jobs/add_version jobs/find_version jobs/lines jobs/open_line jobs/open_line_with_number jobs/register
    jobs/register_with_number
"""
# Whoever submits clears backlogs with caps, and drops what gives way; so does the keeper.
CLEARING = """
    backlog/clear backlog/drop backlog/forget backlog/leave backlog/newest backlog/oldest backlog/take
"""
ACTING = f"""
    backlog/add backlog/answered backlog/note_full {CLEARING}
    chains/pause
    connections/has_locked_tables dependencies/add dependencies/drop fan_outs/adopt fan_outs/drop
    fan_outs/forget_names fan_outs/kept flows/add flows/audit flows/hold
    flows/lock flows/lock_lane flows/replace
    jobs/objection_to
    leases/lock_of_runs leases/request_cancel operations/advance operations/lock_if_at operations/start queues/pause
    queues/pressure queues/resume queues/set_marks
    runs/cancel_waiting runs/change runs/exists runs/purge runs/requeue runs/rerun runs/submit
    tenants/create tenants/set_weight
    unique_keys/holder workers/request_drain
"""
FIRING = """
    leases/cancelling
    calendars/find jobs/find_by_id jobs/lines jobs/open_line jobs/open_line_with_number schedules/audit
    schedules/drop_cursors schedules/fire schedules/forget_failures
    schedules/last_decided schedules/lock schedules/lock_cursor schedules/lock_if_free schedules/now schedules/resume
    schedules/set_cursor schedules/skip schedules/withdraw
"""
# A client that changes a schedule fires what is overdue, too.
SCHEDULING = f"""
    calendars/advance_revision calendars/delete calendars/hold calendars/put schedules/backfill schedules/create
    schedules/audit_many schedules/create_many schedules/declared schedules/delete schedules/find_many
    schedules/keep_version schedules/keep_versions schedules/lock schedules/lock_many schedules/pause schedules/replace
    schedules/replace_many schedules/set_cursors schedules/withdraw schedules/withdraw_many {FIRING}
"""
WATCHING_THE_TIME = """
    calendars/edited calendars/users schedulers/beat schedulers/list schedulers/list_in_reach schedulers/remove
    schedulers/remove_before
    schedules/announced schedules/computed_by schedules/due schedules/failing schedules/known_by_workers
    schedules/next_due schedules/pause_failing
    schedules/note_calendars
    schedules/note_tzdata schedules/of_older_tzdata schedules/set_aside
"""
WORKING = f"""
    backlog/gates_to_tidy backlog/remove_entries backlog/remove_gates backlog/tidied {CLEARING}
    breakers/forget_probes breakers/forget_tallies breakers/put_off breakers/tally
    backlog/add backlog/add_uncounted
    chains/ended chains/following chains/news chains/tell chains/trigger
    dependencies/cancel dependencies/check dependencies/collect dependencies/collected dependencies/ends
    dependencies/forget dependencies/forget_pairs dependencies/inputs
    dependencies/news dependencies/news_of dependencies/payloads
    dependencies/pending dependencies/release dependencies/results dependencies/still_held
    dependencies/tell dependencies/told
    fan_outs/drop fan_outs/forget fan_outs/join fan_outs/kept fan_outs/lock fan_outs/note fan_outs/open fan_outs/orphans
    fan_outs/returned fan_outs/waiting leases/await_children leases/request_cancel lists/whereabouts runs/cancel_waiting
    history/add_partitions limits/end_runs limits/forget_full_buckets limits/forget_ended limits/free_leaked
    limits/forget_windows
    limits/hold_slots
    limits/free_slots limits/in_force limits/open_gates
    leases/bury leases/close leases/complete leases/find leases/give_back leases/hold leases/of_worker
    leases/record_stale leases/recorded_before leases/rescue leases/retry leases/settle queues/add_samples queues/depths
    queues/add_promotions queues/forget_promotions
    queues/fold_tallies queues/forget_samples queues/is_sampled queues/samples queues/slots queues/tallies queues/tally
    reports/append_lines reports/find_checkpoint reports/forget reports/note_progress reports/store_checkpoints
    health/clock leases/prune_stale operations/prune
    schedules/previous_success
    reports/sweep runs/claim runs/expire runs/forget_keys runs/forget_unique_keys runs/held_groups runs/lanes_to_tidy
    runs/lanes_to_keep
    jobs/all_lines jobs/names_of_all runs/lines_in_use
    runs/lines_to_rerank runs/next_due runs/promote runs/release runs/rerank runs/waiting_lines workers/beat
    workers/begin_heartbeats workers/count_heartbeats workers/check_writable workers/check_writable_before
    workers/lock_heartbeat
    workers/prune_heartbeats workers/with_tallies workers/lose workers/lost workers/prune workers/pulses
    workers/register workers/servers workers/stop workers/tell_unsettled
"""
# By the role that migrates.
OWNING = " restoring/begin restoring/end restoring/lift_fences restoring/running restoring/waiting"
IN_TESTS = " history/outcomes_of_worker runs/of_job schedules/fired_since"

# What is not in a file: COPY, functions that callers call, and what the oldest program that is served calls.
_OLD_RUN = next(each for each in FUNCTIONS if each.startswith("run_of") and not each.endswith("jsonb)"))
OTHERS = {
    RoleKind.READER: ["select from migration, setting", "select installation_id()", "select from line_sample"],
    RoleKind.SCHEDULER: [
        "select from migration, setting",
        "select installation_id()",
        "insert into scheduler (id) values (null) on conflict (id) do update set beat = scheduler.beat + 1",
    ],
    RoleKind.CLIENT: [
        "select from line_sample",
        "select from migration, setting",
        "select installation_id()",
        "insert into ready (lane) values (0)",
        "select submit('[]', '{}')",
        "select add_uncounted(0::smallint, '[]')",
        "insert into backlog_addition (lane) values (0)",
        "select submit_runs('[]', jsonb_build_object('installation', installation_id()), null)",
    ],
    RoleKind.WORKER: [
        "select from migration, setting",
        "select installation_id()",
        "insert into attempt (lane) values (0)",
        "insert into log (lane) values (0)",
        "update tally set finished = 0",
        "insert into tally (line_id) values (0)",
        "delete from tally",
        "insert into line_sample (line_id) values (0)",
        "select from line_sample",
        "delete from line_sample",
        "select finish_run(null, 0, 0, null, 0, null, null, null)",
        "select complete_leases(0, null, '{}', '{}', '{}', '{}', null)",
        f"select {_OLD_RUN.translate({ord('('): '(null::', ord(','): ', null::'})}",
    ],
}
NAMES = {
    RoleKind.READER: READING + CONNECTING,
    RoleKind.SCHEDULER: CONNECTING + FIRING + WATCHING_THE_TIME,
    RoleKind.CLIENT: READING + CONNECTING + DEFINING + LIMITING + ACTING + ADMITTING + SCHEDULING,
    RoleKind.WORKER: CONNECTING + DEFINING + LIMITING + ADMITTING + WORKING,
}
HOSTILE = ['a"b', "a'b", "a; drop schema mainspring", "$$a$$", "a\\b", " a ", "SELECT", "ü🙂", "a--b", "a/*b", "%I{}"]


def used_by(kind: RoleKind) -> list[Statement]:
    """Also what is inside the functions that they call: those act with the caller's rights."""
    named = [load(name) for name in dict.fromkeys(NAMES[kind].split())]
    named += [each for statement in named for each in inside(statement)]
    return named + [Statement(f"{sql[:40]} …", sql) for sql in OTHERS[kind]]


async def denied(connection: Connection, used: Iterable[Statement]) -> list[str]:
    """Which of these the present role may not execute. The check is made when a plan is about to be executed."""
    found = []
    for statement in used:
        values = f"({', '.join('null' for _ in statement.parameters)})" if statement.parameters else ""
        frame = connection.transaction()
        await frame.start()
        try:
            await connection.execute(f"prepare tried as {statement.text}; explain execute tried{values}")
            if statement.text.startswith("select submit"):
                await connection.execute("execute tried")  # what it does inside
        except PermissionMissing as error:
            found.append(f"{statement.name}: {error}")
        finally:
            await frame.rollback()
            await connection.execute("deallocate all")
    return found


# ── enough, and no more ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", RoleKind)
async def test_a_role_may_execute_every_statement_of_its_kind(
    connection: Connection, new_role: NewRole, kind: RoleKind
) -> None:
    await connection.execute(f"set role {await new_role(kind)}")

    assert await denied(connection, used_by(kind)) == []
    assert await check_schema(connection) == 8


async def test_a_role_with_all_kinds_may_execute_every_statement(connection: Connection, new_role: NewRole) -> None:
    await connection.execute(f"set role {await new_role(*RoleKind)}")

    assert await denied(connection, [each for kind in RoleKind for each in used_by(kind)]) == []


async def test_a_role_with_nothing_may_execute_nothing(connection: Connection, new_role: NewRole) -> None:
    await connection.execute(f"set role {await new_role()}; set search_path = mainspring")
    with pytest.raises(PermissionMissing):
        await connection.execute("select from mainspring.ready")


@pytest.mark.parametrize("kind", RoleKind)
async def test_nothing_is_given_that_no_statement_needs(
    connection: Connection, new_role: NewRole, kind: RoleKind
) -> None:
    role, used = await new_role(kind), used_by(kind)
    given = [(f"{privilege} on {table}", table) for privilege, table in privileges(kind)]
    given += [(f"execute on function {each}", each.partition("(")[0]) for each in functions(kind)]
    superfluous = []
    for what, name in given:
        frame = connection.transaction()
        await frame.start()
        await connection.execute(f"revoke {what} from {role}; set local role {role}")
        if not await denied(connection, [each for each in used if re.search(rf"\b{name}\b", each.text)] or used):
            superfluous.append(what)
        await frame.rollback()

    assert superfluous == []


WRITES = {
    RoleKind.READER: [f"delete from {table}" for table in TABLES]  # noqa: S608  names of ours
    + [f"insert into {table} default values" for table in TABLES],
    RoleKind.SCHEDULER: [
        "update schedule set spec = spec",
        "update schedule set payload = payload",
        "insert into schedule default values",
        "delete from schedule",
        "update occurrence set run_id = run_id",
        "update ready set rank = rank",
        "insert into dead default values",
        "update attempt set outcome = outcome",
        "update calendar set document = document",
        "insert into calendar default values",
        "select add_history_partition(current_date)",
    ],
    RoleKind.CLIENT: [
        "update lease set done = done",
        "update lease set worker_id = worker_id",
        "delete from lease",
        "insert into lease default values",
        "update attempt set outcome = outcome",
        "delete from attempt",
        "update worker set state = state",
        "update worker set beat = beat",
        "update worker_heartbeat set beat = beat",
        "update occurrence set run_id = run_id",
        "update schedule_version set spec = spec",
        "delete from schedule_version",
        "insert into scheduler_heartbeat default values",
        "update lane set calendars_revision = 0",
        "select add_history_partition(current_date)",
        "drop table ready",
        "create table spare (id int)",
    ],
    RoleKind.WORKER: [
        "update attempt set outcome = outcome",
        "delete from attempt",
        "update audit set actor = actor",
        "delete from audit",
        "update queue set paused_at = null",
        "update job set name = name",
        "delete from job",
        "update setting set value = value",
        "select payload from schedule",
        "select from cursor",
        "insert into occurrence default values",
        "select fire_schedules(0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '[]', '[]', '')",
        "alter table attempt add column colour text",
        "create table spare (id int)",
    ],
}


@pytest.mark.parametrize(("kind", "write"), [(kind, write) for kind, writes in WRITES.items() for write in writes])
async def test_a_role_may_not_do_what_its_kind_does_not(
    connection: Connection, new_role: NewRole, kind: RoleKind, write: str
) -> None:
    await connection.execute(f"set role {await new_role(kind)}")

    with pytest.raises(PermissionMissing):
        await connection.execute(write)


async def test_a_scheduler_with_a_role_of_its_own_fires_schedules(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, new_role: NewRole
) -> None:
    await remind(frozen_app).submit(1)
    await frozen_app.schedules.create("daily", "remind", "0 9 * * *")
    await clock.advance(24 * 3600)
    await connection.execute(f"set role {await new_role(RoleKind.SCHEDULER)}")

    assert await Firing(connection, clock).fire() == 1


# ── nothing is forgotten ────────────────────────────────────────────────────────────────────────────────────────


def test_every_table_says_who_needs_it() -> None:
    assert set(TABLES) == {*MOVING, *SHARED}


async def test_every_function_says_who_needs_it(connection: Connection) -> None:
    rows = await connection.fetch(
        "select proname || '(' || oidvectortypes(proargtypes) || ')' as signature"
        " from pg_proc where pronamespace = 'mainspring'::regnamespace"
    )

    assert {each.replace("mainspring.", "") for each in FUNCTIONS} == {row["signature"] for row in rows}


def test_every_statement_says_who_executes_it() -> None:
    known = {name for names in (*NAMES.values(), OWNING, IN_TESTS) for name in names.split()}

    assert known == {statement.name for statement in all_statements()}


def test_a_client_may_do_all_that_a_reader_may() -> None:
    assert set(privileges(RoleKind.READER)) <= set(privileges(RoleKind.CLIENT))
    assert set(functions(RoleKind.READER)) <= set(functions(RoleKind.CLIENT))


# ── the command ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_command_prints_is_executed_as_it_is(connection: Connection, new_role: NewRole) -> None:
    role = await new_role()
    await connection.execute(printed(role, "--for", "client"))
    await connection.execute(f"set role {role}")

    assert await denied(connection, used_by(RoleKind.CLIENT)) == []
    assert printed(role, "--for", "client").startswith("-- For a client of Mainspring. Run it again after each")
    assert json.loads(printed(role, "--for", "reader", "-o", "json")) == statements(role, [RoleKind.READER])
    assert json.loads(printed(role, "-o", "json")) == statements(role, RoleKind)


def printed(*words: str) -> str:
    """What `mainspring grants` prints, where there is no database to be found."""
    environment = {"PATH": os.environ["PATH"], "MAINSPRING_DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}
    done = subprocess.run(
        [sys.executable, "-m", "mainspring.cli", "grants", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


# ── names of roles ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", HOSTILE)
async def test_the_role_that_was_named_gets_it_and_nothing_else_happens(connection: Connection, name: str) -> None:
    frame = connection.transaction()
    await frame.start()
    await connection.execute(await connection.fetchval("select format('create role %I', $1::text)", name))
    for statement in statements(name, [RoleKind.READER]):
        await connection.execute(statement)

    assert await connection.fetchval("select has_table_privilege($1::name, 'mainspring.ready', 'select')", name)
    assert not await connection.fetchval("select has_table_privilege($1::name, 'mainspring.ready', 'insert')", name)
    await frame.rollback()


@pytest.mark.parametrize("name", ["", "public", "none", "a\nb", "a\x00b", "a\x1b[31m", "\udcff", "ü" * 32])
def test_a_name_that_would_be_read_as_something_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        quoted_role(name)

    assert refused.value.code == "invalid-role"
    assert "\n" not in str(refused.value)


def test_the_longest_name_is_quoted() -> None:
    assert quoted_role("ü" * 31 + "a") == f'"{"ü" * 31}a"'
