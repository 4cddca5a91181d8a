-- Runs of one lane whose handlers have returned, and whose children have all ended: those succeed with what their handlers
-- returned, these become dead letters because of a child. One that somebody acts on just now stays. Answers with those that went.
create or replace function join_children(lane smallint, succeeded uuid[], failed uuid[], errors jsonb[])
returns table (run_id uuid, state run_state)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    ended uuid[];
    buried uuid[];
begin
    picked := array(
        select held.id from held
        where held.lane = join_children.lane and held.id = any (join_children.succeeded || join_children.failed)
          and held.reason = 'children'
        for update skip locked);
    ended := array(select run.id from unnest(picked) as run (id) where run.id = any (join_children.succeeded));
    buried := array(select run.id from unnest(picked) as run (id) where run.id = any (join_children.failed));
    if cardinality(ended) > 0 then
        insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at, result)
        select lane, id, {recorded}, 0, 'succeeded', 'succeeded', clock_now(), held.result
        from held where held.lane = join_children.lane and held.id = any (ended);
        delete from held where held.lane = join_children.lane and held.id = any (ended);
        perform end_runs(join_children.lane, ended);
    end if;
    if cardinality(buried) > 0 then
        insert into dead (lane, {run except expires_at}, expires_at)
        select lane, {run except expires_at}, held.retry_until
        from held where held.lane = join_children.lane and held.id = any (buried);
        insert into attempt (lane, run_id, {recorded except payload}, attempt, outcome, state, finished_at, error)
        select lane, id, {recorded except payload}, 0, 'failed', 'dead', clock_now(),
               join_children.errors[array_position(join_children.failed, held.id)]
        from held where held.lane = join_children.lane and held.id = any (buried);
        delete from held where held.lane = join_children.lane and held.id = any (buried);
        perform free_slots(join_children.lane, buried, 'dead');
        perform tell_children(join_children.lane, buried);
        perform tell_chains(join_children.lane, buried);
    end if;
    return query
    select run.id, 'succeeded'::run_state from unnest(ended) as run (id)
    union all select run.id, 'dead'::run_state from unnest(buried) as run (id);
end $$;
