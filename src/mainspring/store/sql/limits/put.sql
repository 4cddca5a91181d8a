-- Set a limit: a new one with the next number, or another value for the one that there is. Another order or another share is
-- another limit: runs that wait at the old one pass it, and wait at the new one.
with written as (
    insert into limit_rule (id, tenant_id, scope, name, key, most, rate, burst, share, is_strict, halts_on_dead, is_spread,
                            declared, changed_by, reason)
    values (:id::int, :tenant::int, :scope::text, :name::text, :key::text, :most::int, :rate::double precision,
            :burst::int, :share::text, :is_strict::boolean, :halts_on_dead::boolean, :is_spread::boolean,
            :declared::jsonb, :actor::text, :reason::text)
    on conflict (tenant_id, scope, name, key) do update
    set id = case when limit_rule.is_strict = excluded.is_strict and limit_rule.share = excluded.share then limit_rule.id
                  else excluded.id end,
        most = excluded.most, rate = excluded.rate, burst = excluded.burst, share = excluded.share,
        is_strict = excluded.is_strict, halts_on_dead = excluded.halts_on_dead,
        is_spread = limit_rule.is_spread or excluded.is_spread, declared = excluded.declared,
        changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason
    returning id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'limit.set', :subject::text, :detail::jsonb from written
)
select id from written
