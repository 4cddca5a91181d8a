-- Remove schedulers of programs before migration 21 that ended, if their heartbeats still are what was seen.
-- Index: the primary key.
delete from scheduler using unnest(:ids::uuid[], :beats::bigint[]) as ended (id, beat)
where scheduler.id = ended.id and scheduler.beat = coalesce(ended.beat, scheduler.beat)
