-- A firing that ends a schedule locks it before its cursor, as everybody who changes a schedule does: else the two met in a
-- deadlock. What is staged for a day without a partition is taken back, too.
-- serves: 12

-- ── Firing ──────────────────────────────────────────────────────────────────────────────────────────────────
-- Decide the next instants of some schedules of one lane: each becomes a run or is skipped, and the cursor moves on. What
-- somebody else decided, or changed, meanwhile is passed over: cursors are compared first, and the ledger has one row per
-- instant. Separate statements, each of one lane: so Citus runs all of it where the lane lives. Rows are looked up one by
-- one (`limit 1`, arrays): a join or `exists`, planned while a table was empty, would read the whole lane for ever.
-- `templates` is what runs have in common: version of the job, line, priority, ages, overrides, headers.
create or replace function fire_schedules(
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
    ending uuid[] := '{}';
    ended uuid[];
begin
    -- What is over after this is changed itself: so it is locked before its cursor, as by everybody who changes a schedule.
    if array_position(following, null) is not null then
        ending := array(
            select schedule.id from schedule
            where schedule.lane = own and schedule.id = any (
                array(select item.schedule_id from unnest(schedules, following) as item (schedule_id, next_at)
                      where item.next_at is null))
            for update skip locked);
    end if;
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
        select schedule.version from schedule where schedule.lane = own and schedule.id = item.schedule_id limit 1) as found
    where item.next_at is not null or item.schedule_id = any (ending);
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

-- Take back the runs of one schedule whose instant has not come, wherever they wait: they were staged, and nobody has
-- started them. The cursor goes back to the earliest of them. Whoever calls holds the cursor's lock, if there is a cursor.
-- Only what is deleted here is forgotten by the ledger: whatever was claimed first has fired.
create or replace function withdraw_staged(lane int, schedule uuid, since timestamptz)
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
          and occurrence.nominal_at >= withdraw_staged.since and occurrence.due_at > clock_now())
    || array(
        select run_id from occurrence_past   -- no keeper has made a partition of that day
        where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
          and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.due_at > clock_now());
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
    select fired.nominal_at, fired.due_at into earliest from (
        select occurrence.nominal_at, occurrence.due_at from occurrence
        where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
          and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn)
        union all
        select occurrence_past.nominal_at, occurrence_past.due_at from occurrence_past
        where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
          and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.run_id = any (withdrawn)) as fired
    order by fired.nominal_at limit 1;
    delete from occurrence
    where occurrence.lane = own and occurrence.schedule_id = withdraw_staged.schedule
      and occurrence.nominal_at >= withdraw_staged.since and occurrence.run_id = any (withdrawn);
    delete from occurrence_past
    where occurrence_past.lane = own and occurrence_past.schedule_id = withdraw_staged.schedule
      and occurrence_past.nominal_at >= withdraw_staged.since and occurrence_past.run_id = any (withdrawn);
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)
    values (own, withdraw_staged.schedule, earliest.nominal_at, earliest.due_at, '')
    on conflict (lane, schedule_id) do update
        set nominal_at = excluded.nominal_at, due_at = excluded.due_at, revision = cursor.revision + 1;
    return cardinality(withdrawn);
end $$;
