-- Workers for people: the living first, then those that ended recently. How one is doing that beats in a lane is said
-- there.
select id, state::text, host, pid, queues, labels, slots, version, unsettled, unsettled_since, started_at,
       beat_at as heartbeat_at, ended_at,
       extract(epoch from clock_now() - beat_at)::double precision as silent_seconds
from worker where state = 'live' or ended_at > clock_now() - :ended_within::double precision * interval '1 second'
order by state, started_at desc limit 1000
