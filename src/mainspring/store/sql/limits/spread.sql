-- Runs of these limits will wait outside the lanes of their gates. In one order, so that nobody waits in a circle.
update limit_rule set is_spread = true
where id in (select rule.id from limit_rule as rule where rule.id = any (:ids::int[]) and not rule.is_spread
             order by rule.id for update)
