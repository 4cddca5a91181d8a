-- What each live worker that serves a queue and is not to drain serves, and which jobs it knows.
select queues, labels, handlers from worker
where state = 'live' and drain_requested_at is null and queues @> array[:queue::text]
