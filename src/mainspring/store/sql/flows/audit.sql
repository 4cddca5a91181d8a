-- Somebody did something to a flow; what came of it for each run is audited with that run.
insert into audit (lane, tenant_id, actor, action, subject, detail)
values (:lane::smallint, :tenant::int, :actor::text, :action::text, :subject::text, :detail::jsonb)
