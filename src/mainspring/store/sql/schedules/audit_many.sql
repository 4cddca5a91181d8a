-- Record who did what to some schedules.
insert into audit (lane, tenant_id, actor, action, subject, detail)
select :lane::smallint, :tenant::int, :actor::text, :action::text, item.subject, item.detail::jsonb
from unnest(:subjects::text[], :details::text[]) as item (subject, detail)
