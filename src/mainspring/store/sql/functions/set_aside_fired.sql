-- Runs of one lane were fired, more than there was room for in some of their lines: let all but the first of these wait in
-- `later`, from where they come in line at the pace of the workers. Nobody has seen them in line.
create or replace function set_aside_fired(lane smallint, runs uuid[], lines int[], priorities smallint[], rooms int[])
returns void
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
begin
    picked := array(
        select numbered.id
        from (
            select found.id, found.line_id, found.priority,
                   row_number() over (partition by found.line_id, found.priority order by found.due_at, found.id) as number
            from unnest(set_aside_fired.runs) as fired (id) cross join lateral (
                select ready.id, ready.line_id, ready.priority, ready.due_at from ready
                where ready.lane = set_aside_fired.lane and ready.id = fired.id
                limit 1) as found) as numbered   -- one by one, as in fire_schedules
        join (
            select distinct each.line_id, each.priority, each.room
            from unnest(set_aside_fired.lines, set_aside_fired.priorities, set_aside_fired.rooms)
                as each (line_id, priority, room)) as mark
          on mark.line_id = numbered.line_id and mark.priority = numbered.priority
        where numbered.number > mark.room);
    insert into later (lane, {run}, gates)
    select lane, {run}, gates
    from unnest(picked) as one (run_id) cross join lateral (
        select * from ready where ready.lane = set_aside_fired.lane and ready.id = one.run_id limit 1) as ready;
    delete from ready where ready.lane = set_aside_fired.lane and ready.id = any (picked);
end $$;
