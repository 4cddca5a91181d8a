-- Cancel runs of one lane that wait for their first start, to make room for others; answers with them. One that somebody has
-- locked, or claimed, is passed over.
create or replace function drop_waiting_runs(
    lane smallint, runs uuid[], tenant int, actor text, reason text, detail jsonb
) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    in_later uuid[];
    in_held uuid[];
    in_ready uuid[];
begin
    in_later := array(
        select later.id from later
        where later.lane = drop_waiting_runs.lane and later.id = any (drop_waiting_runs.runs)
          and later.tenant_id = drop_waiting_runs.tenant and later.fence = 0 for update skip locked);
    in_held := array(
        select held.id from held
        where held.lane = drop_waiting_runs.lane and held.id = any (drop_waiting_runs.runs)
          and held.tenant_id = drop_waiting_runs.tenant and held.fence = 0 for update skip locked);
    in_ready := array(
        select ready.id from ready
        where ready.lane = drop_waiting_runs.lane and ready.id = any (drop_waiting_runs.runs)
          and ready.tenant_id = drop_waiting_runs.tenant and ready.fence = 0 for update skip locked);
    return query
    select dropped from cancel_runs(
        drop_waiting_runs.lane, in_later || in_held || in_ready, drop_waiting_runs.tenant, drop_waiting_runs.actor,
        drop_waiting_runs.reason, drop_waiting_runs.detail) as dropped;
end $$;
