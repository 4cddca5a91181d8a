"""Plans of statements that run all the time: by the index their header names, whatever the statistics say.

A plan is made once per connection and kept. So it has to be right for a table that was empty, or never looked at by
ANALYZE, when the plan was made and has a long backlog when it is used.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from tests.databases import fresh_database
from tests.registering import registered_worker

from mainspring.store.database import KEEPS_GOOD_PLANS, STEADY_PLANS, Database
from mainspring.store.distribute import MOVING
from mainspring.store.statements import Statement, all_statements, load

from .reading import indexes_of, is_hot, written
from .routines import inside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer

    Node = dict[str, Any]

STATEMENTS = list(all_statements())
HOT = [statement for statement in STATEMENTS if is_hot(statement) and not inside(statement)]
# What a function does is planned like any statement, by the connection that calls it.
HOT_CALLS = [statement for statement in STATEMENTS if is_hot(statement) and inside(statement)]
# What only the firing of a schedule calls that cancels its earlier runs, and what that calls.
SELDOM = {"cancel_earlier_runs", "cancel_runs", "end_runs", "free_slots"}
SELDOM |= {"bury_schedule_runs", "end_schedule_runs", "note_failure", "tell_chains"}


def often_inside(statement: Statement) -> list[Statement]:
    return [each for each in inside(statement) if each.name.partition(" ")[0] not in SELDOM]


IN_HOT_FUNCTIONS = [each for statement in HOT_CALLS for each in often_inside(statement)]
# What people ask for now and then goes through other connections, where each question is planned for itself.
INDEXED = [
    statement
    for statement in STATEMENTS
    if (indexes_of(statement) or statement in HOT) and not statement.name.startswith("health/")
]

LISTS = [
    load(f"lists/{name}") for name in ("placed", "placed_of_jobs", "ready_of_jobs", "running", "ended", "unsuccessful")
]
LISTS += [load(f"schedules/{name}") for name in ("list", "list_of_job", "occurrences", "skipped", "versions")]
LISTS += [load(f"schedules/{name}") for name in ("list_due", "scan_end", "scan_end_of_job")]
# Those who look for something to do: none of them reads what is staged.
CLAIM, CLAIM_BESIDE_OTHERS = inside(load("runs/claim"))[1:3]
LOOKING = [CLAIM, CLAIM_BESIDE_OTHERS, *(load(name) for name in ("runs/waiting_lines", "queues/depths"))]

RUNS, BATCH, COUNT = 20_000, 100, 200
PRIORITIES_OF_TWO_LINES = 20
LIST_ROWS = 1_500  # a page of 51 from each of 8 lanes, from each of 3 pairs with their misses
WORKER = "00000000-0000-4000-8000-00000000aaaa"
IN_LANE_0 = [f"00000000-0000-4000-8000-{n:012}" for n in (8, 16, 24)]
SKIPS = json.dumps([{"schedule_id": IN_LANE_0[0], "first_at": "2020-01-01", "last_at": "2020-01-01", "reason": ""}])

A_RUN = """
    run_of(gen_random_uuid(), 1, 1, 1, 1, 5::smallint, 0::smallint, 1, 0::smallint, 0, clock_now(), null, 0::smallint,
           '{}', null, null, null, null, clock_now(), clock_now())"""
FILL = """
    insert into queue (tenant_id, name, high_mark) values (1, 'default', 800) on conflict do nothing;
    insert into line (id, tenant_id, queue) values (1, 1, 'default'), (2, 1, 'other') on conflict do nothing;
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, rank, expires_at)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1 + n % 2, n % 10, '{}', n,
           case when n % 100 = 0 then clock_now() + n * interval '1 second' end
    from generate_series(1, 20000) as n;
    insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1 + n % 2, n % 10, '{}',
           clock_now() + (n - 10000) * interval '1 second'
    from generate_series(1, 20000) as n;
    insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, reason)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1, 5, '{}', clock_now(), 'no-handler'
    from generate_series(1, 2000) as n;
    insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, reason, gates, gate,
                      turn)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1, 5, '{}', clock_now(), 'limit', '7:' || n % 200, '7:' || n % 200, n
    from generate_series(1, 20000) as n;
    insert into slot (lane, run_id, rule_id, gate, place, is_strict, halts_on_dead)
    select n % 8, gen_random_uuid(), 7, '7:' || n % 200, 1, n % 2 = 0, false from generate_series(1, 2000) as n;
    insert into bucket (lane, gate, tokens, at, full_at)
    select n % 8, '7:' || n, 0, 0, 9e9 + n from generate_series(1, 2000) as n;
    insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise, inputs, check_at, is_news)
    select n % 8, gen_random_uuid(), gen_random_uuid(), array[n % 8], 'success', 'cancel',
           case when n % 2 = 0 then '[["rows"]]'::jsonb end,
           case when n % 4 > 0 then clock_now() + (n - 10000) * interval '1 second' end, n % 4 = 0
    from generate_series(1, 20000) as n;
    insert into flow (lane, id, tenant_id, name, graph, submitted_by)
    select n % 8, gen_random_uuid(), 1, '', '', '' from generate_series(1, 20000) as n;
    insert into schedule_run (lane, run_id, schedule_id)
    select n % 8, gen_random_uuid(), ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid
    from generate_series(1, 20000) as n;
    insert into schedule_failure (lane, schedule_id, run_id, state, has_reached)
    select n % 8, ('00000000-0000-4000-8000-' || lpad((n % 1000)::text, 12, '0'))::uuid, gen_random_uuid(), 'dead',
           n % 1000 = 0
    from generate_series(1, 20000) as n;
    insert into idempotency (lane, tenant_id, key, run_id, digest)
    select n % 8, 1, n::text, gen_random_uuid(), '' from generate_series(1, 2000) as n;
    insert into unique_key (lane, tenant_id, job_id, key, run_id, submission, taken_at, check_at)
    select n % 8, 1, n % 50, n::text, gen_random_uuid(), gen_random_uuid(), clock_now(), clock_now()
    from generate_series(1, 2000) as n;
    insert into audit (lane, tenant_id, actor, action, subject)
    select n % 8, 1, '', '', gen_random_uuid()::text from generate_series(1, 2000) as n;
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, codec, submitted_at, recorded_at)
    select n % 8, gen_random_uuid(), 1, 1, 1, n % 50, 1, 1 + n % 2, 5,
           case when n % 2 = 0 then 'failed' else 'succeeded' end::attempt_outcome,
           case when n % 3 = 0 then 'scheduled' when n % 2 = 0 then 'cancelled' else 'succeeded' end::run_state,
           clock_now(), 0, clock_now(), clock_now() - n * interval '1 millisecond'
    from generate_series(1, 20000) as n;
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, codec, submitted_at, recorded_at, is_covered, covers)
    select n % 8, ids[i], 1, 1, 1, n % 50, 1, 1 + n % 2, 5, 'succeeded', 'succeeded', clock_now(), 0, clock_now(),
           clock_now() - n * interval '100 milliseconds', case when i > 1 then true end, case when i = 1 then ids end
    from (select n, array_agg(gen_random_uuid()) as ids from generate_series(1, 200) as n, generate_series(1, 100)
          group by n) as batch, generate_series(1, 100) as i;
    insert into dead (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1, 5, '{}', clock_now() from generate_series(1, 20000) as n;
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    select n % 8, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
           case when n % 10 = 8 then '00000000-0000-4000-8000-00000000aaaa' else gen_random_uuid() end,
           array_agg({a_run}),
           array_agg(gen_random_uuid()), repeat('0', 100)::varbit, repeat('0', 100)::varbit
    from generate_series(1, 200) as n, generate_series(1, 100) as i group by n;
    insert into schedule (lane, id, tenant_id, name, job_id, spec, payload, is_declared, created_by, changed_by,
                          calendars)
    select n % 8, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 1, 'name-' || lpad(n::text, 6, '0'),
           n % 50, '{}', '', n % 100 = 0, '', '', case when n % 50 = 0 then '{holidays}'::text[] end
    from generate_series(1, 20000) as n;
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata, at_instant)
    select n % 8, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, clock_now(),
           clock_now() + (n - 10000) * interval '1 second', '', n % 100 > 90
    from generate_series(1, 20000) as n;
    insert into occurrence (lane, schedule_id, nominal_at, due_at, run_id, version)
    select 0, '00000000-0000-4000-8000-000000000008', clock_now() + n * interval '1 millisecond', clock_now(),
           gen_random_uuid(), 1
    from generate_series(1, 20000) as n;
    insert into occurrence_past (lane, schedule_id, nominal_at, due_at, run_id, version)
    select 0, '00000000-0000-4000-8000-000000000008', clock_now() - n * interval '1 day', clock_now(),
           gen_random_uuid(), 1
    from generate_series(1, 20000) as n;
    insert into skipped (lane, schedule_id, first_at, last_at, reason, version)
    select 0, '00000000-0000-4000-8000-000000000008', clock_now() - n * interval '1 day', clock_now(), '', 1
    from generate_series(1, 20000) as n;
    insert into schedule_version (lane, schedule_id, version, tenant_id, name, job_id, spec, codec, payload, options,
                                  catch_up, catch_up_seconds, is_declared, changed_at, changed_by, replaced_at)
    select 0, '00000000-0000-4000-8000-000000000008', n + 1, 1, 'name-000008', 1, '{}', 0, '', '{}', 'latest', 1, false,
           clock_now(), '', clock_now() + n * interval '1 second'
    from generate_series(1, 20000) as n
