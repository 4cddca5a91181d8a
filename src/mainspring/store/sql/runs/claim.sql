-- Claim ready runs of one lane and line for one worker, in the order of the given priorities.
-- Moves: claim.  Hot.  Index: ready_claim_idx, then the primary key.
-- The rows come back in the order they have inside the lease: both read the same materialised `picked`.
-- Of the jobs that need a thread only so many are taken, as are free: the others stay in line, for whoever has one.
-- By id, not by ctid: the ctid form is faster until statistics say that the queue is empty, and then its plan flips.
with wanted as (
    select candidate.id, candidate.job_id
    from unnest(:priorities::smallint[], :fronts::bigint[]) as front (priority, rank)   -- where to start, per priority
    cross join lateral (
        select ready.id, ready.job_id from ready
        where ready.lane = :lane::smallint and ready.line_id = :line::int
          and ready.priority = front.priority and ready.rank >= front.rank
          and ready.rank <= rank_bound()   -- what is staged waits for its instant
        order by ready.rank limit :count::int for update skip locked) as candidate
    where not (   -- looked up once per claim: after a pause has committed, no claim that begins takes anything
        select exists (select from line join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
                       where line.id = :line::int and queue.paused_at is not null))
      and (       -- nor does one of a worker that is lost, or of another installation, whose numbers mean nothing here
        select exists (select from worker where worker.id = :worker::uuid and worker.state = 'live'))
    limit :count::int
), picked as materialized (
    delete from ready where ready.lane = :lane::smallint and ready.id = any (
        array(select wanted.id from wanted where wanted.job_id <> all (:jobs_in_threads::int[]))
        || array(select wanted.id from wanted where wanted.job_id = any (:jobs_in_threads::int[]) limit :threads::int))
    returning {claimed except fence, special}, fence + 1 as fence,
        special_of(crashes, first_started_at, overrides) as special,
        run_of({run by name except fence}, fence => fence + 1, ready_at => ready_at) as run
), taken as (
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    select :lane::smallint, :lease::uuid, :worker::uuid, array_agg(run), array_agg(id),
           repeat('0', count(*)::int)::varbit, repeat('0', count(*)::int)::varbit
    from picked having count(*) > 0
)
select {claimed} from picked
