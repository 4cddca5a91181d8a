-- Take every unfinished run out of some leases of a lost worker: back in line; or, if it was around at too many crashes,
-- among the dead letters; or to its end, if it may not start again or was to be cancelled.
-- A worker that ended by itself (`stopped`) and left leases behind could not settle: nobody crashed, nothing is counted.
-- Moves: rescue, bury, lose, cancel.  Index: lease_worker_idx.
-- The delete is the guard: it waits for nobody (a lease being settled right now is skipped and seen next time), and
-- whoever settles afterwards finds no lease. A started attempt leaves a trace, so each run gets its row of history.
with blame as materialized (
    select not exists (select from worker where id = :worker::uuid and state = 'stopped') as is_crash
), abandoned as materialized (
    select id from lease where lane = :lane::smallint and worker_id = :worker::uuid
    limit :count::int for update skip locked
), ended as materialized (
    delete from lease where lane = :lane::smallint and id = any (array(select id from abandoned))
    returning lane, claimed_at, runs, done, cancel
), unfinished as materialized (
    select ended.lane, ended.claimed_at, run.*, blame.is_crash, run.crashes + blame.is_crash::int as crashes_now,
           case when get_bit(ended.cancel, run.ordinality::int - 1) = 1 then 'cancelled'
                when exists (select from line
                             where line.id = run.line_id and line.labels @> array['delivery=at_most_once']) then 'lost'
                when blame.is_crash and run.crashes + 1 >= :most_crashes::int then 'dead'
                else 'ready' end::run_state as state
    from blame cross join ended cross join lateral unnest(ended.runs) with ordinality as run
    where get_bit(ended.done, run.ordinality::int - 1) = 0
), rescued as (
    insert into ready (lane, {run except crashes, expires_at, first_started_at},
                       crashes, expires_at, first_started_at, rank)
    select lane, {run except crashes, expires_at, first_started_at},
           crashes_now, retry_until, coalesce(first_started_at, claimed_at),
           (date_part('epoch', ready_at) * 1000000)::bigint
    from unfinished where state = 'ready'
), buried as (
    insert into dead (lane, {run except crashes, expires_at, first_started_at}, crashes, expires_at, first_started_at)
    select lane, {run except crashes, expires_at, first_started_at},
           crashes_now, retry_until, coalesce(first_started_at, claimed_at)
    from unfinished where state = 'dead'
), recorded as (
    insert into attempt (lane, run_id, {recorded except payload}, payload, attempt, outcome, state, ready_at,
                         claimed_at, worker_id, error)
    select lane, id, {recorded except payload}, case when state in ({ends}) then payload end, attempt + 1,
           case when state = 'cancelled' then 'cancelled' when is_crash then 'crashed'
                else 'interrupted' end::attempt_outcome,
           state, ready_at, claimed_at, :worker::uuid,
           case when state = 'dead'
                then jsonb_build_object('code', 'crashed-too-often', 'message',
                                        'Its worker was lost ' || crashes_now || ' times while it ran.')
                when not is_crash
                then jsonb_build_object('code', 'worker-gave-up', 'message',
                                        'The worker could not settle its results and ended; its runs were taken over.')
                else jsonb_build_object('code', 'worker-lost', 'message', case when state = 'lost'
                                        then 'The worker sent no more heartbeats; delivered at most once, it does not start again.'
                                        else 'The worker sent no more heartbeats; its runs were taken over.' end) end
    from unfinished
    returning run_id, job_id, attempt, state, outcome, error
), bad_ends as (
    select jsonb_agg(jsonb_build_array(recorded.run_id, job.name, recorded.attempt, recorded.state, recorded.outcome,
                                       recorded.error ->> 'message')) as found
    from recorded join job on job.id = recorded.job_id where recorded.state in ('dead', 'lost')
)
select (select count(*) from ended) as leases, count(*) filter (where state = 'ready') as rescued,
       count(*) filter (where state = 'cancelled') as cancelled, count(*) filter (where state = 'lost') as lost,
       count(*) filter (where state = 'dead') as buried,
       (select coalesce(found, '[]') from bad_ends) as bad_ends
from unfinished
