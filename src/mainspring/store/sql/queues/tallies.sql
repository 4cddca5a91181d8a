-- What all workers together have done for each line, ever, and what the living ones hold.
select tally.line_id, sum(tally.finished)::bigint as finished, sum(tally.busy_seconds) as busy_seconds,
       coalesce(sum(tally.holding) filter (where worker.state = 'live'), 0)::bigint as holding
from tally left join worker on worker.id = tally.worker_id
group by tally.line_id
