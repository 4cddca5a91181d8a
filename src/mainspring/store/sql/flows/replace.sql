-- Some runs of a flow stand for others from now on. The act is audited.
-- Index: flow primary key.
with replaced as (
    update flow set graph = :graph::bytea, revision = flow.revision + 1
    where flow.lane = :lane::smallint and flow.id = :flow::uuid and flow.tenant_id = :tenant::int
    returning flow.lane, flow.tenant_id, flow.id
)
insert into audit (lane, tenant_id, actor, action, subject, detail)
select replaced.lane, replaced.tenant_id, :actor::text, 'flow.retry', replaced.id::text, :detail::jsonb from replaced
