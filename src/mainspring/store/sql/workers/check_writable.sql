-- Take the lock that a heartbeat takes, and change nothing. Whoever cannot have it knows that heartbeats cannot come either.
update worker_heartbeat set beat = beat where false
