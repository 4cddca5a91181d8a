-- Runs of these limits will wait outside the lanes of their gates.
update limit_rule set is_spread = true where id = any (:ids::int[]) and not is_spread
