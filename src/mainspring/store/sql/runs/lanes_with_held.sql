-- Lanes in which runs of these jobs are held for a reason, and due.
-- Index: held_job_idx.
select distinct lane.lane
from lane cross join unnest(:jobs::int[]) as job (id)
where lane.lane = any (:lanes::smallint[]) and (
    -- In the order of the index, and not just `exists`: joined as a whole, it would read all that is held.
    select true from held
    where held.lane = lane.lane and held.job_id = job.id and held.reason = :reason::text
      and held.due_at <= clock_now()
    order by held.id limit 1)
