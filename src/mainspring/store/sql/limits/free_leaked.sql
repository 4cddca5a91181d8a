-- Give back slots of one lane whose runs are nowhere that they could hold them: there should never be one. A slot goes in
-- the transaction that moves its run, so one snapshot shows both as they belong together.
-- Index: slot primary key, and the primary keys of the places.
delete from slot
where slot.lane = :lane::smallint and slot.taken_at < clock_now() - interval '5 seconds'
  and not exists (select from ready where ready.lane = :lane::smallint and ready.id = slot.run_id)
  and not exists (select from held where held.lane = :lane::smallint and held.id = slot.run_id)
  and not (exists (select from later where later.lane = :lane::smallint and later.id = slot.run_id)
           and exists (select from slot as kept   -- see free_slots
                       where kept.lane = :lane::smallint and kept.run_id = slot.run_id and kept.is_strict
                         and kept.place >= slot.place))
  and not (slot.halts_on_dead and exists (
      select from dead where dead.lane = :lane::smallint and dead.id = slot.run_id))
  and not exists (
      select from lease
      where lease.lane = :lane::smallint and lease.ids @> array[slot.run_id]
        and get_bit(lease.done, array_position(lease.ids, slot.run_id) - 1) = 0)
returning slot.run_id, slot.gate
