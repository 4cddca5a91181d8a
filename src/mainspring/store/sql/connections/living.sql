-- How many of these connections still have their server's side.
select count(*) from pg_stat_activity where application_name = any (:names::text[]) and pid <> pg_backend_pid()
