-- Ask the worker that has a run to stop it: set its `cancel` bit, unless the run is done. Asking again is on record again.
-- Completion and rescue read the bit in their own guarded statements, so the run never goes back to wait.
-- Index: lease (lane), through `ids`, which is small; only the one lease's `runs` say whose run it is.
with asked as (
    update lease set cancel = set_bit(lease.cancel, array_position(lease.ids, :run::uuid) - 1, 1)
    where lease.lane = :lane::smallint and lease.ids @> array[:run::uuid]
      and get_bit(lease.done, array_position(lease.ids, :run::uuid) - 1) = 0
      and case when lease.ids @> array[:run::uuid]   -- a case keeps its order: `runs` of other leases are not read
               then (lease.runs[array_position(lease.ids, :run::uuid)]).tenant_id = :tenant::int end
    returning worker_id, id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select :lane::smallint, :tenant::int, :actor::text, 'run.cancel', :run::text,
           jsonb_build_object('reason', :reason::text) || :detail::jsonb
    from asked
)
select worker_id, id from asked
