-- In which state some runs of one lane are now.
-- Index: primary keys, attempt_run_idx; lease through `ids`, which is small.
select 'scheduled'::run_state as state, id from later where lane = :lane::smallint and id = any (:runs::uuid[])
union all
select 'held', id from held where lane = :lane::smallint and id = any (:runs::uuid[])
union all
select 'ready', id from ready where lane = :lane::smallint and id = any (:runs::uuid[])
union all
select 'dead', id from dead where lane = :lane::smallint and id = any (:runs::uuid[])
union all
select 'running', member.id
from lease cross join lateral unnest(lease.ids) with ordinality as member (id, position)
where lease.lane = :lane::smallint and lease.ids && :runs::uuid[]
  and member.id = any (:runs::uuid[]) and get_bit(lease.done, member.position::int - 1) = 0
union all
select state, run_id from attempt
where lane = :lane::smallint and run_id = any (:runs::uuid[]) and recorded_at >= :since::timestamptz
  and state in ('succeeded', 'cancelled', 'expired', 'lost')
