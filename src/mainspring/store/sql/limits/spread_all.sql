-- The runs of a job with several limits are in the lanes of the narrowest one.
update limit_rule set is_spread = true
where tenant_id = :tenant::int and scope = 'job' and name = :name::text and not is_spread
  and (select count(*) from limit_rule as other
       where other.tenant_id = :tenant::int and other.scope = 'job' and other.name = :name::text) > 1
