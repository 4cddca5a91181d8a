-- Workers that should worry us: silent for longer than their lease time and not declared lost by anyone.
select count(*) filter (where state = 'live') as live,
       count(*) filter (where state = 'live'
                          and beat_at < clock_now() - 2 * lease_seconds * interval '1 second') as silent,
       count(*) filter (where state = 'live' and unsettled_since is not null) as unable,
       coalesce(sum(unsettled) filter (where state = 'live'), 0)::bigint as unsettled
from worker
