-- How many runs of a limit were to be kept in line, how many there were after the last release, and whose turn it was.
-- Index: share_window primary key.
select size, filled, at, after from share_window where lane = :lane::smallint and rule_id = :rule::int
