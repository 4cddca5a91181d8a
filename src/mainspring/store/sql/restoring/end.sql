-- Note that a restored database has been made safe to work on, and what that took.
insert into audit (lane, tenant_id, actor, action, subject, detail)
select 0, :tenant::int, :actor::text, 'restore.end', :installation::text, :detail::jsonb
