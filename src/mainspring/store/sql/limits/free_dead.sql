-- Dead letters of a limit that halts nobody any more give their slots back.
delete from slot
where rule_id = :rule::int and not halts_on_dead
  and exists (select from dead where dead.lane = slot.lane and dead.id = slot.run_id)
