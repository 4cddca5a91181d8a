-- The roles of keepers that are connected to this database, and whether each may make partitions of history: it needs the
-- function that makes them, and the function's owner needs to own history.
select keeper.rolname as role,
       has_schema_privilege(keeper.oid, maker.pronamespace, 'usage')
       and has_function_privilege(keeper.oid, maker.oid, 'execute')
       and pg_has_role(case when maker.prosecdef then maker.proowner else keeper.oid end, history.relowner, 'usage')
           as can_add_partitions
from pg_roles as keeper
join pg_proc as maker on maker.oid = to_regprocedure('add_history_partition(date)')
join pg_class as history on history.oid = to_regclass('attempt')
where keeper.oid in (select usesysid from pg_stat_activity
                     where datname = current_database() and starts_with(application_name, 'mainspring keeper'))
order by keeper.rolname
