-- What runs of one lane returned that succeeded, and how large that is: as arrays, since there may be ten thousand. The
-- results are left out if they are larger than that altogether; null: they are not.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made.
with found as materialized (
    select attempt.run_id, coalesce(attempt.result, 'null') as result
    from attempt
    where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[])
      and attempt.recorded_at >= :since::timestamptz and attempt.state = 'succeeded'
)
select array_agg(found.run_id) as runs, array_agg(octet_length(found.result)) as sizes,
       array_agg(found.result) filter (
           where (select sum(octet_length(found.result)) from found) <= coalesce(:most_bytes::bigint, 'infinity'::numeric)) as results
from found
