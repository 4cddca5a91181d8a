-- Keep log lines of attempts of one lane that go on, for those whose lease is still this worker's.
-- Index: lease primary key.
insert into log (lane, run_id, fence, attempt, part, lines)
select lease.lane, said.run_id, said.fence, said.attempt, said.part, said.lines::json
from unnest(:leases::uuid[], :positions::int[], :runs::uuid[], :fences::int[], :attempts::smallint[],
            :parts::int[], :texts::text[])
    as said (lease_id, position, run_id, fence, attempt, part, lines)
join lease on lease.id = said.lease_id and lease.worker_id = :worker::uuid
    and get_bit(lease.done, said.position) = 0
where lease.lane = :lane::smallint
