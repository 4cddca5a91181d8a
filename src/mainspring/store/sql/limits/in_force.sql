-- All limits, and where breakers are open, whoever's they are: for those who look what has changed since they looked last.
select id, scope, name, key, most, rate, burst, is_strict, halts_on_dead, is_spread, share from limit_rule
union all
select id, 'job', job, '', 1, null, null, false, false, true, '' from breaker_opening
