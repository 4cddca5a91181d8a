-- What there is to do and what is being done for a tenant, counted up to a bound: for people who watch.
-- Index: ready_claim_idx, later_list_idx, held_list_idx, dead_job_idx; leases are few.
select (select count(*) from (
            select rank from ready where lane = any (:lanes::smallint[])
            and line_id = any (array(select id from line where tenant_id = :tenant::int)) limit :bound::int) as few
        where few.rank <= rank_bound()) as ready,
       (select count(*) from (
            select lane from later where lane = any (:lanes::smallint[])
            and line_id = any (array(select id from line where tenant_id = :tenant::int)) and job_id > 0
            limit :bound::int) as few)
           + (select count(*) from (
            select rank from ready where lane = any (:lanes::smallint[])
            and line_id = any (array(select id from line where tenant_id = :tenant::int)) limit :bound::int) as few
        where few.rank > rank_bound()) as scheduled,
       (select count(*) from (
            select lane from held where lane = any (:lanes::smallint[])
            and job_id = any (array(select id from job where tenant_id = :tenant::int)) limit :bound::int) as few) as held,
       (select count(*) from (
            select lane from dead where lane = any (:lanes::smallint[])
            and job_id = any (array(select id from job where tenant_id = :tenant::int)) limit :bound::int) as few) as dead,
       (select count(*) from lease cross join lateral unnest(lease.runs) with ordinality as run
        where lease.lane = any (:lanes::smallint[]) and get_bit(lease.done, run.ordinality::int - 1) = 0
          and run.tenant_id = :tenant::int) as running,
       (select count(*) from worker where state = 'live') as workers,
       clock_now() as now
