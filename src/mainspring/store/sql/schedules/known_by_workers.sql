-- The newest migration that the programs of all live workers know, and that all of the last day knew: what they cannot read
-- is not written, and one that has just ended may be started again. Programs before 19 do not say; those before 12 would
-- start a staged run at once.
select coalesce(min(knows) filter (where state = 'live'), 2147483647) as live, coalesce(min(knows), 2147483647) as lately
from (select state, case when waits_for_rank then greatest(knows, 12) else 0 end as knows from worker
      where state = 'live' or ended_at > clock_now() - interval '1 day') as worker
