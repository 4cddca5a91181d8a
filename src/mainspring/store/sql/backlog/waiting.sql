-- How many runs of one lane wait under a cap, at each of its gates after a given one: of the first so many entries.
-- Index: backlog_entry primary key.
select entry.gate, count(*) as waiting, min(entry.place) as first_place, (array_agg(entry.run_id order by entry.place))[1] as first_id
from (select backlog_entry.gate, backlog_entry.place, backlog_entry.run_id from backlog_entry
      where backlog_entry.lane = :lane::smallint
        and backlog_entry.gate >= :first::text and backlog_entry.gate < :last::text
      order by backlog_entry.gate, backlog_entry.place limit :bound::int) as entry
where (select true from ready
       where ready.lane = :lane::smallint and ready.id = entry.run_id and ready.fence = 0 limit 1)
   or (select true from later
       where later.lane = :lane::smallint and later.id = entry.run_id and later.fence = 0 limit 1)
   or (select true from held
       where held.lane = :lane::smallint and held.id = entry.run_id and held.fence = 0 limit 1)
group by entry.gate
