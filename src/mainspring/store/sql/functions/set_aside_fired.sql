-- Runs of one lane were fired into lines that have too many already: let them wait in `later`, from where they come in line at
-- the pace of the workers. Nobody has seen them in line.
create or replace function set_aside_fired(lane smallint, runs uuid[], lines int[], priorities smallint[]) returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    full_gates text[];
    picked uuid[];
begin
    select array_agg(mark_gate(set_aside_fired.lane, wanted.line_id, wanted.priority)) into full_gates
    from unnest(set_aside_fired.lines, set_aside_fired.priorities,
                beyond_marks(set_aside_fired.lane, set_aside_fired.lines, set_aside_fired.priorities))
        as wanted (line_id, priority, is_full)
    where wanted.is_full;
    if full_gates is null then
        return;
    end if;
    picked := array(
        select found.id from unnest(set_aside_fired.runs) as fired (id) cross join lateral (
            select ready.id, ready.line_id, ready.priority from ready
            where ready.lane = set_aside_fired.lane and ready.id = fired.id
            limit 1) as found   -- one by one, as in fire_schedules
        -- Not in there: that a run has a line would let the index of claims look right, of which only the lane is known.
        where mark_gate(set_aside_fired.lane, found.line_id, found.priority) = any (full_gates));
    insert into later (lane, {run}, gates)
    select lane, {run}, gates
    from unnest(picked) as one (run_id) cross join lateral (
        select * from ready where ready.lane = set_aside_fired.lane and ready.id = one.run_id limit 1) as ready;
    delete from ready where ready.lane = set_aside_fired.lane and ready.id = any (picked);
end $$;
