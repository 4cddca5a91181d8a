-- Send the heartbeats of workers that are still live; those that do not come back were declared lost.
update worker set beat = beat + 1, beat_at = clock_now()
where id = any (:workers::uuid[]) and state = 'live'
returning id, drain_requested_at is not null as is_to_drain
