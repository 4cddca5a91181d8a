-- End the server process of a connection we lost, known by its unique name, and wait up to ten seconds until it is gone.
select pg_terminate_backend(pid, 10000) from pg_stat_activity
where application_name = :name::text and pid <> pg_backend_pid()