""".replace("{a_run}", A_RUN)
# Runs of the same lines that wait for their instants, some of each lane and priority.
STAGE = """
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, rank)
    select n % 8, gen_random_uuid(), 1, n % 50, 1, 1 + n % 2, n % 10, '{}', rank_now() + (3600 + n) * 1000000::bigint
    from generate_series(1, 20000) as n
"""

# A value for each parameter, by its name.
SAMPLES = {
    "actor": "'tester'",
    "become": A_RUN,
    "cancelling": "'{}'",
    "earlier": f"'{{{','.join(IN_LANE_0)}}}'",
    "overlap": "'skip'",
    "overlapping": "'{}'",
    "pause_after_failures": "3",
    "pauses": "'{1,2,null}'",
    "place": "1",
    "rules": "'{skip,buffer_one,cancel_other}'",
    "to_skip": "'{}'",
    "to_wait": "'{}'",
    "made": f"'{{{','.join(IN_LANE_0)}}}'",
    "waiting": f"'{{{','.join(IN_LANE_0)}}}'",
    "are_watched": "'{t,t,t}'",
    "bound": "1000",
    "calendars": "null",
    "calendars_revision": "null",
    "catch_up": "'latest'",
    "catch_up_seconds": "1",
    "codec": "0",
    "count": str(COUNT),
    "chosen": "'{0,0,0}'",
    "days_ahead": "3",
    "digests": "array_fill(''::bytea, array[3])",
    "ahead": "3000000",
    "ended": f"'{{{','.join(IN_LANE_0)}}}'",
    "ending": f"'{{{','.join(IN_LANE_0)}}}'",
    "due": "array_fill(clock_now(), array[3])",
    "expected": "array_fill(clock_now(), array[3])",
    "fences": "'{1,1,1}'",
    "first_at": "'2020-01-01'",
    "fronts": f"'{{{','.join(['0'] * 10)}}}'",
    "jobs": "'{1,2,3}'",
    "jobs_in_threads": "'{1,2,3}'",
    "fence": "0",
    "fired": "array_fill(clock_now(), array[3])",
    "following": "array[null, clock_now(), clock_now()]",
    "following_due": "array[null, clock_now(), clock_now()]",
    "holder": f"'{IN_LANE_0[0]}'",
    "horizon": "0",
    "ids": f"'{{{','.join(IN_LANE_0)}}}'",
    "instants": "array_fill(clock_now(), array[3])",
    "is_declared": "false",
    "is_deleted": "false",
    "item_digest": "''",
    "item_key": "'key'",
    "item_ordinal": "0",
    "item_place": "1",
    "item_run": f"'{IN_LANE_0[0]}'",
    "item_tenant": "1",
    "item_verdict": "'earlier'",
    "items": "'[]'",
    "job": "1",
    "kept_digest": "null",
    "kept_run": "null",
    "key_wait": "null",
    "known": "null",
    "lane": "0",
    "lanes": "'{0,1,2,3,4,5,6,7}'",
    "late_by": "null",
    "latest": "clock_now()",
    "last_at": "'2020-01-01'",
    "lease": f"'{IN_LANE_0[0]}'",
    "leases": f"'{{{','.join(IN_LANE_0)}}}'",
    "line": "1",
    "lines": "'{1,2}'",
    "marks": "'{4,60}'",
    "most": "100",
    "most_crashes": "10",
    "masks": f"'{{{','.join(['1' * BATCH] * 3)}}}'",
    "name": "'name-000008'",
    "names": "'{holidays}'",
    "newer": A_RUN,
    "newer_gates": "'7:8'",
    "nominal_at": "clock_now()",
    "not_new": "'{}'",
    "objection": "'foreign'",
    "due_at": "clock_now()",
    "options": "'{}'",
    "ordinals": "'{0,1,2}'",
    "outcomes": "'{succeeded,succeeded,succeeded}'",
    "own_id": f"'{IN_LANE_0[0]}'",
    "own_job": "1",
    "own_key": "'key'",
    "own_tenant": "1",
    "part": "0",
    "past": "'{2020-01-01}'",
    "previous": "array_fill(clock_now(), array[3])",
    "picked": f"'{{{','.join(IN_LANE_0)}}}'",
    "in_ready": f"'{{{','.join(IN_LANE_0)}}}'",
    "in_later": f"'{{{','.join(IN_LANE_0)}}}'",
    "in_held": f"'{{{','.join(IN_LANE_0)}}}'",
    "taken": "null",
    "unfinished": "null",
    "states": "null",
    "claims": "null",
    "errors": "null",
    "is_crash": "true",
    "in_threads": "null",
    "with_results": "true",
    "looked_at": "3000",
    "without": "'{7}'",
    "their_lines": "'{1,2,3}'",
    "their_priorities": "'{5,5,5}'",
    "places": "'{1,2,3}'",
    "its_gate": "'-1:0.1.5'",
    "after_place": "-1",
    "after_run": f"'{IN_LANE_0[0]}'",
    "argument": "'rows'",
    "condition": "'success'",
    "upstream": "'load'",
    "downstream": "'send'",
    "is_paused": "false",
    "news": "'{}'",
    "refusals": "'[]'",
    "coming": "'{100}'",
    "due_lines": "'{1}'",
    "due_priorities": "'{5}'",
    "full_gates": "'{-1:0.1.5}'",
    "have_marks": "'{true}'",
    "in_line": "100",
    "picked_beyond": f"'{{{','.join(IN_LANE_0)}}}'",
    "rooms": "'{50}'",
    "its_line": "1",
    "its_priority": "5",
    "its_high": "1000",
    "its_low": "500",
    "its_depth": "0",
    "its_head": "1",
    "its_room": "100",
    "high": "1000",
    "low": "500",
    "queue": "'default'",
    "rule": "7",
    "filled": "32",
    "new_codec": "null",
    "new_payload": "null",
    "new_priority": "null",
    "new_tags": "null",
    "fresh_ids": f"'{{{','.join(IN_LANE_0)}}}'",
    "seen": "null",
    "from_ready": "null",
    "from_later": "null",
    "from_gates": "null",
    "were_ranked": "null",
    "run_gates": "null",
    "run_waits": "null",
    "leased": f"'{{{','.join(IN_LANE_0)}}}'",
    "dead_letters": f"'{{{','.join(IN_LANE_0)}}}'",
    "first": f"'{IN_LANE_0[0]}'",
    "last": f"'{IN_LANE_0[-1]}'",
    "child": f"'{IN_LANE_0[0]}'",
    "children": f"'{{{','.join(IN_LANE_0)}}}'",
    "parents": f"'{{{','.join(IN_LANE_0)}}}'",
    "going_on": "'{}'",
    "over": "'{}'",
    "at_gates": f"'{{{','.join(IN_LANE_0)}}}'",
    "payloads": "array_fill(''::bytea, array[3])",
    "have_ended": "true",
    "most_bytes": "1000",
    "firsts": f"'{{{','.join(IN_LANE_0)}}}'",
    "inputs": f"array_fill('[]'::text, array[{len(IN_LANE_0)}])",
    "flow": f"'{IN_LANE_0[0]}'",
    "graph": "''",
    "detail": "'{}'",
    "gates": "'{7:1,7:2,7:3}'",
    "gate": "'7:8'",
    "counts": "'{1,2,3}'",
    "turns_from": "'{0,0,0}'",
    "turns_before": "'{9000000000000000,9000000000000000,9000000000000000}'",
    "number": "'7'",
    "paused": "'{99}'",
    "strict": "'{false,false,false}'",
    "turn": "10000",
    "changed": "null",
    "kept_held": "null",
    "passed_over": "0",
    "payload": "''",
    "position": "'(1,1)'",
    "positions": "'{1,2,3}'",
    "priority": "5",
    "rank": "10000",
    "priorities": "'{0,1,2,3,4,5,6,7,8,9}'",
    "read_at": "null",
    "reason": "'no-handler'",
    "revision": "0",
    "revisions": "'{0,0,0}'",
    "run": f"'{IN_LANE_0[0]}'",
    "runs": f"'{{{','.join(IN_LANE_0)}}}'",
    "schedule": f"'{IN_LANE_0[0]}'",
    "schedules": f"'{{{','.join(IN_LANE_0)}}}'",
    "since": "'2020-01-01'",
    "since_epoch": "1577836800",
    "skips": f"'{SKIPS}'",
    "span": "'5 minutes'",
    "spec": "'{}'",
    "state": "'active'",
    "subject": "'x'",
    "tags": "null",
    "templates": """'[{"job_version": 1, "line_id": 1, "priority": 5}]'""",
    "tenant": "1",
    "threads": "8",
    "tzdata": "'2026a'",
    "until": "'2099-01-01'",
    "usual_wait": "'0'",
    "after": "'2020-01-01'",
    "job_versions": "'{1}'",
    "line_ids": "'{1}'",
    "max_ages": "'{null}'",
    "start_limits": "'{null}'",
    "template_overrides": "'{null}'",
    "template_headers": "'{null}'",
    "are_packed": "'{true}'",
    "is_all_ours": "false",
    "versions": "'{1,1,1}'",
    "was_ranked": "1",
    "was_ready": "clock_now()",
    "wish": """'{"key": "key", "rule": "waiting_or_running"}'""",
    "wishes": """array['{"key": "key", "rule": "waiting_or_running"}'::jsonb]""",
    "worker": f"'{WORKER}'",
    "this": f"'{IN_LANE_0[0]}'",
    "size": str(BATCH),
    "before": "0",
    "all_starts": f"array_fill(0::bigint, array[{BATCH}])",
    "all_ends": f"array_fill(0::bigint, array[{BATCH}])",
    "starts": "'{}'",
    "ends": "'{}'",
    "results": f"array_fill(''::bytea, array[{BATCH}])",
    "lease_claimed_at": "clock_now()",
    "lease_ids": f"array_fill(gen_random_uuid(), array[{BATCH}])",
    "lease_runs": f"array_fill({A_RUN}, array[{BATCH}])",
}
LONG_AGO = f"'{{{','.join(['2000-01-01'] * 10)}}}'"
LISTING = {
    "before": "'ffffffff-ffff-8fff-bfff-ffffffffffff'",
    "before_id": "'00000000-0000-0000-0000-000000000000'",
    "bound": "1000",
    "count": "51",
    "error": "'no'",
    "jobs": "'{1,2,3}'",
    "lines": "'{1,2,1}'",
    "only_latest": "true",
    "outcomes": "'{failed,crashed}'",
    "since": "'00000000-0000-0000-0000-000000000000'",
    "states": "'{scheduled,held,ready,dead,succeeded,cancelled}'",
    "tags": "null",
}
IN_HISTORY = {"before": "'2099-01-01'", "since": "'2020-01-01'"}
OF_SCHEDULES = {"after": "''", "count": "51", "job": "1", "prefix": "'name-01'", "states": "null", "tags": "null"}
OF_SCHEDULES |= {"until": "'~'", "scan": "51"}
OTHER_SAMPLES: dict[str, dict[str, str]] = {
    "flows/list": {"before": "'ffffffff-ffff-8fff-bfff-ffffffffffff'"},
    "decide_overlaps": {"known": "'{}'"},
    "submit_runs": {"runs": f"array[{A_RUN}]"},
    "tell_successes": {"places": "'[]'", "together": "''"},
    "take_unique_key": {"most": "'1 hour'", "seen": "0"},
    "schedules/resume": {"state": "'done'"},
    "schedules/find_many": {"names": "'{name-000008,name-000016}'"},
    "schedules/lock_many": {"names": "'{name-000008,name-000016}'"},
    "schedules/replace_many": {
        **dict.fromkeys(("specs", "options"), '\'{"{}","{}","{}"}\''),
        **dict.fromkeys(("codecs", "jobs", "catch_up_seconds"), "'{1,1,1}'"),
        "payloads": "array_fill(''::bytea, array[3])",
        "tags": "array_fill(null::text, array[3])",
        "catch_ups": "'{none,none,none}'",
        "overlaps": "'{skip,skip,skip}'",
        "pause_after_failures": "'{1,2,null}'",
        "declared": "'{f,f,f}'",
        "read_at": "'{null,null,null}'",
    },
    "schedules/list": OF_SCHEDULES,
    "schedules/list_of_job": OF_SCHEDULES,
    "schedules/scan_end": OF_SCHEDULES,
    "schedules/scan_end_of_job": OF_SCHEDULES,
    "schedules/list_due": OF_SCHEDULES
    | {"before": "'2099-01-01'", "since": "'2020-01-01'", "since_id": f"'{IN_LANE_0[0]}'", "job": "null"},
    "schedules/occurrences": IN_HISTORY | {"count": "51"},
    "schedules/previous_success": IN_HISTORY | {"count": "1000"},
    "schedules/skipped": IN_HISTORY | {"count": "51"},
    "schedules/versions": {"count": "51"},
    "schedules/of_older_tzdata": {"past": "'00000000-0000-0000-0000-000000000000'"},
    "calendars/users": {"after": "''", "count": "51", "names": "'{holidays}'"},
    "leases/prune_stale": {"older_than": "'30 days'"},
    "runs/rerun": {"detail": "'{}'", "ids": f"'{{{','.join(IN_LANE_0)}}}'", "payload": "null", "codec": "null"},
    "lists/placed": LISTING,
    "lists/placed_of_jobs": LISTING,
    "lists/ready_of_jobs": LISTING
    | {"states": "'{ready,scheduled}'", "bound": "52", "befores": f"array_fill({LISTING['before']}::uuid, array[8])"},
    "lists/ready_along_lines": LISTING,
    "lists/running": LISTING,
    "lists/ended": LISTING | IN_HISTORY,
    "lists/unsuccessful": LISTING | IN_HISTORY,
    "runs/claim": {"lease": "'00000000-0000-4000-8000-00000000bbbb'"},
    "claim_runs": {
        "lease": "'00000000-0000-4000-8000-00000000bbbb'",
        "taken": f"array_fill({A_RUN}, array[3])",
        "taken_ids": f"'{{{','.join(IN_LANE_0)}}}'",
        "taken_ranks": "'{1,2,3}'",
        "taken_gates": "'{null,null,null}'",
    },
    "rerun_runs": {"detail": "'{}'"},
    "change_runs": {"detail": "'{}'", "line": "null", "due": "null", "max_age": "null", "present_line": "null"},
    "limits/waiting_gates": {"after": "'7:5'", "count": "20"},
    "limits/open_gates": {"after": "'7:5'", "before": "';'", "count": "20"},
    "free_slots": {"state": "'dead'"},
    "limits/free_slots": {"state": "'dead'"},
    "limits/admit": {"takes_slot": "'{true,true,true}'"},
    "runs/promote": {"fronts": LONG_AGO},
    "promote_runs": {"fronts": LONG_AGO},
    "runs/release": {"lines": "'{1,1,1}'", "pauses": "'{0,0,0}'"},
    "release_runs": {"lines": "'{1,1,1}'", "pauses": "'{0,0,0}'"},
    "runs/next_due": {"fronts": LONG_AGO, "lanes": "'{0,0,0,0,0,0,0,0,0,0}'"},
    "runs/waiting_lines": {"lanes": "'{0,1}'", "lines": "'{1,2}'"},
    "runs/lines_to_rerank": {"lanes": "'{0,1}'", "lines": "'{1,2}'"},
    "runs/lines_in_use": {
        "after_lines": "'{-1,1}'",
        "after_lanes": "'{-1,0}'",
        "until_lines": "'{1,9999}'",
        "until_lanes": "'{0,99}'",
    },
    "queues/depths": {"in_use": "null"},
}


class Bench:
    """One connection as workers have it, with its prepared statements."""

    def __init__(self, connection: Connection, parents: dict[str, str]) -> None:
        self._connection = connection
        self._parents = parents
        self._prepared: set[str] = set()

    @classmethod
    async def set_up(cls, connection: Connection) -> Bench:
        await registered_worker(connection, UUID(WORKER))
        inherits = await connection.fetch("select inhrelid::regclass::text, inhparent::regclass::text from pg_inherits")
        return cls(connection, dict(map(tuple, inherits)))

    @property
    def keeps_plans(self) -> bool:
        return self._connection.get_server_version().major >= KEEPS_GOOD_PLANS

    async def forget_settings(self) -> None:
        """Plan as any connection does that has used a statement for a while."""
        await self._connection.execute("set plan_cache_mode = force_generic_plan")
        for setting in STEADY_PLANS.keys() - {"plan_cache_mode"}:
            await self._connection.execute(f"set {setting} to on")

    async def begin_anew(self) -> None:
        for name in self._prepared:  # not all: the driver has prepared statements of its own, and uses them again
            await self._connection.execute(f"deallocate {name}")
        await self._connection.execute(f"truncate {', '.join(MOVING[:-1])}")
        self._prepared.clear()

    async def take(self, steps: str) -> None:
        for step in steps.split(", "):
            match step:
                case "fill":
                    await self._connection.execute(FILL)
                case "stage":
                    await self._connection.execute(STAGE)
                case "analyse":
                    await self._connection.execute("vacuum analyze")
                case _:
                    for statement in {*INDEXED, *LISTS, *LOOKING, *IN_HOT_FUNCTIONS}:
                        await self.plans_of(statement)

    async def plan_of(self, statement: Statement) -> Node:
        """The plan a statement has on this connection, with what it really did; its effects are undone."""
        name = statement.name.replace("/", "_").replace(" ", "_")
        if name not in self._prepared:
            await self._connection.execute(f"prepare {name} as {statement.text}")
            self._prepared.add(name)
        samples = SAMPLES | OTHER_SAMPLES.get(statement.name.partition(" ")[0], {})
        values = ", ".join(samples[parameter] for parameter in statement.parameters)
        undone = self._connection.transaction()
        await undone.start()
        answer = await self._connection.fetchval(
            f"explain (analyze, verbose, format json) execute {name}{f' ({values})' if values else ''}"
        )
        await undone.rollback()
        plan: Node = json.loads(answer)[0]["Plan"]
        return plan

    async def plans_of(self, statement: Statement) -> list[Node]:
        """Its own plan, or those of what is inside the function that it calls."""
        return [await self.plan_of(each) for each in often_inside(statement) or [statement]]

    async def functions(self) -> set[str]:
        """Our functions that could be inlined."""
        rows = await self._connection.fetch(
            "select proname from pg_proc where pronamespace = 'mainspring'::regnamespace"
            " and prolang = (select oid from pg_language where lanname = 'sql') and proconfig is null"
        )
        return {row["proname"] for row in rows}

    def indexes_used(self, plan: Node) -> set[str]:
        used = {node["Index Name"] for node in nodes(plan) if "Index Name" in node and scans(node)}
        return {self._parents.get(name, name) for name in used}


@pytest.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    connection = await database.connect("test")
    yield await Bench.set_up(connection)
    await connection.close()


@pytest.fixture(scope="module")
async def prepared(server: EmbeddedServer, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """A connection in one of the situations, for all who look at its plans: what a look does is undone."""
    async with fresh_database(server) as url:
        connection = await Database(url).connect("test")
        try:
            bench = await Bench.set_up(connection)
            if not bench.keeps_plans and "fill" not in request.param:
                pytest.skip("this server plans each use anew, and for an empty table any plan will do")
            await bench.take(request.param)
            yield bench
        finally:
            await connection.close()


# ── reading a plan ──────────────────────────────────────────────────────────────────────────────────────────────


def nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def table_of(node: Node) -> str:
    """The table that a node reads, if it reads one; of a partition, the table it is a part of."""
    return re.sub(r"_\d+$", "", node.get("Relation Name", ""))


def scans(plan: Node) -> list[Node]:
    """Where a moving table (or a partition of history) is read."""
    return [node for node in nodes(plan) if node["Node Type"].endswith("Scan") and table_of(node) in MOVING]


def kinds(plan: Node) -> set[str]:
    return {node["Node Type"] for node in scans(plan)}


def backlog_sorts(plan: Node) -> list[Node]:
    """Sorts with a moving table below them. Sorting a batch that was taken out of one, or found by key, is fine."""
    return [
        node
        for node in nodes(plan)
        if node["Node Type"].endswith("Sort")
        and any(not each.get("Index Name", "").endswith("_pkey") for each in scans(node))
    ]


def rows_read(plan: Node) -> float:
    """The most rows that any scan of a moving table returned or passed over."""
    return max((rows for table in MOVING for rows in rows_read_of(plan, table)), default=0.0)


def rows_read_of(plan: Node, table: str) -> list[float]:
    """So many rows each scan of a table, or of a partition of it, returned or passed over."""
    return [
        float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in scans(plan)
        if table_of(node) == table
    ]


def indexes_promised(statement: Statement) -> set[str]:
    """What the header names; a hot statement writes through the primary key."""
    writers = [each for each in often_inside(statement) if not inside(each)] or [statement]
    tables = {table for each in writers for table in written(each, "update", "delete")}
    keys = {f"{table}_pkey" for table in tables} if is_hot(statement) else set()
    return keys | set(indexes_of(statement))


# ── the plans ───────────────────────────────────────────────────────────────────────────────────────────────────

SITUATIONS = {
    "new and empty": "plan",
    "analysed while empty": "analyse, plan",
    "full and never analysed": "fill, plan",
    "full since it was analysed": "analyse, fill, plan",
    "full since it was planned": "plan, fill",
    "full since it was analysed and planned": "analyse, plan, fill",
    "analysed when full": "fill, analyse, plan",
}
in_every_situation = pytest.mark.parametrize(
    "prepared",
    [pytest.param(steps, id=name, marks=pytest.mark.shares(f"plans {name}")) for name, steps in SITUATIONS.items()],
    indirect=True,
)


@in_every_situation
async def test_statements_use_the_indexes_they_name(prepared: Bench) -> None:
    for statement in INDEXED:
        plans = await prepared.plans_of(statement)
        assert "Seq Scan" not in set().union(*map(kinds, plans)), statement.name
        assert set().union(*map(prepared.indexes_used, plans)) >= indexes_promised(statement), statement.name


@pytest.mark.invariant(9)
@in_every_situation
async def test_hot_statements_do_nothing_else(prepared: Bench) -> None:
    for statement in HOT:
        plan = await prepared.plan_of(statement)
        assert kinds(plan) <= {"Index Scan", "Index Only Scan"}, statement.name
        assert prepared.indexes_used(plan) == indexes_promised(statement), statement.name
        assert backlog_sorts(plan) == [], statement.name
        assert rows_read(plan) <= COUNT, statement.name


@in_every_situation
async def test_hot_functions_find_each_row_by_its_key_or_the_index_they_name(prepared: Bench) -> None:
    for statement in HOT_CALLS:
        others = {index for plan in await prepared.plans_of(statement) for index in prepared.indexes_used(plan)}
        assert {index for index in others if not index.endswith("_pkey")} == set(indexes_of(statement)), statement.name
    for statement in IN_HOT_FUNCTIONS:
        plan = await prepared.plan_of(statement)
        assert kinds(plan) <= {"Index Scan", "Index Only Scan"}, statement.name
        assert backlog_sorts(plan) == [], statement.name
        assert rows_read(plan) <= COUNT, statement.name


@pytest.mark.parametrize("steps", [each.replace("fill", "stage") for each in SITUATIONS.values()], ids=SITUATIONS)
async def test_who_looks_for_something_to_do_reads_nothing_that_is_staged(bench: Bench, steps: str) -> None:
    await bench.take(steps)
    if not bench.keeps_plans and "stage" not in steps:
        pytest.skip("this server plans each use anew, and for an empty table any plan will do")

    read = {}
    for statement in LOOKING:
        plan = await bench.plan_of(statement)
        assert "Seq Scan" not in kinds(plan), statement.name
        read[statement.name] = max(rows_read_of(plan, "ready"))
    assert read.pop("runs/waiting_lines") <= PRIORITIES_OF_TWO_LINES, "the next of each, to know when"
    assert read == {CLAIM.name: 0, CLAIM_BESIDE_OTHERS.name: 0, "queues/depths": 0}


@in_every_situation
async def test_lists_read_little_more_than_a_page_of_each_place_and_sort_no_backlog(prepared: Bench) -> None:
    for statement in LISTS:
        plan = await prepared.plan_of(statement)
        assert "Seq Scan" not in kinds(plan), statement.name
        assert rows_read(plan) <= LIST_ROWS, statement.name


async def _planned_while_empty(bench: Bench) -> Node:
    await bench.begin_anew()
    await bench.take("analyse, plan, fill")
    return await bench.plan_of(CLAIM)


async def test_without_steady_plans_a_claim_planned_on_an_empty_table_sorts_the_backlog(bench: Bench) -> None:
    """The control: this is what the settings of our connections prevent."""
    await bench.forget_settings()
    plan = await _planned_while_empty(bench)
    for _ in range(10):
        if "Seq Scan" in kinds(plan):
            break
        # The server had forgotten it, as it may while other tests make databases, and planned anew: once more.
        plan = await _planned_while_empty(bench)

    assert "Seq Scan" in kinds(plan)
    assert backlog_sorts(plan)
    assert rows_read(plan) >= RUNS


async def test_functions_are_part_of_the_plans_of_hot_statements(bench: Bench) -> None:
    """One that is not inlined is called for each run, which takes longer than all it computes."""
    await bench.take("fill")
    functions = await bench.functions()
    assert {"run_of", "special_of", "rank_now", "instant_text"} <= functions

    for statement in (*HOT, *IN_HOT_FUNCTIONS):
        plan = await bench.plan_of(statement)
        computed = " ".join(part for node in nodes(plan) for part in node.get("Output", ()))
        assert not {name for name in functions if f"{name}(" in computed}, statement.name


def test_the_statements_that_run_all_the_time_are_marked_hot() -> None:
    hot = {statement.name for statement in (*HOT, *HOT_CALLS)}
    assert hot >= {"runs/claim", "runs/promote", "schedules/fire", "leases/settle", "leases/close"}
