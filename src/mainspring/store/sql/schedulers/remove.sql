-- Remove a scheduler that ended, if its heartbeats still are what was seen.
-- Index: the primary key.
delete from scheduler_heartbeat
where lane = any (:lanes::smallint[]) and id = :id::uuid and beat <= coalesce(:beat::bigint, beat)
