-- Send the heartbeats of workers of one home lane; those that do not come back were declared lost.
-- Index: the primary keys.
select id, is_to_drain from beat_workers(:lane::smallint, :workers::uuid[])
