-- What all workers together have done for each line, ever, and what the living ones hold. Programs before migration 21
-- have, and leave, a table of their own.
select line_id, sum(finished)::bigint as finished, sum(busy_seconds) as busy_seconds,
       coalesce(sum(holding) filter (where is_live), 0)::bigint as holding
from (
    select worker_tally.line_id, worker_tally.finished, worker_tally.busy_seconds, worker_tally.holding,
           worker.state = 'live' as is_live
    from worker_tally left join worker on worker.id = worker_tally.worker_id
    where worker_tally.lane = any (:lanes::smallint[])
    union all
    select tally.line_id, tally.finished, tally.busy_seconds, tally.holding, worker.state = 'live' as is_live
    from tally left join worker on worker.id = tally.worker_id
) as told
group by line_id
