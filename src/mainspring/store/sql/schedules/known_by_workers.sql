-- The newest migration that the programs of all live workers know: what they cannot read is not written. Programs before 19
-- do not say; those before 12 would start a staged run at once.
select coalesce(min(case when waits_for_rank then greatest(knows, 12) else 0 end), 2147483647) from worker where state = 'live'
