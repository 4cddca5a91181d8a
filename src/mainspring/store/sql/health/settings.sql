-- What the server was told, of what matters to us, and which kind of server it is.
select current_setting('server_version') as version,
       current_setting('server_version_num')::int / 10000 as major,
       current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as synchronous_commit,
       current_setting('full_page_writes') as full_page_writes,
       current_setting('autovacuum') as autovacuum,
       current_setting('max_connections')::int as max_connections,
       (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as connections,
       current_database() as database,
       pg_is_in_recovery() as is_standby,
       current_setting('transaction_read_only')::bool as is_read_only,
       exists (select from pg_extension where extname = 'citus') as has_citus,
       exists (select from pg_namespace where nspname = :schema::text) as has_schema
