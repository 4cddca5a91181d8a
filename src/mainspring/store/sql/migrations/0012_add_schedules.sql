-- Schedules: what they are, which instant is next, which run each instant became, and the one act that fires them.
-- A run may be staged: put into `ready` ahead of its instant. Programs that know nothing of that would start it early, so
-- they are locked out; while some that started before are still there, nothing is staged.
-- serves: 12

drop table occurrence;   -- nobody has written it

create type schedule_state as enum ('active', 'paused', 'done');

-- In the lane of its tenant and name, so that one lane knows all about it; its runs live there, too.
create table schedule (
    lane smallint not null,
    id uuid not null,
    tenant_id int not null,
    name text collate "C" not null,             -- so that names with one prefix stand together, everywhere
    job_id int not null,
    version int not null default 1,             -- every edit is one more; `schedule_version` keeps the older ones
    spec text not null,                         -- when: as schedule/document.py writes it, equal for equal schedules
    codec smallint not null default 0,
    payload bytea not null,
    options jsonb not null default '{}',        -- how its runs differ from what the job says
    tags text[],
    catch_up text not null default 'latest'
        constraint catch_up_is_a_known_rule check (catch_up in ('latest', 'all', 'earliest', 'none')),
    catch_up_seconds double precision not null default 86400,
    is_declared boolean not null default false, -- in an application's code; else it was made at run time
    state schedule_state not null default 'active',
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    paused_until timestamptz,
    created_at timestamptz not null default clock_now(),
    created_by text not null,
    changed_at timestamptz not null default clock_now(),
    changed_by text not null,
    primary key (lane, id),
    constraint a_pause_says_who check ((state = 'paused') = (paused_at is not null and paused_by is not null))
);
-- `is not null` here and below: see `ready` in schema.sql.
create unique index schedule_name_idx on schedule (lane, tenant_id, name) where name is not null;
create index schedule_job_idx on schedule (lane, job_id, name) where job_id is not null;
create index schedule_declared_idx on schedule (lane, tenant_id, name) where is_declared;

-- What a schedule was before an edit, or before it was deleted.
create table schedule_version (
    lane smallint not null,
    schedule_id uuid not null,
    version int not null,
    tenant_id int not null,
    name text collate "C" not null,
    job_id int not null,
    spec text not null,
    codec smallint not null,
    payload bytea not null,
    options jsonb not null,
    tags text[],
    catch_up text not null,
    catch_up_seconds double precision not null,
    is_declared boolean not null,
    changed_at timestamptz not null,            -- in force from then on
    changed_by text not null,
    replaced_at timestamptz not null default clock_now(),   -- and until then
    is_deleted boolean not null default false,
    primary key (lane, schedule_id, version)
);
create index schedule_version_name_idx on schedule_version (lane, tenant_id, name, replaced_at);

