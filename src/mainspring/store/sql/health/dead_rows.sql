-- Tables with many dead rows, as the statistics have it.
select relname as table_name, n_live_tup as live, n_dead_tup as dead, last_autovacuum
from pg_stat_user_tables
where schemaname = :schema::text and n_dead_tup > :at_least::bigint and n_dead_tup > 2 * n_live_tup
order by n_dead_tup desc
