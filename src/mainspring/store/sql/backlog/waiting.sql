-- How many runs of one lane wait under a cap, at each of its gates: of the first so many entries.
-- Index: backlog_entry primary key.
select entry.gate, count(*) as entries, count(*) filter (where entry.waits) as waiting,
       min(entry.place) filter (where entry.waits) as first_place,
       (array_agg(entry.run_id order by entry.place) filter (where entry.waits))[1] as first_id
from (select few.gate, few.place, few.run_id, coalesce(
                 (select true from ready
                  where ready.lane = :lane::smallint and ready.id = few.run_id and ready.fence = 0 limit 1),
                 (select true from later
                  where later.lane = :lane::smallint and later.id = few.run_id and later.fence = 0 limit 1),
                 (select true from held
                  where held.lane = :lane::smallint and held.id = few.run_id and held.fence = 0 limit 1), false) as waits
      from (select backlog_entry.gate, backlog_entry.place, backlog_entry.run_id from backlog_entry
            where backlog_entry.lane = :lane::smallint
              and backlog_entry.gate >= :first::text and backlog_entry.gate < :last::text
            order by backlog_entry.gate, backlog_entry.place limit :bound::int) as few) as entry
group by entry.gate
