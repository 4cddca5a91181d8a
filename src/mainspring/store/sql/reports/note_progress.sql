-- Note how far some runs of one lane are, for those whose lease is still this worker's.
-- Index: lease and progress primary keys.
-- In one order everywhere, so that a worker that woke up late and its successor wait for each other in turn.
insert into progress (lane, run_id, fence, attempt, fraction, message)
select lease.lane, noted.run_id, noted.fence, noted.attempt, noted.fraction, noted.message
from unnest(:leases::uuid[], :positions::int[], :runs::uuid[], :fences::int[], :attempts::smallint[],
            :fractions::real[], :messages::text[])
    as noted (lease_id, position, run_id, fence, attempt, fraction, message)
join lease on lease.id = noted.lease_id and lease.worker_id = :worker::uuid
    and get_bit(lease.done, noted.position) = 0
where lease.lane = :lane::smallint
order by noted.run_id
on conflict (lane, run_id) do update set
    fence = excluded.fence, attempt = excluded.attempt, fraction = excluded.fraction, message = excluded.message,
    noted_at = excluded.noted_at
where progress.fence <= excluded.fence
