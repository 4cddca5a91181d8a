-- One flow.
-- Index: flow primary key.
select id, name, revision, graph, submitted_at, submitted_by
from flow where lane = :lane::smallint and id = :flow::uuid and tenant_id = :tenant::int