-- Which instant of a schedule is the next to be decided, and when it is due: null while the schedule is paused.
-- The revision changes with everything that makes a decision stale that was computed before.
create table cursor (
    lane smallint not null,
    schedule_id uuid not null,
    revision int not null default 0,
    nominal_at timestamptz not null,
    due_at timestamptz,
    tzdata text not null,                       -- the release of the time zone database that computed it
    primary key (lane, schedule_id)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
create index cursor_due_idx on cursor (lane, due_at) where due_at is not null;

-- One occurrence, at most one run, ever: this row appears with the run, in one transaction, on every path.
create table occurrence (
    lane smallint not null,
    schedule_id uuid not null,
    nominal_at timestamptz not null,
    due_at timestamptz not null,
    run_id uuid not null,
    version int not null,
    fired_at timestamptz not null default clock_now(),
    primary key (lane, schedule_id, nominal_at)
) partition by range (nominal_at);

-- The same for days that have no partition, and never will have one: they were over before the keeper came.
create table occurrence_past (
    lane smallint not null,
    schedule_id uuid not null,
    nominal_at timestamptz not null,
    due_at timestamptz not null,
    run_id uuid not null,
    version int not null,
    fired_at timestamptz not null default clock_now(),
    primary key (lane, schedule_id, nominal_at)
);

-- Instants that became no run of their own, from the first to the last of them, and why.
create table skipped (
    lane smallint not null,
    schedule_id uuid not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    reason text not null,
    run_id uuid,                                -- into which they were collapsed
    version int not null,
    decided_at timestamptz not null default clock_now(),
    primary key (lane, schedule_id, first_at)
);

-- One incarnation of a scheduler process. Heartbeats are counters: the others judge by their own clocks whether they move.
create table scheduler (
    id uuid primary key,
    beat bigint not null default 0,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null default clock_now(),
    beat_at timestamptz not null default clock_now()    -- for people; nothing is decided by it
);

-- Whether a worker leaves staged runs alone until their instant.
alter table worker add column waits_for_rank boolean not null default false;

-- What has a rank beyond this is staged: it may not be claimed yet. A millisecond ahead, because runs that become ready
-- together are ranked a microsecond apart; so a staged run has the rank of its instant and a millisecond more.
create function rank_bound() returns bigint language sql stable parallel safe
    as 'select (date_part(''epoch'', clock_now()) * 1000000)::bigint + 1000';

-- ── Firing ──────────────────────────────────────────────────────────────────────────────────────────────────
-- Decide the next instants of some schedules of one lane: each becomes a run or is skipped, and the cursor moves on. What
-- somebody else decided, or changed, meanwhile is passed over: cursors are compared first, and the ledger has one row per
-- instant. Separate statements, each of one lane: so Citus runs all of it where the lane lives. Rows are looked up one by
-- one (`limit 1`, arrays): a join or `exists`, planned while a table was empty, would read the whole lane for ever.
-- `templates` is what runs have in common: version of the job, line, priority, ages, overrides, headers.
create function fire_schedules(
    lane int, schedules uuid[], revisions int[], expected timestamptz[], fired timestamptz[], due timestamptz[],
    previous timestamptz[], runs uuid[], chosen int[], following timestamptz[], following_due timestamptz[],
    templates jsonb, skips jsonb, tzdata text
) returns table (line_id int, priority smallint, runs_fired bigint)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := fire_schedules.lane::smallint;
    versions int[];
    past date[];
    ended uuid[];
begin
    -- From here on, only those whose cursor is where it was seen; it stays there, for it is locked.
    select array_agg(item.schedule_id), array_agg(item.nominal_at), array_agg(item.due_at), array_agg(item.previous_at),
           array_agg(item.run_id), array_agg(item.template), array_agg(item.next_at), array_agg(item.next_due_at),
           array_agg(found.version)
    into schedules, fired, due, previous, runs, chosen, following, following_due, versions
    from unnest(schedules, revisions, expected, fired, due, previous, runs, chosen, following, following_due)
        as item (schedule_id, revision, expected_at, nominal_at, due_at, previous_at, run_id, template, next_at, next_due_at)
    cross join lateral (
        select from cursor
        where cursor.lane = own and cursor.schedule_id = item.schedule_id
          and cursor.revision = item.revision and cursor.nominal_at = item.expected_at
        limit 1 for update skip locked) as unchanged
    cross join lateral (
        select schedule.version from schedule where schedule.lane = own and schedule.id = item.schedule_id limit 1) as found;
    if schedules is null then
        return;
    end if;

    past := array(
        select day from (select distinct (instant at time zone 'UTC')::date as day from unnest(fired) as instant) as days
        where to_regclass('occurrence_' || to_char(day, 'YYYYMMDD')) is null and day is not null);
    if cardinality(past) > 0 then
        insert into occurrence_past (lane, schedule_id, nominal_at, due_at, run_id, version)
        select own, item.schedule_id, item.nominal_at, item.due_at, item.run_id, item.version
        from unnest(schedules, fired, due, runs, versions) as item (schedule_id, nominal_at, due_at, run_id, version)
        where (item.nominal_at at time zone 'UTC')::date = any (past)
        on conflict do nothing;
    end if;
    insert into occurrence (lane, schedule_id, nominal_at, due_at, run_id, version)
    select own, item.schedule_id, item.nominal_at, item.due_at, item.run_id, item.version
    from unnest(schedules, fired, due, runs, versions) as item (schedule_id, nominal_at, due_at, run_id, version)
    where item.nominal_at is not null and (item.nominal_at at time zone 'UTC')::date <> all (past)
      and (select occurrence_past.run_id from occurrence_past
           where occurrence_past.lane = own and occurrence_past.schedule_id = item.schedule_id
             and occurrence_past.nominal_at = item.nominal_at limit 1) is null
    on conflict do nothing;

    -- Only what the ledger has accepted from us becomes a run.
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, retry_until,
                       codec, payload, headers, tags, submitted_by, overrides, ready_at, rank)
    select own, item.run_id, schedule.tenant_id, schedule.job_id, template.job_version, template.line_id,
           template.priority, item.due_at,
           item.due_at + least(template.max_age, template.start_within) * interval '1 second',
           item.due_at + template.max_age * interval '1 second',
           schedule.codec, schedule.payload,
           coalesce(template.headers, '{}') || jsonb_strip_nulls(jsonb_build_object(
               'schedule', schedule.name, 'schedule_version', schedule.version::text,
               'occurrence', instant_text(item.nominal_at), 'previous_occurrence', instant_text(item.previous_at))),
           schedule.tags, 'schedule ' || schedule.name, template.overrides,
           greatest(item.due_at, clock_now()),
           case when item.due_at > clock_now() then (date_part('epoch', item.due_at) * 1000000)::bigint + 1000
                else rank_now() end + (item.place - 1) % 1000
    from unnest(schedules, fired, due, previous, runs, chosen) with ordinality
        as item (schedule_id, nominal_at, due_at, previous_at, run_id, template, place)
    cross join lateral jsonb_to_record(templates -> item.template) as template (
        job_version int, line_id int, priority smallint, max_age double precision, start_within double precision,
        overrides jsonb, headers jsonb)
    cross join lateral (
        select * from schedule where schedule.lane = own and schedule.id = item.schedule_id limit 1) as schedule
    where item.run_id = any (
        array(select occurrence.run_id from occurrence
              where occurrence.lane = own and occurrence.schedule_id = item.schedule_id
                and occurrence.nominal_at = item.nominal_at)
        || array(select occurrence_past.run_id from occurrence_past
                 where occurrence_past.lane = own and occurrence_past.schedule_id = item.schedule_id
                   and occurrence_past.nominal_at = item.nominal_at));

    if jsonb_array_length(skips) > 0 then
        insert into skipped (lane, schedule_id, first_at, last_at, reason, run_id, version)
        select own, skip.schedule_id, skip.first_at, skip.last_at, skip.reason, skip.run_id, item.version
        from jsonb_to_recordset(skips) as skip (
            schedule_id uuid, first_at timestamptz, last_at timestamptz, reason text, run_id uuid)
        join unnest(schedules, versions) as item (schedule_id, version) on item.schedule_id = skip.schedule_id
        on conflict do nothing;
    end if;

    ended := array(
        select item.schedule_id from unnest(schedules, following) as item (schedule_id, nominal_at)
        where item.nominal_at is null);
    if cardinality(ended) > 0 then
        update schedule set state = 'done' where schedule.lane = own and schedule.id = any (ended);
        delete from cursor where cursor.lane = own and cursor.schedule_id = any (ended);
    end if;
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)   -- they are all there: it is a look-up by the key
    select own, item.schedule_id, item.nominal_at, item.due_at, fire_schedules.tzdata
    from unnest(schedules, following, following_due) as item (schedule_id, nominal_at, due_at)
    where item.nominal_at is not null
    on conflict (lane, schedule_id) do update
        set nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata = excluded.tzdata;

    return query
    select template.line_id, template.priority, count(*)
    from unnest(fired, chosen) as item (nominal_at, template)
    cross join lateral jsonb_to_record(templates -> item.template) as template (line_id int, priority smallint)
    where item.nominal_at is not null
    group by template.line_id, template.priority;
