-- All limits of a tenant, as those need them who apply them.
select id, scope, name, key, most, rate, burst, is_strict, halts_on_dead, is_spread, share from limit_rule where tenant_id = :tenant::int
