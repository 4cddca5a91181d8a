-- Set how many runs of a queue may be in line before nothing more is promoted, and at how many that begins again. Null: as
-- always.
with written as (
    insert into queue (tenant_id, name, high_mark, low_mark) values (:tenant::int, :queue::text, :high::int, :low::int)
    on conflict (tenant_id, name) do update set high_mark = excluded.high_mark, low_mark = excluded.low_mark
    returning name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'queue.marks', name,
           jsonb_build_object('high', :high::int, 'low', :low::int, 'reason', :reason::text) from written
)
select name from written