end $$;

-- As headers say an instant: ISO 8601 in UTC. Stable, as to_char is: else it would be a call per run, and no part of a plan.
create function instant_text(instant timestamptz) returns text language sql stable parallel safe as $$
    select to_char(instant at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- Take back the runs of one schedule whose instant has not come, wherever they wait: they were staged, and nobody has
-- started them. The cursor goes back to the earliest of them. Whoever calls holds the cursor's lock, if there is a cursor.
-- Only what is deleted here is forgotten by the ledger: whatever was claimed first has fired.
create function withdraw_staged(lane int, schedule uuid, since timestamptz)
returns int language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := withdraw_staged.lane::smallint;
    staged uuid[];
    withdrawn uuid[] := '{}';
    run record;
    earliest record;
begin
    staged := array(
        select run_id from occurrence
        where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
          and occurrence.nominal_at >= withdraw_staged.since and occurrence.due_at > clock_now());
    loop
        for run in delete from ready where ready.lane = own and ready.id = any (staged) and ready.rank > rank_bound()
                   and ready.first_started_at is null returning ready.id loop
            withdrawn := withdrawn || run.id;
        end loop;
        for run in delete from later where later.lane = own and later.id = any (staged) and later.due_at > clock_now()
                   and later.first_started_at is null returning later.id loop
            withdrawn := withdrawn || run.id;
        end loop;
        -- Who changes a run writes it anew, and a deletion that waited for that does not see the new row.
        exit when not exists (select from ready where ready.lane = own and ready.id = any (staged)
                              and ready.rank > rank_bound() and ready.first_started_at is null)
              and not exists (select from later where later.lane = own and later.id = any (staged)
                              and later.due_at > clock_now() and later.first_started_at is null);
    end loop;
    if cardinality(withdrawn) = 0 then
        return 0;
    end if;
    select occurrence.nominal_at, occurrence.due_at into earliest from occurrence
    where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
      and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn)
    order by occurrence.nominal_at limit 1;
    delete from occurrence
    where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
      and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn);
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)
    values (own, withdraw_staged.schedule, earliest.nominal_at, earliest.due_at, '')
    on conflict (lane, schedule_id) do update
        set nominal_at = excluded.nominal_at, due_at = excluded.due_at, revision = cursor.revision + 1;
    return cardinality(withdrawn);
end $$;

-- ── Partitions ──────────────────────────────────────────────────────────────────────────────────────────────
create or replace function add_history_partition(day date) returns boolean
language plpgsql security definer
set search_path = mainspring, pg_temp set lock_timeout = '2s' set timezone = 'UTC' as $$
declare
    parent text;
    partition_name text;
    has_made_one boolean := false;
begin
    if day is null or abs(day - clock_now()::date) > 40 then
        raise exception 'no partition of history is made for %: it is more than 40 days from today', day
            using errcode = 'invalid_parameter_value';
    end if;
    foreach parent in array array['attempt', 'log', 'occurrence'] loop
        partition_name := parent || '_' || to_char(day, 'YYYYMMDD');
        if to_regclass(partition_name) is null then
            execute format('create table %I (like %I including defaults including constraints including indexes)',
                           partition_name, parent);
            execute format('alter table %I attach partition %I for values from (%L) to (%L)',
                           parent, partition_name, day::timestamptz, (day + 1)::timestamptz);
            has_made_one := true;
        end if;
    end loop;
    return has_made_one;
exception when duplicate_table or unique_violation or duplicate_object then
    return false;   -- another keeper made it at the same moment
end $$;
