-- Note runs that were just made and are in line: whoever makes the next run of their schedule, or counts its failures, has to
-- know when they end. Each carries a mark, by which workers know that; with the gate at which later ones wait, if any may.
-- Those that have to wait for earlier ones go there.
create or replace function watch_schedule_runs(
    lane int, schedules uuid[], rules text[], pauses int[], instants timestamptz[], runs uuid[], waiting uuid[]
) returns void language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    own smallint := watch_schedule_runs.lane::smallint;
    made uuid[];
begin
    made := array(
        select ready.id from ready
        where ready.lane = own and ready.id = any (array(
            select item.run_id
            from unnest(watch_schedule_runs.rules, watch_schedule_runs.pauses, watch_schedule_runs.instants,
                        watch_schedule_runs.runs) as item (rule, pause_after, nominal_at, run_id)
            where (item.rule <> 'allow' or item.pause_after is not null) and item.nominal_at is not null)));
    insert into schedule_run (lane, run_id, schedule_id, pause_after)
    select own, item.run_id, item.schedule_id, item.pause_after
    from unnest(watch_schedule_runs.schedules, watch_schedule_runs.pauses, watch_schedule_runs.runs)
        as item (schedule_id, pause_after, run_id)
    where item.run_id = any (made);
    update ready set overrides = coalesce(ready.overrides, '{}') || jsonb_build_object(
        'schedule_gate', case when item.rule in ('allow', 'skip') then '' else '0!:' || item.schedule_id::text end)
    from unnest(watch_schedule_runs.schedules, watch_schedule_runs.rules, watch_schedule_runs.runs)
        as item (schedule_id, rule, run_id)
    where ready.lane = own and ready.id = any (made) and ready.id = item.run_id;
    if cardinality(watch_schedule_runs.waiting) > 0 then
        insert into held (lane, {run}, reason, gates, gate, turn)
        select own, {run of ready}, 'overlap', '0!:' || item.schedule_id::text, '0!:' || item.schedule_id::text,
               (date_part('epoch', item.nominal_at) * 1000000)::bigint
        from unnest(watch_schedule_runs.schedules, watch_schedule_runs.instants, watch_schedule_runs.runs)
            as item (schedule_id, nominal_at, run_id)
        cross join lateral (
            select * from ready where ready.lane = own and ready.id = item.run_id limit 1) as ready
        where item.run_id = any (watch_schedule_runs.waiting);
        delete from ready where ready.lane = own and ready.id = any (watch_schedule_runs.waiting);
    end if;
end $$;
