-- Workers that were asked to stop runs of one lane, and have not settled them yet: leases are few.
select distinct lease.worker_id from lease
where lease.lane = :lane::smallint and bit_count(lease.cancel & ~lease.done) > 0
