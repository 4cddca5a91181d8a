-- Sessions whose transaction has been open for long: vacuum can remove nothing that is younger than they are.
-- Details of other users' sessions are visible to members of pg_read_all_stats only.
select pid, coalesce(usename, '?') as user_name, coalesce(application_name, '') as application, state,
       extract(epoch from clock_timestamp() - xact_start)::double precision as seconds
from pg_stat_activity
where xact_start < clock_timestamp() - :older_than::double precision * interval '1 second'
  and backend_type = 'client backend' and pid <> pg_backend_pid()
order by xact_start limit 20
