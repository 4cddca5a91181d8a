-- Claim ready runs of one lane and line for one worker, in the order of the given priorities.
-- Of the jobs that need a thread only so many are taken, as are free: the others stay in line, for whoever has one.
-- The rows come back in the order they have inside the lease: they are read from what was put there.
create or replace function claim_runs(
    lane smallint, line int, priorities smallint[], fronts bigint[], count int, lease uuid, worker uuid,
    jobs_in_threads int[], threads int
) returns table (
    due_at timestamptz, ready_at timestamptz, tenant_id int, job_id int, job_version int, priority smallint,
    codec smallint, headers jsonb, tags text[], idempotency_key text, submitted_by text, submitted_at timestamptz,
    id uuid, rank bigint, attempt smallint, fence int, expires_at timestamptz, payload bytea, special text
)
language plpgsql set search_path = mainspring, pg_temp as $$
#variable_conflict use_column
declare
    may_claim boolean;
    is_alone boolean;
    are_untouched boolean;
    picked uuid[];
    in_threads uuid[];
    taken run_row[];
    taken_ids uuid[];
    taken_ranks bigint[];
    taken_gates text[];
begin
    -- After a pause has committed, no claim that begins takes anything; nor does one of a worker that is lost, or of
    -- another installation, whose numbers mean nothing here.
    may_claim := not exists (
            select from line join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
            where line.id = claim_runs.line and queue.paused_at is not null)
        and exists (select from worker where worker.id = claim_runs.worker and worker.state = 'live');
    if not may_claim then
        return;
    end if;

    -- A lock on each row would be one more record in the write-ahead log for each run. Whoever is alone here takes rows that
    -- nobody has touched as they are: the DELETE below locks them, and waits only for who touches one in between.
    is_alone := pg_try_advisory_xact_lock(1836253184 + claim_runs.lane, claim_runs.line);   -- 'ms', and the lane
    if is_alone then
        select array_agg(wanted.id) filter (where wanted.job_id <> all (claim_runs.jobs_in_threads)),
               array_agg(wanted.id) filter (where wanted.job_id = any (claim_runs.jobs_in_threads)),
               bool_and(wanted.is_untouched)
        into picked, in_threads, are_untouched
        from (
            select candidate.id, candidate.job_id, candidate.is_untouched
            from unnest(claim_runs.priorities, claim_runs.fronts) as front (priority, rank)   -- where to start, per priority
            cross join lateral (
                select ready.id, ready.job_id, ready.xmax = '0'::xid as is_untouched from ready
                where ready.lane = claim_runs.lane and ready.line_id = claim_runs.line
                  and ready.priority = front.priority and ready.rank >= front.rank
                  and ready.rank <= rank_bound()   -- what is staged waits for its instant
                order by ready.rank limit claim_runs.count) as candidate
            limit claim_runs.count) as wanted;
    end if;
    if is_alone and are_untouched is null then   -- there are none
        return;
    end if;
    if not is_alone or not are_untouched then
        select array_agg(wanted.id) filter (where wanted.job_id <> all (claim_runs.jobs_in_threads)),
               array_agg(wanted.id) filter (where wanted.job_id = any (claim_runs.jobs_in_threads))
        into picked, in_threads
        from (
            select candidate.id, candidate.job_id
            from unnest(claim_runs.priorities, claim_runs.fronts) as front (priority, rank)   -- where to start, per priority
            cross join lateral (
                select ready.id, ready.job_id from ready
                where ready.lane = claim_runs.lane and ready.line_id = claim_runs.line
                  and ready.priority = front.priority and ready.rank >= front.rank
                  and ready.rank <= rank_bound()   -- what is staged waits for its instant
                order by ready.rank limit claim_runs.count for update skip locked) as candidate
            limit claim_runs.count) as wanted;
    end if;
    picked := picked || in_threads[1:claim_runs.threads];
    if picked is null or cardinality(picked) = 0 then   -- perhaps all of them need a thread, and none is free
        return;
    end if;

    -- By id, not by ctid: the ctid form is faster until statistics say that the queue is empty, and then its plan flips.
    -- What was changed since it was found may be in another line, or due later. Not `=`: see `ready` in schema.sql.
    with gone as (
        delete from ready where ready.lane = claim_runs.lane and ready.id = any (picked)
          and ready.line_id is not distinct from claim_runs.line and ready.rank <= rank_bound()
        returning ready.id, ready.rank, ready.gates,
            run_of({run by name except fence}, fence => fence + 1, ready_at => ready_at) as run)
    select array_agg(gone.run), array_agg(gone.id), array_agg(gone.rank), array_agg(gone.gates)
    into taken, taken_ids, taken_ranks, taken_gates from gone;
    if taken_ids is null then   -- somebody else was first
        return;
    end if;
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    values (claim_runs.lane, claim_runs.lease, claim_runs.worker, taken, taken_ids,
            repeat('0', cardinality(taken_ids))::varbit, repeat('0', cardinality(taken_ids))::varbit);
    return query
    select {claimed of run except special}, special_of(run.crashes, run.first_started_at, run.overrides, run.gates)
    from rows from (unnest(taken_ranks), unnest(taken_gates), unnest(taken)) as run (rank, gates);
end $$;
