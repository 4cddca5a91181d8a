-- Mark those limits of jobs whose runs may be in the lane of another, narrower one: with a key comes before without, and of
-- several with keys the oldest. Limits of queues and tenants are marked from the first.
update limit_rule set is_spread = true
where tenant_id = :tenant::int and scope = 'job' and not is_spread
  and exists (
      select from limit_rule as other
      where other.tenant_id = :tenant::int and other.id <> limit_rule.id and other.key <> ''
        and case when other.scope = 'job' then other.name = limit_rule.name and (limit_rule.key = '' or other.id < limit_rule.id)
                 else limit_rule.key = '' end)
