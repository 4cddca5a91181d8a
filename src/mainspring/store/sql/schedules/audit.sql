-- Record who did what to a schedule.
insert into audit (lane, tenant_id, actor, action, subject, detail)
values (:lane::smallint, :tenant::int, :actor::text, :action::text, :subject::text, :detail::jsonb)
