-- Store checkpoints of runs of one lane, for those whose lease is still this worker's; answers with the runs it stored.
-- Index: lease and checkpoint primary keys.
-- `for share`: whoever settles or rescues these runs comes before or after, never in between.
with owned as materialized (
    select lease.lane, sent.run_id, sent.fence, sent.value
    from unnest(:leases::uuid[], :positions::int[], :runs::uuid[], :fences::int[], :checkpoints::bytea[])
        as sent (lease_id, position, run_id, fence, value)
    join lease on lease.id = sent.lease_id and lease.worker_id = :worker::uuid
        and get_bit(lease.done, sent.position) = 0
    where lease.lane = :lane::smallint
    for share of lease
)
insert into checkpoint (lane, run_id, fence, value)
select lane, run_id, fence, value from owned order by run_id
on conflict (lane, run_id) do update set
    fence = excluded.fence, value = excluded.value, stored_at = excluded.stored_at
where checkpoint.fence <= excluded.fence
returning run_id, fence
