-- Forget the heartbeats of workers that were forgotten.
-- They are read as a whole: they are few, and it happens once an hour.
delete from worker_heartbeat
where lane = any (:lanes::smallint[]) and beat_at < clock_now() - :older_than::interval
  and not exists (select from worker where worker.id = worker_heartbeat.worker_id)
