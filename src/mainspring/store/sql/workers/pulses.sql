-- The heartbeats of all live workers: read, compared and judged by the reader's own clock.
select id, beat, lease_seconds from worker where state = 'live'
