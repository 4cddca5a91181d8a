-- Move runs of one lane that are due from `later` into the line, the most urgent first; within the batch they keep their
-- order. What has gates goes to wait there, and what comes to a line that has too many at the gate of its mark. Answers how many
-- runs of which lines and priorities are in line now; and of those that wait at gates, at which.
create or replace function promote_runs(lane smallint, priorities smallint[], fronts timestamptz[], count int)
returns table (line_id int, priority smallint, runs bigint, due_at timestamptz, gates text[])
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
    their_lines int[];
    their_priorities smallint[];
    in_line bigint;
    full_gates text[];
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

    select array_agg(mark_gate(promote_runs.lane, wanted.line_id, wanted.priority)) into full_gates
    from (
        select array_agg(each.line_id) as lines, array_agg(each.priority) as priorities
        from (select distinct line_id, priority from unnest(their_lines, their_priorities) as run (line_id, priority)
              where run.line_id is not null) as each) as due
    cross join lateral unnest(due.lines, due.priorities, beyond_marks(promote_runs.lane, due.lines, due.priorities))
        as wanted (line_id, priority, is_full)
    where wanted.is_full;
    if full_gates is not null then
        update later set gates = mark_gate(promote_runs.lane, later.line_id, later.priority)
        where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is null
          and mark_gate(promote_runs.lane, later.line_id, later.priority) = any (full_gates);
    end if;

    insert into ready (lane, {run}, rank)
    select lane, {run}, rank_now() + row_number() over (order by due_at) - 1
    from later where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is null;
    get diagnostics in_line = row_count;
    if in_line < cardinality(picked) then
        insert into held (lane, {run}, reason, gates, gate, turn)
        select lane, {run}, case when gates = any (full_gates) then 'backpressure' else 'limit' end,
               gates, split_part(gates, E'\n', 1),
               case when gates = any (full_gates) then (date_part('epoch', due_at) * 1000000)::bigint   -- its rank, in time
                    -- If it kept its slot of that gate, it comes before all others.
                    else coalesce((select 0::bigint from slot
                                   where slot.lane = promote_runs.lane and slot.run_id = later.id
                                     and slot.gate is not distinct from split_part(later.gates, E'\n', 1) limit 1),
                                  turn_of(split_part(later.gates, E'\n', 1), priority, submitted_at)) end
        from later where later.lane = promote_runs.lane and later.id = any (picked) and later.gates is not null;
    end if;
    return query
    with gone as (
        delete from later where later.lane = promote_runs.lane and later.id = any (picked)
        returning later.line_id, later.priority, later.due_at, split_part(later.gates, E'\n', 1) as gate)
    select gone.line_id, gone.priority, count(*), max(gone.due_at),
           array_agg(distinct gone.gate) filter (where gone.gate is not null)
    from gone group by gone.line_id, gone.priority, gone.gate is null;
end $$;
