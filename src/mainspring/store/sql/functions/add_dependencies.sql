-- Let new runs wait for runs of one lane. Answers with those of them that are unknown to the tenant; then nothing is written.
-- Locks nothing: it may be part of somebody's long transaction. Whoever is waited for and was not submitted together with
-- the new run (`is_new`) may have ended by the time that this is committed: `check_dependencies` looks again then.
create or replace function add_dependencies(lane smallint, tenant int, items jsonb) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    parents uuid[];
    known uuid[];
begin
    parents := array(
        select distinct item.parent from jsonb_to_recordset(add_dependencies.items) as item (parent uuid, is_new boolean)
        where not item.is_new);
    if cardinality(parents) > 0 then
        known := array(
            select ready.id from ready where ready.lane = add_dependencies.lane and ready.id = any (parents)
              and ready.tenant_id = add_dependencies.tenant);
        known := known || array(
            select later.id from later where later.lane = add_dependencies.lane and later.id = any (parents)
              and later.tenant_id = add_dependencies.tenant);
        known := known || array(
            select held.id from held where held.lane = add_dependencies.lane and held.id = any (parents)
              and held.tenant_id = add_dependencies.tenant);
        known := known || array(
            select dead.id from dead where dead.lane = add_dependencies.lane and dead.id = any (parents)
              and dead.tenant_id = add_dependencies.tenant);
        known := known || array(
            select run.id from lease cross join lateral unnest(lease.runs) as run
            where lease.lane = add_dependencies.lane and lease.ids && parents and run.id = any (parents)
              and run.tenant_id = add_dependencies.tenant);
        known := known || array(
            select attempt.run_id from attempt
            where attempt.lane = add_dependencies.lane and attempt.run_id = any (parents)
              and attempt.tenant_id = add_dependencies.tenant);
        return query select unnest(parents) except select unnest(known);
        if found then
            return;
        end if;
    end if;
    insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise, inputs, check_at, checks)
    select add_dependencies.lane, item.parent, item.child, item.lanes, item.condition, item.otherwise, item.inputs,
           case when item.is_new then clock_now() + interval '10 minutes' else clock_now() end,
           case when item.is_new then 10 else 0 end
    from jsonb_to_recordset(add_dependencies.items) as item (
        parent uuid, child uuid, lanes smallint[], condition text, otherwise text, inputs jsonb, is_new boolean)
    on conflict do nothing;   -- sent again
end $$;
