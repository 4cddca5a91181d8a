-- End dead letters of one lane for good, each once; answers with them. Their payload stays with history, as with every run
-- that ended.
create or replace function purge_runs(
    lane smallint, runs uuid[], tenant int, actor text, reason text, detail jsonb
) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    taken run_row[];
begin
    with gone as (
        delete from dead where dead.lane = purge_runs.lane and dead.id = any (purge_runs.runs)
          and dead.tenant_id = purge_runs.tenant
        returning run_of({run by name}, ready_at => null) as run)
    select array_agg(gone.run) into taken from gone;
    if taken is null then
        return;
    end if;

    insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at, error)
    select purge_runs.lane, run.id, {recorded of run}, 0, 'cancelled', 'cancelled', clock_now(),
           jsonb_build_object('code', 'purged', 'message', purge_runs.reason)
    from unnest(taken) as run;
    perform end_runs(purge_runs.lane, array(select run.id from unnest(taken) as run));
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select purge_runs.lane, run.tenant_id, purge_runs.actor, 'run.purge', run.id::text, purge_runs.detail
    from unnest(taken) as run;
    return query select run.id from unnest(taken) as run;
end $$;
