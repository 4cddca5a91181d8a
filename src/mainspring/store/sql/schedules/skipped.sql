-- What the instants of one schedule became, newest first, from a position on: those that did not fire. Whether some of
-- them did afterwards, by a backfill, is said with them.
-- Index: skipped_pkey, occurrence_pkey, occurrence_past_pkey.
select first_at, last_at, reason, run_id, version, decided_at,
       coalesce(
           (select occurrence.nominal_at from occurrence
            where occurrence.lane = :lane::smallint and occurrence.schedule_id = :schedule::uuid
              and occurrence.nominal_at >= skipped.first_at and occurrence.nominal_at <= skipped.last_at limit 1),
           (select occurrence_past.nominal_at from occurrence_past
            where occurrence_past.lane = :lane::smallint and occurrence_past.schedule_id = :schedule::uuid
              and occurrence_past.nominal_at >= skipped.first_at and occurrence_past.nominal_at <= skipped.last_at
            limit 1)) is not null as has_backfilled
from skipped
where lane = :lane::smallint and schedule_id = :schedule::uuid
  and first_at < :before::timestamptz and last_at >= :since::timestamptz
order by first_at desc limit :count::int
