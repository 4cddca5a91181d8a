-- The newest flows of one lane.
-- Index: flow_list_idx.
select id, name, revision, graph, submitted_at, submitted_by
from flow where lane = :lane::smallint and tenant_id = :tenant::int and id < :before::uuid
order by tenant_id, id desc limit :count::int
