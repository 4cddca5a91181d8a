-- Keep a flow: which runs it has, and who of them waits for whom.
-- Index: flow primary key.
insert into flow (lane, id, tenant_id, name, graph, submitted_by)
values (:lane::smallint, :id::uuid, :tenant::int, :name::text, :graph::bytea, :actor::text)
