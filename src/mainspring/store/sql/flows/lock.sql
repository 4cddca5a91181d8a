-- One flow, of which somebody is about to replace runs: one at a time.
-- Index: flow primary key.
select id, name, revision, graph, submitted_at, submitted_by
from flow where lane = :lane::smallint and id = :flow::uuid and tenant_id = :tenant::int for update
