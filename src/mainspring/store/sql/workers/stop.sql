-- A worker has given everything back and ends.
update worker set state = 'stopped', ended_at = clock_now() where id = :worker::uuid and state = 'live'
returning id
