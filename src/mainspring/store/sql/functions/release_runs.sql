-- Put runs of one lane that were held for want of a handler back in line, because workers know their jobs by now. Each job
-- and line comes with the seconds that its runs stay held at least. Answers with the lines and priorities that got some.
create or replace function release_runs(
    lane smallint, jobs int[], lines int[], pauses double precision[], reason text, count int
) returns table (line_id int, priority smallint, runs bigint)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    picked uuid[];
begin
    picked := array(
        select candidate.id
        from unnest(release_runs.jobs, release_runs.lines, release_runs.pauses) as known (job_id, line_id, pause)
        cross join lateral (
            select held.id from held
            where held.lane = release_runs.lane and held.job_id = known.job_id
              and held.line_id is not distinct from known.line_id   -- not `=`: held_list_idx crawls over those at limits
              and held.reason = release_runs.reason
              and held.due_at <= clock_now()   -- someone may have put it off while it was held
              and held.held_at <= clock_now() - known.pause * interval '1 second'
            order by held.id limit release_runs.count for update skip locked) as candidate
        limit release_runs.count);
    if cardinality(picked) = 0 then
        return;
    end if;

    insert into ready (lane, {run}, gates)
    select lane, {run}, 
           (select string_agg(slot.gate, E'\n' order by slot.place) from slot
            where slot.lane = release_runs.lane and slot.run_id = held.id)
    from held where held.lane = release_runs.lane and held.id = any (picked);
    return query
    with gone as (
        delete from held where held.lane = release_runs.lane and held.id = any (picked)
        returning held.line_id, held.priority)
    select gone.line_id, gone.priority, count(*) from gone group by gone.line_id, gone.priority;
end $$;
