-- How many attempts of one worker came to which outcome. For tests: no index carries it.
select outcome, count(*) as attempts from attempt where worker_id = :worker::uuid group by outcome
