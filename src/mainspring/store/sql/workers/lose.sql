-- Declare a worker lost, for good, if it has not beaten since we looked.
update worker set state = 'lost', ended_at = clock_now()
where id = :worker::uuid and state = 'live' and (:beat::bigint is null or beat = :beat::bigint)
returning id
