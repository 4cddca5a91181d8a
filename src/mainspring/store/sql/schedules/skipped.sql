-- What the instants of one schedule became, newest first, from a position on: those that did not fire.
-- Index: skipped_pkey.
select first_at, last_at, reason, run_id, version, decided_at from skipped
where lane = :lane::smallint and schedule_id = :schedule::uuid
  and first_at < :before::timestamptz and last_at >= :since::timestamptz
order by first_at desc limit :count::int
