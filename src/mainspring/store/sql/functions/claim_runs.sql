-- Claim ready runs of one lane and line for one worker, in the order of the given priorities.
-- Of the jobs that need a thread only so many are taken, as are free: the others stay in line, for whoever has one.
-- The rows come back in the order they have inside the lease: both are ordered by the id.
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
    picked uuid[];
    in_threads uuid[];
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
    picked := picked || in_threads[1:claim_runs.threads];
    if picked is null then
        return;
    end if;

    -- By id, not by ctid: the ctid form is faster until statistics say that the queue is empty, and then its plan flips.
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    select claim_runs.lane, claim_runs.lease, claim_runs.worker,
           array_agg(run_of({run by name except fence}, fence => fence + 1, ready_at => ready_at) order by ready.id),
           array_agg(ready.id order by ready.id), repeat('0', count(*)::int)::varbit, repeat('0', count(*)::int)::varbit
    from ready where ready.lane = claim_runs.lane and ready.id = any (picked) having count(*) > 0;
    return query
    with gone as (
        delete from ready where ready.lane = claim_runs.lane and ready.id = any (picked)
        returning {claimed except fence, special}, fence + 1 as fence,
            special_of(crashes, first_started_at, overrides) as special)
    select {claimed of gone} from gone order by gone.id;
end $$;
