-- Remember how many runs of a limit are to be kept in line, and whose turn it was. Whoever calls holds the lock of its gates.
-- Index: share_window primary key.
insert into share_window (lane, rule_id, size, filled, at, after)
values (:lane::smallint, :rule::int, :size::double precision, :filled::int, :at::double precision, :after::text)
on conflict (lane, rule_id) do update
set size = excluded.size, filled = excluded.filled, at = excluded.at, after = excluded.after
