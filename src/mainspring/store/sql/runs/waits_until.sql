-- When runs of one lane are due that wait for their time, or for other runs besides.
-- Index: primary keys.
select later.id, later.due_at from later
where later.lane = :lane::smallint and later.id = any (:runs::uuid[]) and later.tenant_id = :tenant::int
union all
select held.id, held.due_at from held
where held.lane = :lane::smallint and held.id = any (:runs::uuid[]) and held.tenant_id = :tenant::int
  and held.due_at > clock_now()
union all
select ready.id, ready.due_at from ready
where ready.lane = :lane::smallint and ready.id = any (:runs::uuid[]) and ready.tenant_id = :tenant::int
  and ready.rank > rank_bound()
