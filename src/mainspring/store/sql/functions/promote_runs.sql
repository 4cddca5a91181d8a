-- Move runs of one lane that are due from `later` into the line, the most urgent first; within the batch they keep their
-- order. What has gates goes to wait there, and what its line has no room for, up to the mark, at the gate of that: the last of
-- the batch. Answers how many runs of which lines and priorities are in line now; and of those that wait at gates, at which.
create or replace function promote_runs(lane smallint, priorities smallint[], fronts timestamptz[], count int)
returns table (line_id int, priority smallint, runs bigint, due_at timestamptz, gates text[])
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    their_lines int[];
    their_priorities smallint[];
    due_lines int[];
    due_priorities smallint[];
    coming int[];
    rooms int[];
    full_gates text[] := '{}';
    picked_beyond uuid[] := '{}';
    in_line bigint;
begin
    select array_agg(candidate.id), array_agg(candidate.line_id), array_agg(candidate.priority)
    into picked, their_lines, their_priorities
    from (
        select found.id, case when found.gates is null then found.line_id end as line_id, found.priority
        from unnest(promote_runs.priorities, promote_runs.fronts) as front (priority, due_at)
        cross join lateral (
            select later.id, later.line_id, later.priority, later.gates from later
            where later.lane = promote_runs.lane and later.priority = front.priority
              and later.due_at >= front.due_at and later.due_at <= clock_now()
            order by later.due_at limit promote_runs.count for update skip locked) as found
        limit promote_runs.count) as candidate;
    if picked is null then
        return;
    end if;

    select due.lines, due.priorities, due.runs,
           room_at_marks(promote_runs.lane, due.lines, due.priorities, due.runs, false)
    into due_lines, due_priorities, coming, rooms
    from (
        select array_agg(each.line_id) as lines, array_agg(each.priority) as priorities, array_agg(each.runs) as runs
        from (select run.line_id, run.priority, count(*)::int as runs
              from unnest(their_lines, their_priorities) as run (line_id, priority)
              where run.line_id is not null group by run.line_id, run.priority) as each) as due;
    if rooms <> coming then
        -- Each of several keepers would fill the whole room: here one comes after the other, and looks again. 0 is no line.
        perform pg_advisory_xact_lock(1836253184 + promote_runs.lane, 0);
        select room_at_marks(promote_runs.lane, due_lines, due_priorities, coming, false) into rooms;
        full_gates := array(
            select mark_gate(promote_runs.lane, due.line_id, due.priority)
            from unnest(due_lines, due_priorities) as due (line_id, priority));
        picked_beyond := array(
            select numbered.id
            from (
                select later.id, later.line_id, later.priority,
                       row_number() over (partition by later.line_id, later.priority order by later.due_at, later.id) as number
                from later
                where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is null) as numbered
            join unnest(due_lines, due_priorities, rooms) as mark (line_id, priority, room)
              on mark.line_id = numbered.line_id and mark.priority = numbered.priority
            where numbered.number > mark.room);
        update later set gates = mark_gate(promote_runs.lane, later.line_id, later.priority)
        where later.lane = promote_runs.lane and later.id = any (picked_beyond);
    end if;

    insert into ready (lane, {run}, rank)
    select lane, {run}, rank_now() + row_number() over (order by due_at) - 1
    from later where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is null;
    get diagnostics in_line = row_count;
    if cardinality(picked_beyond) > 0 then   -- with the ranks that they would have had, which are behind those of the others
        insert into held (lane, {run}, reason, gates, gate, turn)
        select lane, {run}, 'backpressure', gates, gates, rank_now() + in_line + row_number() over (order by due_at, id) - 1
        from later where later.lane = promote_runs.lane and later.id = any (picked_beyond);
    end if;
    if in_line + cardinality(picked_beyond) < cardinality(picked) then
        insert into held (lane, {run}, reason, gates, gate, turn)
        select lane, {run}, 'limit', gates, split_part(gates, E'\n', 1),
               -- If it kept its slot of that gate, it comes before all others.
               coalesce((select 0::bigint from slot
                         where slot.lane = promote_runs.lane and slot.run_id = later.id
                           and slot.gate is not distinct from split_part(later.gates, E'\n', 1) limit 1),
                        turn_of(split_part(later.gates, E'\n', 1), priority, submitted_at))
        from later
        where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is not null
          and later.gates <> all (full_gates);
    end if;
    return query
    with gone as (
        delete from later where later.lane = promote_runs.lane and later.id = any (picked)
        returning later.line_id, later.priority, later.due_at, split_part(later.gates, E'\n', 1) as gate)
    select gone.line_id, gone.priority, count(*), max(gone.due_at),
           array_agg(distinct gone.gate) filter (where gone.gate is not null)
    from gone group by gone.line_id, gone.priority, gone.gate is null;
end $$;
