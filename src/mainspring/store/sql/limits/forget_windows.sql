-- Forget how many runs of a limit were to be kept in line, in one lane, where nobody has waited for long.
-- Index: share_window primary key.
delete from share_window where share_window.lane = :lane::smallint and share_window.at < date_part('epoch', clock_now()) - 60
