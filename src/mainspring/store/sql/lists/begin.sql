-- Prepare a transaction for lists: only the indexes made for them are considered, whatever the statistics say, and a plan
-- is made once (see STEADY_PLANS in store/database.py): with many partitions, planning takes longer than looking.
select clock_now() as now, set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', case when current_setting('server_version_num')::int >= :keeps_plans::int
                                          then 'force_generic_plan' else 'force_custom_plan' end, true)
