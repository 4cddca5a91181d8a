-- What each live worker that is not to drain serves, and which jobs it knows.
select queues, labels, handlers from worker where state = 'live' and drain_requested_at is null
