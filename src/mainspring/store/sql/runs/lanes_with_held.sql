-- Lanes in which runs of these jobs are held for a reason, and due.
-- Index: held_job_idx.
select lanes.lane from unnest(:lanes::smallint[]) as lanes (lane)
where exists (
    select from held
    where held.lane = lanes.lane and held.job_id = any (:jobs::int[]) and held.reason = :reason::text
      and held.due_at <= clock_now())
