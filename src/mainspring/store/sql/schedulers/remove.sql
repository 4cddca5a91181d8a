-- Remove schedulers that ended, if their heartbeats still are what was seen.
-- Index: the primary key.
delete from scheduler using unnest(:ids::uuid[], :beats::bigint[]) as ended (id, beat)
where scheduler.id = ended.id and scheduler.beat = coalesce(ended.beat, scheduler.beat)
