-- Some limits by their numbers: what holds at this moment, whoever's they are.
select id, scope, name, key, most, rate, burst, is_strict, halts_on_dead, is_spread, share from limit_rule where id = any (:ids::int[])
