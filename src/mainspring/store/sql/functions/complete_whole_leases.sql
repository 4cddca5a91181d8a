-- Remove leases of one lane that are this worker's, and of which nothing was settled, and record that all their runs
-- succeeded. Starts, ends (microseconds since 2000) and results are those of all the leases, one lease after the other;
-- `sizes` says how many runs each has. No results at all: all are null. Answers which leases there were: about the others
-- the worker has to look closer. One by one, in the order given, which is the one in which everybody locks leases: no
-- waiting in a circle.
-- Starts and ends are arrays written as text: the driver takes five times as long to make an array of numbers, and Citus
-- cannot pass on a call that turns text into one.
-- Of a lease's runs that are alike in all that lists ask for, the first is in attempt_job_idx and names them all. In most
-- leases all are alike, and their ids are at hand: to group them would take as long as it saves.
-- After the leases, the answer names the runs that wait for some of these.
create or replace function complete_whole_leases(
    lane smallint, worker uuid, leases uuid[], sizes int[], starts text, ends text, results bytea[]
) returns uuid[] language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    all_starts bigint[] := complete_whole_leases.starts::bigint[];
    all_ends bigint[] := complete_whole_leases.ends::bigint[];
    completed uuid[] := '{}';
    number int := 0;
    before int := 0;
    this uuid;
    size int;
    lease_claimed_at timestamptz;
    lease_runs run_row[];
    lease_ids uuid[];
    example run_row;
    are_alike boolean;
    ended uuid[] := '{}';
    children uuid[] := '{}';
begin
    foreach this in array leases loop
        number := number + 1;
        size := sizes[number];
        delete from lease
        where lease.lane = complete_whole_leases.lane and lease.id = this
          and worker_id is not distinct from worker   -- not `=`: lease_worker_idx crawls over dead leases
          and bit_count(done) = 0 and bit_length(done) = size
        returning claimed_at, runs, ids into lease_claimed_at, lease_runs, lease_ids;
        if found then
            example := lease_runs[1];
            are_alike := size = 1 or not exists (
                select from unnest(lease_runs) as run
                where run.job_id <> example.job_id or run.line_id <> example.line_id
                   or run.tenant_id <> example.tenant_id or run.tags is distinct from example.tags);
            if are_alike then
                insert into attempt (lane, run_id, attempt, outcome, state, claimed_at, started_at, finished_at, worker_id,
                                     result, ready_at, {recorded}, is_covered, covers)
                select complete_whole_leases.lane, run.id, run.attempt + 1, 'succeeded', 'succeeded', lease_claimed_at,
                       to_timestamp(946684800 + run.started / 1000000.0::double precision),
                       to_timestamp(946684800 + run.finished / 1000000.0::double precision), worker, run.result,
                       run.ready_at, {recorded of run},
                       case when run.ordinality > 1 then true end,
                       case when run.ordinality = 1 and size > 1 then lease_ids end
                from rows from (unnest(all_starts[before + 1 : before + size]), unnest(all_ends[before + 1 : before + size]),
                                unnest(results[before + 1 : before + size]), unnest(lease_runs))
                         with ordinality as run (started, finished, result);
            else
                insert into attempt (lane, run_id, attempt, outcome, state, claimed_at, started_at, finished_at, worker_id,
                                     result, ready_at, {recorded}, is_covered, covers)
                select complete_whole_leases.lane, run.id, run.attempt + 1, 'succeeded', 'succeeded', lease_claimed_at,
                       to_timestamp(946684800 + run.started / 1000000.0::double precision),
                       to_timestamp(946684800 + run.finished / 1000000.0::double precision), worker, run.result,
                       run.ready_at, {recorded of run},
                       case when run.ordinality > batch.first then true end,
                       case when run.ordinality = batch.first then batch.ids end
                from rows from (unnest(all_starts[before + 1 : before + size]), unnest(all_ends[before + 1 : before + size]),
                                unnest(results[before + 1 : before + size]), unnest(lease_runs))
                         with ordinality as run (started, finished, result)
                left join (
                    select run.tenant_id, run.job_id, run.line_id, run.tags, min(run.ordinality) as first,
                           array_agg(run.id) as ids
                    from unnest(lease_runs) with ordinality as run
                    group by run.tenant_id, run.job_id, run.line_id, run.tags having count(*) > 1) as batch
                    on batch.tenant_id = run.tenant_id and batch.job_id = run.job_id and batch.line_id = run.line_id
                    and batch.tags is not distinct from run.tags;
            end if;
            completed := completed || this;
            ended := ended || lease_ids;
        end if;
        before := before + size;
    end loop;
    -- Whether anybody waits for any of them: asked once, when they are gone, so that whoever was told to wait before that is
    -- seen. Between the first and the last of them, by the time in their ids: rows of long ago are not crawled over.
    if exists (
        select from dependency
        where dependency.lane = complete_whole_leases.lane
          and dependency.parent_id >= (select run.id from unnest(ended) as run (id) order by run.id limit 1)
          and dependency.parent_id <= (select run.id from unnest(ended) as run (id) order by run.id desc limit 1)
        order by dependency.parent_id, dependency.child_id limit 1)
    then
        if cardinality(ended) = before then   -- all of them were there, as nearly always: `results` are theirs
            select told.waiting into children
            from tell_successes(complete_whole_leases.lane, ended, results) as told (waiting);
        else
            select told.waiting into children
            from tell_children(complete_whole_leases.lane, ended) as told (waiting);
        end if;
    end if;
    return completed || children;
end $$;
