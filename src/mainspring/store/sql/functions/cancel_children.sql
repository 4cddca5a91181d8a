-- End runs of one lane that were held until others had ended, because those ended otherwise than they should have. Answers
-- with them. One that somebody is changing just now stays.
create or replace function cancel_children(lane smallint, runs uuid[], errors jsonb[]) returns setof uuid
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
begin
    picked := array(
        select held.id from held
        where held.lane = cancel_children.lane and held.id = any (cancel_children.runs) and held.reason = 'parent'
        for update skip locked);
    if cardinality(picked) = 0 then
        return;
    end if;
    insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at, error)
    select lane, id, {recorded}, 0, 'cancelled', 'cancelled', clock_now(),
           cancel_children.errors[array_position(cancel_children.runs, held.id)]
    from held where held.lane = cancel_children.lane and held.id = any (picked);
    delete from held where held.lane = cancel_children.lane and held.id = any (picked);
    perform end_runs(cancel_children.lane, picked);
    return query select unnest(picked);
end $$;
