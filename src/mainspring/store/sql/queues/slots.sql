-- How many slots each live worker has, and for what.
select id, queues, labels, slots from worker where state = 'live' and drain_requested_at is null
