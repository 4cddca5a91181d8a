-- Decide the next instants of some schedules of one lane: each becomes a run or is skipped, and the cursor moves on. What
-- somebody else decided, or changed, meanwhile is passed over: cursors are compared first, and the ledger has one row per
-- instant. Separate statements, each of one lane: so Citus runs all of it where the lane lives. Rows are looked up one by
-- one (`limit 1`, arrays): a join or `exists`, planned while a table was empty, would read the whole lane for ever.
-- `templates` is what runs have in common: version of the job, line, priority, ages, overrides, headers, and whether all
-- who read them know the short form of which occurrence a run is for (`model/occurrence.py`).
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
    rules text[];
    pauses int[];
    are_watched boolean[];
    overlapping uuid[] := '{}';
    waiting uuid[] := '{}';
    past date[];
    ending uuid[] := '{}';
    ended uuid[];
    job_versions int[];
    line_ids int[];
    priorities smallint[];
    max_ages double precision[];
    start_limits double precision[];
    template_overrides jsonb[];
    template_headers jsonb[];
    are_packed boolean[];
    past_written bigint := 0;
    written bigint;
    is_all_ours boolean;
    coming int[];
    rooms int[];
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
           array_agg(found.version), array_agg(found.overlap), array_agg(found.pause_after_failures),
           array_agg(found.is_watched and item.nominal_at is not null)
    into schedules, fired, due, previous, runs, chosen, following, following_due, versions, rules, pauses, are_watched
    from unnest(schedules, revisions, expected, fired, due, previous, runs, chosen, following, following_due)
        as item (schedule_id, revision, expected_at, nominal_at, due_at, previous_at, run_id, template, next_at, next_due_at)
    cross join lateral (
        select from cursor
        where cursor.lane = own and cursor.schedule_id = item.schedule_id
          and cursor.revision = item.revision and cursor.nominal_at = item.expected_at
        limit 1 for update skip locked) as unchanged
    cross join lateral (
        select schedule.version, schedule.overlap, schedule.pause_after_failures,
               schedule.overlap <> 'allow' or schedule.pause_after_failures is not null as is_watched
        from schedule where schedule.lane = own and schedule.id = item.schedule_id limit 1) as found
    where (item.next_at is not null or item.schedule_id = any (ending))
      -- What depends on what happens until then is not decided ahead of its instant.
      and (not found.is_watched or item.due_at is null or item.due_at <= statement_now());
    if schedules is null then
        return;
    end if;

    -- What runs have in common is read once, not once per run.
    select array_agg(template.job_version order by place), array_agg(template.line_id order by place),
           array_agg(template.priority order by place), array_agg(template.max_age order by place),
           array_agg(least(template.max_age, template.start_within) order by place),
           array_agg(template.overrides order by place), array_agg(template.headers order by place),
           array_agg(template.packs order by place)
    into job_versions, line_ids, priorities, max_ages, start_limits, template_overrides, template_headers, are_packed
    from jsonb_array_elements(templates) with ordinality as document (value, place)
    cross join lateral jsonb_to_record(document.value) as template (
        job_version int, line_id int, priority smallint, max_age double precision, start_within double precision,
        overrides jsonb, headers jsonb, packs boolean);

    if true = any (are_watched) then
        select decided.skipped, decided.waiting into overlapping, waiting
        from decide_overlaps(fire_schedules.lane, schedules, rules, fired, runs) as decided;
    end if;
    if cardinality(overlapping) > 0 then   -- what was collapsed into them is skipped for the same reason
        skips := coalesce((
            select jsonb_agg(case when skip ->> 'run_id' = any (overlapping::text[])
                                  then skip || '{"run_id": null, "reason": "overlap"}' else skip end)
            from jsonb_array_elements(skips) as skip), '[]')
        || (select jsonb_agg(jsonb_build_object('schedule_id', item.schedule_id, 'first_at', item.nominal_at,
                                                'last_at', item.nominal_at, 'reason', 'overlap'))
            from unnest(schedules, fired, runs) as item (schedule_id, nominal_at, run_id)
            where item.run_id = any (overlapping));
        select array_agg(case when item.run_id = any (overlapping) then null else item.nominal_at end order by item.place)
        into fired
        from unnest(fired, runs) with ordinality as item (nominal_at, run_id, place);
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
        get diagnostics past_written = row_count;
    end if;
    insert into occurrence (lane, schedule_id, nominal_at, due_at, run_id, version)
    select own, item.schedule_id, item.nominal_at, item.due_at, item.run_id, item.version
    from unnest(schedules, fired, due, runs, versions) as item (schedule_id, nominal_at, due_at, run_id, version)
    where item.nominal_at is not null and (item.nominal_at at time zone 'UTC')::date <> all (past)
      and (select occurrence_past.run_id from occurrence_past
           where occurrence_past.lane = own and occurrence_past.schedule_id = item.schedule_id
             and occurrence_past.nominal_at = item.nominal_at limit 1) is null
    on conflict do nothing;
    get diagnostics written = row_count;
    is_all_ours := past_written + written = cardinality(array_remove(fired, null));

    coming := array(select cardinality(runs) from unnest(line_ids));   -- at most so many come to each line
    select room_at_marks(own, line_ids, priorities, coming, true) into rooms;

    -- Only what the ledger has accepted from us becomes a run: all of it, or else each is looked up.
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, expires_at, retry_until,
                       codec, payload, headers, tags, submitted_by, overrides, ready_at, rank)
    select own, item.run_id, schedule.tenant_id, schedule.job_id, job_versions[item.template], line_ids[item.template],
           priorities[item.template], item.due_at,
           item.due_at + start_limits[item.template] * interval '1 second',
           item.due_at + max_ages[item.template] * interval '1 second',
           schedule.codec, schedule.payload,
           coalesce(template_headers[item.template], '{}') || case
               when are_packed[item.template] then jsonb_build_object('@occurrence', concat_ws(
                   ' ', schedule.version, trim_scale(extract(epoch from item.nominal_at)),
                   coalesce(trim_scale(extract(epoch from item.nominal_at - item.previous_at))::text, '-'),
                   schedule.name)) || case when item.due_at = item.nominal_at then '{}' else jsonb_build_object(
                   '@due', trim_scale(extract(epoch from item.due_at - item.nominal_at))::text) end
               else jsonb_strip_nulls(jsonb_build_object(
                   'schedule', schedule.name, 'schedule_version', schedule.version::text,
                   'occurrence', instant_text(item.nominal_at),
                   'previous_occurrence', instant_text(item.previous_at),
                   'occurrence_due', instant_text(nullif(item.due_at, item.nominal_at)))) end,
           schedule.tags, 'schedule ' || schedule.name, template_overrides[item.template],
           greatest(item.due_at, clock_now()),
           -- What is written together stays together in line, so that a claim finds it on few pages: within a batch forty
           -- share a microsecond, and a herd, staged further ahead than usual, is ranked by when that was, the last first.
           case when item.due_at > clock_now()
                then (date_part('epoch', item.due_at) * 1000000)::bigint + 1000 + (item.place - 1) / 40
                     + greatest(0, (date_part('epoch', item.due_at - clock_now()) - 2) * 100)::bigint
                else rank_now() + (item.place - 1) % 1000 end
    from (
        select schedule_id, nominal_at, due_at, previous_at, run_id, number + 1 as template, place
        from unnest(schedules, fired, due, previous, runs, chosen) with ordinality
            as each (schedule_id, nominal_at, due_at, previous_at, run_id, number, place)
        where nominal_at is not null) as item
    cross join lateral (
        select * from schedule where schedule.lane = own and schedule.id = item.schedule_id limit 1) as schedule
    where is_all_ours or item.run_id = any (
        array(select occurrence.run_id from occurrence
              where occurrence.lane = own and occurrence.schedule_id = item.schedule_id
                and occurrence.nominal_at = item.nominal_at)
        || array(select occurrence_past.run_id from occurrence_past
                 where occurrence_past.lane = own and occurrence_past.schedule_id = item.schedule_id
                   and occurrence_past.nominal_at = item.nominal_at));

    if true = any (are_watched) then
        perform watch_schedule_runs(fire_schedules.lane, schedules, rules, pauses, fired, runs, waiting);
    end if;
    if rooms <> coming then
        perform set_aside_fired(own, runs, line_ids, priorities, rooms);
    end if;

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
    select line_ids[item.template + 1], priorities[item.template + 1], count(*)
    from unnest(fired, chosen) as item (nominal_at, template)
    where item.nominal_at is not null
    group by line_ids[item.template + 1], priorities[item.template + 1]
    union all
    select null, null, cardinality(overlapping) where cardinality(overlapping) > 0;   -- no line: instants that were skipped
end $$;
