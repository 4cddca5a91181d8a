-- Whether dead letters halt those behind them was decided anew: those that hold slots follow.
update slot set halts_on_dead = :halts_on_dead::boolean
where rule_id = :rule::int and halts_on_dead <> :halts_on_dead::boolean
