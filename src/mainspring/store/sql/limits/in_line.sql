-- How many runs of one lane that passed a shared limit may be claimed now, by line. Slot by slot, in the order of the index:
-- planned while the tables were empty, it could read all of `ready` for ever.
-- Index: slot_gate_idx, ready primary key.
select found.line_id, count(*) as depth
from (select slot.run_id from slot
      where slot.lane = :lane::smallint and slot.gate >= :number::text || ':' and slot.gate < :number::text || ';'
      order by slot.gate offset 0) as passed
cross join lateral (
    select ready.line_id from ready
    where ready.lane = :lane::smallint and ready.id = passed.run_id and ready.rank <= rank_bound() limit 1) as found
group by found.line_id
