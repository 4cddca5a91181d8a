-- Change waiting runs of one lane wherever they wait, if their revision is still the one the caller saw (or none was seen),
-- and so their line; a new time may move them between `later` and `ready`. What is null stays as it is: see `changed_run`.
-- Answers with them. Last in line, where what waits elsewhere moves to.
create or replace function change_runs(
    lane smallint, runs uuid[], tenant int, seen int, present_line int, line int, new_priority smallint, due timestamptz,
    max_age double precision, new_codec smallint, new_payload bytea, new_tags text[], actor text, detail jsonb
) returns table (id uuid, line_id int, priority smallint, revision int, state run_state)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    from_later run_row[];
    from_gates run_row[];
    from_ready run_row[];
    were_ranked bigint[];
    changed run_row[];
    kept_held run_row[];
begin
    with gone as (
        delete from later where later.lane = change_runs.lane and later.id = any (change_runs.runs)
          and later.tenant_id = change_runs.tenant and later.revision = coalesce(change_runs.seen, later.revision)
          and later.line_id = coalesce(change_runs.present_line, later.line_id)
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into from_later from gone;
    -- A run that waits at a gate goes in line if that may be another gate, or another place there, by now: whoever claims
    -- it sees to it.
    with gone as (
        delete from held where held.lane = change_runs.lane and held.id = any (change_runs.runs)
          and held.tenant_id = change_runs.tenant and held.revision = coalesce(change_runs.seen, held.revision)
          and held.line_id = coalesce(change_runs.present_line, held.line_id) and held.gate is not null
          and held.gate not like '0!:%'   -- earlier runs of its schedule are the same whatever becomes of it
          and num_nonnulls(change_runs.line, change_runs.new_priority, change_runs.new_payload, change_runs.due) > 0
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into from_gates from gone;
    with touched as (
        update held set (line_id, priority, revision, due_at, expires_at, retry_until, codec, payload, tags) = (
            select become.line_id, become.priority, become.revision, become.due_at, become.expires_at,
                   become.retry_until, become.codec, become.payload, become.tags
            from changed_run(run_of({run by name of held}, ready_at => null), change_runs.line, change_runs.new_priority,
                             change_runs.due, change_runs.max_age, change_runs.new_codec, change_runs.new_payload,
                             change_runs.new_tags) as become)
        where held.lane = change_runs.lane and held.id = any (change_runs.runs)
          and held.tenant_id = change_runs.tenant and held.revision = coalesce(change_runs.seen, held.revision)
          and held.line_id = coalesce(change_runs.present_line, held.line_id)
          and held.reason <> 'children'   -- its handler has returned
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(touched.run) into kept_held from touched;
    with gone as (
        delete from ready where ready.lane = change_runs.lane and ready.id = any (change_runs.runs)
          and ready.tenant_id = change_runs.tenant and ready.revision = coalesce(change_runs.seen, ready.revision)
          and ready.line_id = coalesce(change_runs.present_line, ready.line_id)
        returning ready.rank, run_of({run by name}, ready_at => ready_at) as run)
    select array_agg(gone.run), array_agg(gone.rank) into from_ready, were_ranked from gone;

    changed := array(
        select changed_run(run, change_runs.line, change_runs.new_priority, change_runs.due, change_runs.max_age,
                           change_runs.new_codec, change_runs.new_payload, change_runs.new_tags)
        from unnest(from_ready || from_later || from_gates) as run);   -- those that have a rank first
    if num_nonnulls(change_runs.line, change_runs.new_payload) > 0 then   -- they may be under other limits by now
        perform free_slots(change_runs.lane, array(select run.id from unnest(changed) as run), 'succeeded');
    end if;
    insert into ready (lane, {run}, rank, ready_at, gates)
    select change_runs.lane, {run of run}, least(run.rank, rank_now()), least(run.ready_at, clock_now()),
           (select string_agg(slot.gate, E'\n' order by slot.place) from slot
            where slot.lane = change_runs.lane and slot.run_id = run.id)   -- still the right ones? Whoever claims it sees
    from rows from (unnest(were_ranked), unnest(changed)) as run (rank)   -- it may have been staged
    where run.due_at <= clock_now();
    insert into later (lane, {run}, gates)
    select change_runs.lane, {run of run},
           (select string_agg(slot.gate, E'\n' order by slot.place) from slot
            where slot.lane = change_runs.lane and slot.run_id = run.id)
    from unnest(changed) as run where run.due_at > clock_now();
    perform free_slots(change_runs.lane, array(select run.id from unnest(changed) as run where run.due_at > clock_now()),
                       'scheduled');

    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select change_runs.lane, run.tenant_id, change_runs.actor, 'run.change', run.id::text, change_runs.detail
    from unnest(changed || kept_held) as run;
    return query
    select run.id, run.line_id, run.priority, run.revision,
           case when run.due_at <= clock_now() then 'ready' else 'scheduled' end::run_state
    from unnest(changed) as run
    union all
    select run.id, run.line_id, run.priority, run.revision, 'held'::run_state from unnest(kept_held) as run;
end $$;
