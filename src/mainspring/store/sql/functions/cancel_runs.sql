-- End waiting runs of one lane at once, wherever they wait; answers with them. One that does not come back is running, has
-- ended, never was, or moved while we looked: the caller looks again. Last in line, where what waits elsewhere moves to.
create or replace function cancel_runs(
    lane smallint, runs uuid[], tenant int, actor text, reason text, detail jsonb
) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    from_later run_row[];
    from_held run_row[];
    from_ready run_row[];
    taken run_row[];
begin
    with gone as (
        delete from later where later.lane = cancel_runs.lane and later.id = any (cancel_runs.runs)
          and later.tenant_id = cancel_runs.tenant
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into from_later from gone;
    with gone as (
        delete from held where held.lane = cancel_runs.lane and held.id = any (cancel_runs.runs)
          and held.tenant_id = cancel_runs.tenant
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into from_held from gone;
    with gone as (
        delete from ready where ready.lane = cancel_runs.lane and ready.id = any (cancel_runs.runs)
          and ready.tenant_id = cancel_runs.tenant
        returning run_of({run by name}, ready_at => ready_at) as run)
    select array_agg(gone.run) into from_ready from gone;
    taken := from_later || from_held || from_ready;
    if taken is null then
        return;
    end if;

    insert into attempt (lane, run_id, {recorded}, ready_at, attempt, outcome, state, finished_at, error)
    select cancel_runs.lane, run.id, {recorded of run}, run.ready_at, 0, 'cancelled', 'cancelled', clock_now(),
           jsonb_build_object('code', 'cancelled', 'message', cancel_runs.reason)
    from unnest(taken) as run;
    perform end_runs(cancel_runs.lane, array(select run.id from unnest(taken) as run));
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select cancel_runs.lane, run.tenant_id, cancel_runs.actor, 'run.cancel', run.id::text,
           jsonb_build_object('reason', cancel_runs.reason) || cancel_runs.detail
    from unnest(taken) as run;
    return query select run.id from unnest(taken) as run;
end $$;
