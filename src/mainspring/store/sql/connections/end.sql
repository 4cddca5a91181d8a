-- End the server's side of connections we lost, known by their unique names, and wait so long until each is gone.
-- One that waits for a lock or a standby would otherwise stay, and could still commit.
select pg_terminate_backend(pid, :wait_millis::bigint) from pg_stat_activity
where application_name = any (:names::text[]) and pid <> pg_backend_pid()
