-- Write a little into the log of the node that has this lane, for its COMMIT to wait for the standby, where there is one
-- to wait for. A transaction id alone would write nothing.  Index: lane's primary key.
select pg_logical_emit_message(true, 'mainspring', '') from lane
where lane = :lane::smallint and current_setting('synchronous_standby_names') <> ''
